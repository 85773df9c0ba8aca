"""The one door to numba: how loops become machine code.

Where numba is missing the loops run as plain Python: as right, but far slower (3 s, not 0.1 s, to match
EN_FR_15K_V1).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, TypeVar, cast

__all__ = ["can_compile", "compiled"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def can_compile() -> bool:
    """Whether loops become machine code here: where not, what would be too slow is done another way."""
    return importlib.util.find_spec("numba") is not None


def compiled(function: _Function) -> _Function:
    """Compile `function` on its first call; later runs read it from disk. It runs without the GIL."""
    try:
        import numba
    except ImportError:  # a machine that only trains or searches may have little installed
        return function
    try:
        result = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # there is no folder to keep it in: each run compiles anew
        result = numba.njit(nogil=True)(function)
    return cast(_Function, result)
