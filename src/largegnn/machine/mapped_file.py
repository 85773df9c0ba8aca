"""Which file an array is mapped from, if any: other machines can map it too, and nothing has to be sent."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["file_behind"]


def file_behind(array: Any) -> Any:
    """The map of a whole file that an array is a part of; None for one in memory, or in a file without a name."""
    whole: Any = array
    while isinstance(whole, np.ndarray) and not (
        isinstance(whole, np.memmap) and not isinstance(whole.base, np.ndarray)
    ):
        whole = whole.base
    return whole if isinstance(whole, np.memmap) and whole.filename is not None else None
