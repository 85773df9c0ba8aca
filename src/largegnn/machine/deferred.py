"""Import modules when an attribute of them is first used.

In: the name of a module. Out: an object with the same attributes. The idea: a command that only reads a finished run
must not wait for libraries that training and calibrating need. Cost: one more look-up for each use.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

__all__ = ["deferred"]


class _Deferred(ModuleType):
    """A module that is not imported yet."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def deferred(name: str) -> Any:
    """The module of this name, imported with the first use of it."""
    return _Deferred(name)
