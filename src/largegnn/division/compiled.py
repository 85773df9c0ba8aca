"""The one door to numba: how the loops of this folder become machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["compiled"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """Compile `function` on its first call; later runs read it from disk. It runs without the GIL."""
    try:
        result = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # there is no folder to keep it in: each run compiles anew
        result = numba.njit(nogil=True)(function)
    return cast(_Function, result)
