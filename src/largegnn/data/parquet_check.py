"""Read a Parquet file once in a process of its own, to know that it can be read.

A damaged Parquet file may request exabytes or end the process that reads it; here that does no harm. Run as a script
with polars alone, since starting is most of its cost: about a quarter of a second. In: the path and the number of the
process that waits, as arguments; then, on standard input, the columns wanted. Out, on standard output, lines of JSON:
all columns; then the number of rows. Instead of either, what is wrong.
Memory: some hundred megabytes more than polars takes to start, and more for large files; no more is given.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path

import polars as pl

_ROWS = 500_000
_SPARE_MEMORY = 768 << 20
# A row group is decompressed as a whole, and text compresses to a few hundredths where names repeat.
_MEMORY_PER_BYTE = 64
_SPARE_SECONDS, _SECONDS_PER_MB = 60, 10
# A row that is not a copy of others takes a byte at least; copies of one row take nothing.
_MOST_ROWS_PER_BYTE, _ALWAYS_ALLOWED_ROWS = 20, 5_000_000


def end_with_parent(parent: int) -> None:
    """Make Linux end this process with the one that waits for it, which may be killed while a large file is read."""
    if sys.platform == "linux":
        import ctypes
        import signal

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:  # it had ended before
            sys.exit(1)


def limit(path: Path) -> None:
    """Bound the memory and processor time of this process, where the system can."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        # What polars reserves when it reads for the first time depends on the machine.
        buffer = io.BytesIO()
        pl.DataFrame({"name": ["a"]}).write_parquet(buffer)
        buffer.seek(0)
        pl.scan_parquet(buffer).collect()
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        size = path.stat().st_size
        memory = pages * os.sysconf("SC_PAGE_SIZE") + _SPARE_MEMORY + _MEMORY_PER_BYTE * size
        seconds = _SPARE_SECONDS + _SECONDS_PER_MB * (size >> 20)
        for kind, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0)):
            resource.setrlimit(kind, (most, most))


def check(path: Path) -> None:
    """Write which columns there are, then read those wanted from the first row to the last."""
    table = pl.scan_parquet(path, glob=False)
    send({"columns": [(name, str(dtype)) for name, dtype in table.collect_schema().items()]})
    wanted = json.loads(sys.stdin.readline() or "[]")
    num_claimed = int(table.select(pl.len()).collect().item())
    if num_claimed > max(_ALWAYS_ALLOWED_ROWS, _MOST_ROWS_PER_BYTE * path.stat().st_size):
        send({"error": f"{num_claimed:,} rows, where at most {_MOST_ROWS_PER_BYTE} a byte can differ"})
        return
    chosen, num_rows = table.select(pl.col(column).cast(pl.String) for column in wanted), 0
    while wanted and (found := len(chosen.slice(num_rows, _ROWS).collect())):
        num_rows += found
    send({"rows": num_rows})


def send(message: dict[str, object]) -> None:
    """Write one line of JSON."""
    sys.stdout.buffer.write(json.dumps(message).encode("utf-8") + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    """Check the file given; whatever goes wrong is sent."""
    path, parent = Path(sys.argv[1]), int(sys.argv[2])
    end_with_parent(parent)
    limit(path)
    try:
        check(path)
    except BrokenPipeError:
        os._exit(1)  # the other process has ended
    except BaseException as error:  # noqa: BLE001  (a panic of polars is no Exception)
        lines = str(error).strip().splitlines()
        send({"error": lines[0] if lines else type(error).__name__})


if __name__ == "__main__":
    main()
