"""Import a module lazily: when one of its attributes is first used.

In: the name of a module. Out: an object with the attributes of the module. The idea: a command that only reads a
finished run must not wait for the import of libraries for training. Cost: one more look-up for each use.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

__all__ = ["deferred"]


class _Deferred(ModuleType):
    """A module that is imported when an attribute is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def deferred(name: str) -> Any:
    """The module of this name, imported at its first use."""
    return _Deferred(name)
