"""Read a Parquet file once in a process of its own, to know that it can be read: exit code 0.

A damaged Parquet file may request exabytes or end the process that reads it; here that does no harm. Run as a script
with polars alone, since starting is most of its cost: about a quarter of a second. In: the path. Out: nothing, or on
standard error what is wrong. Memory: some hundred megabytes more than polars takes to start, and more for large files.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path

import polars as pl
from polars import selectors

_ROWS = 500_000
_SPARE_MEMORY = 768 << 20
# A row group is decompressed as a whole, and text compresses to a few hundredths where names repeat.
_MEMORY_PER_BYTE = 64
# A row that is not a copy of others takes a byte at least; copies of one row take nothing.
_MAX_ROWS_PER_BYTE, _ALWAYS_ALLOWED_ROWS = 20, 5_000_000


def limit_memory(size: int) -> None:
    """Bound the memory of this process, where the system can."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        # What polars reserves when it reads for the first time depends on the machine.
        buffer = io.BytesIO()
        pl.DataFrame({"name": ["a"]}).write_parquet(buffer)
        pl.scan_parquet(buffer.getvalue()).collect()
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * os.sysconf("SC_PAGE_SIZE") + _SPARE_MEMORY + _MEMORY_PER_BYTE * size
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def check(path: Path) -> None:
    """Read the columns that can be names or values, from the first row to the last."""
    limit_memory(path.stat().st_size)
    table = pl.scan_parquet(path, glob=False).select(~selectors.nested() - selectors.binary())
    num_claimed = int(table.select(pl.len()).collect().item())
    if num_claimed > max(_ALWAYS_ALLOWED_ROWS, _MAX_ROWS_PER_BYTE * path.stat().st_size):
        sys.exit(f"{num_claimed:,} rows, where at most {_MAX_ROWS_PER_BYTE} a byte can differ")
    for first_row in range(0, num_claimed, _ROWS):
        table.select(pl.all().cast(pl.String)).slice(first_row, _ROWS).collect()


if __name__ == "__main__":
    try:
        check(Path(sys.argv[1]))
    except BaseException as error:  # noqa: BLE001  (a panic of polars is no Exception)
        sys.exit((str(error).strip().splitlines() or [type(error).__name__])[0])
