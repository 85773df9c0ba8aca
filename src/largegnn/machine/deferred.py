"""Modules that are imported when something of them is first used.

In: the name of a module. Out: a stand-in with the same attributes. The idea: a command that only looks something up in
a finished run must not wait for libraries that training and calibrating need. Types are imported as ever, under
`TYPE_CHECKING`. Cost: one more look-up for each use.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

__all__ = ["deferred"]


class _Deferred(ModuleType):
    """A module that is not there yet."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def deferred(name: str) -> Any:
    """The module of this name, imported with the first use of it."""
    return _Deferred(name)
