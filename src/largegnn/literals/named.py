"""Find a function by its name, or by its address `module:function`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, TypeVar

from largegnn.errors import InputError

__all__ = ["named_function"]

_Function = TypeVar("_Function")
_SHOWN = 100


def named_function(name: str, known: Mapping[str, _Function], kind: str) -> _Function | Any:
    """The function `known` by this name, else the one at this address; `kind` is for messages."""
    if name in known:
        return known[name]
    expected = f"one of {', '.join(known)}, or module:function"
    module, _, attribute = name.partition(":")
    if not attribute:
        raise InputError(f"no {kind} is called {name[:_SHOWN]!r}", expected=expected)
    try:
        return getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:  # a user's module may raise anything, and a script may exit
        raise InputError(
            f"the {kind} {name[:_SHOWN]!r} cannot be imported",
            expected=expected,
            found=f"{type(error).__name__}: {str(error)[: 2 * _SHOWN]}",
            fix="check the spelling, and that the module is installed or on PYTHONPATH",
        ) from error
