"""Read a Parquet file once in a process of its own, to check that it can be read: exit code 0.

A damaged Parquet file may request exabytes or end the process that reads it; in a separate process it does no harm. Run
as a script that imports polars alone, since starting takes most of the time: about a quarter of a second. In: the path.
Out: nothing, or the problem on standard error. Memory: a few hundred megabytes more than polars takes to start, and
more for large files.
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
# Distinct rows take bytes, but copies of one row take almost none: a small file may claim any number of rows.
_MAX_ROWS_PER_BYTE, _ALWAYS_ALLOWED_ROWS = 20, 5_000_000


def limit_memory(size: int) -> None:
    """Bound the memory of this process, if the system supports it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        # Polars reserves memory at its first read, and how much depends on the machine: read before measuring.
        buffer = io.BytesIO()
        pl.DataFrame({"name": ["a"]}).write_parquet(buffer)
        pl.scan_parquet(buffer.getvalue()).collect()
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        max_bytes = pages * os.sysconf("SC_PAGE_SIZE") + _SPARE_MEMORY + _MEMORY_PER_BYTE * size
        resource.setrlimit(resource.RLIMIT_AS, (max_bytes, max_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def check(path: Path) -> None:
    """Read the columns that can be names or values, from the first row to the last."""
    limit_memory(path.stat().st_size)
    table = pl.scan_parquet(path, glob=False).select(~selectors.nested() - selectors.binary())
    num_claimed = int(table.select(pl.len()).collect().item())
    if num_claimed > max(_ALWAYS_ALLOWED_ROWS, _MAX_ROWS_PER_BYTE * path.stat().st_size):
        sys.exit(f"{num_claimed:,} rows, more than {_MAX_ROWS_PER_BYTE} for each byte of the file")
    for first_row in range(0, num_claimed, _ROWS):
        table.select(pl.all().cast(pl.String)).slice(first_row, _ROWS).collect()


if __name__ == "__main__":
    try:
        check(Path(sys.argv[1]))
    except BaseException as error:  # noqa: BLE001  (a panic of polars is no Exception)
        sys.exit((str(error).strip().splitlines() or [type(error).__name__])[0])
