"""Find the file that an array is mapped from, and release the memory of pages that were read.

Other machines can map the same file, so that no copy of the array has to be sent.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

__all__ = ["file_behind", "forget_pages"]


def file_behind(array: Any) -> Any:
    """The `np.memmap` of the file that an array is a part of; None for an array in memory or in an unnamed file."""
    whole: Any = array
    while isinstance(whole, np.ndarray) and not (
        isinstance(whole, np.memmap) and not isinstance(whole.base, np.ndarray)
    ):
        whole = whole.base
    return whole if isinstance(whole, np.memmap) and whole.filename is not None else None


def forget_pages(array: Any) -> None:
    """Release the pages of a mapped array from this process's memory; the system may keep them in its cache.

    Meant for arrays that were read completely and are not needed soon. Arrays that are not mapped stay as they are.
    """
    whole = file_behind(array)
    release = getattr(mmap, "MADV_DONTNEED", None)
    # Only for files opened read-only: changes of a copy-on-write map would be lost.
    if whole is not None and release is not None and whole.mode == "r":
        whole._mmap.madvise(release)
