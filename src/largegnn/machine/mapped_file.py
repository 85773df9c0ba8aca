"""Find the file that an array is mapped from, and release the memory of what was read.

Other machines can map such a file too, so that no copy has to be sent.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

__all__ = ["file_behind", "forget_pages"]


def file_behind(array: Any) -> Any:
    """The map of a whole file that an array is a part of; None for one in memory, or in a file without a name."""
    whole: Any = array
    while isinstance(whole, np.ndarray) and not (
        isinstance(whole, np.memmap) and not isinstance(whole.base, np.ndarray)
    ):
        whole = whole.base
    return whole if isinstance(whole, np.memmap) and whole.filename is not None else None


def forget_pages(array: Any) -> None:
    """Release the pages of a mapped array, which count as memory of this process; the system may keep them cached.

    For arrays that were read as a whole and are not needed soon.
    """
    whole = file_behind(array)
    drop = getattr(mmap, "MADV_DONTNEED", None)
    # What was written to a private copy would be lost; a file that is open for reading alone has nothing to lose.
    if whole is not None and drop is not None and whole.mode == "r":
        whole._mmap.madvise(drop)
