"""A table of swappable parts by name: our own, those of other installed packages, and objects handed over in Python.

In: names with the parts they stand for, each given as `"package.module:attribute"`, so that a table can be read without
importing what is in it. Out: the part behind a name.
A name is looked up in four places: the table itself; parts added by this process (`add`, or an object handed to the
settings); entry points of the group `largegnn.<table>` of installed packages; and, where the name has a colon, the
module it names. An unknown name is an `InputError` with the names there are.
An object that can be imported is known everywhere by its address, `module:name`, also in the processes a run starts;
any other object is known in this process alone (`is_local`).
"""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.metadata
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar, cast

from largegnn.errors import InputError

__all__ = ["Table", "address_of"]

_Part = TypeVar("_Part")


class Table(Generic[_Part]):
    """Parts of one kind by name."""

    def __init__(self, name: str, kind: str, parts: Mapping[str, str]) -> None:
        """`name` in the plural is the table's own, `kind` what an entry is called in messages."""
        self.name, self.kind = name, kind
        self._parts = dict(parts)
        self._added: dict[str, _Part] = {}

    def __getitem__(self, name: str) -> _Part:
        """The part of this name; an unknown one is refused with the names there are."""
        if name in self._added:
            return self._added[name]
        if name in self._parts:
            return cast(_Part, _load(self._parts[name]))
        points = _entry_points(self.name)
        if name in points:
            return cast(_Part, self._load_point(points[name]))
        if ":" in name:
            return cast(_Part, self._load_address(name))
        close = difflib.get_close_matches(name, list(self), n=1)
        raise InputError(
            f"no {self.kind} is called {name[:100]!r}",
            expected=f"one of {', '.join(self)}",
            fix=f"did you mean {close[0]}?"
            if close
            else f"or `module:name` of your own {self.kind}; see the guide Extending",
        )

    def __iter__(self) -> Iterator[str]:
        """The names there are: ours, those of installed packages, those of this process."""
        return iter(dict.fromkeys([*self._parts, *_entry_points(self.name), *self._added]))

    def __contains__(self, name: object) -> bool:
        return name in set(self)

    def __len__(self) -> int:
        return sum(1 for _ in self)  # list(self) would ask for the length first

    def add(self, name: str, part: _Part) -> None:
        """Make a part known in this process; a name that is taken is refused."""
        if name in self:
            raise InputError(f"there is a {self.kind} called {name!r} already", fix="choose another name")
        self._added[name] = part

    def remove(self, name: str) -> None:
        """Forget a part made known in this process; one that is not known stays unknown."""
        self._added.pop(name, None)

    def name_of(self, part: _Part | str) -> str:
        """The name to write into settings for a part given by name or as an object."""
        if isinstance(part, str):
            self[part]
            return part
        for name, known in self._added.items():
            if known is part:
                return name
        address = address_of(part)
        for name, place in self._parts.items():
            if place == address:
                return name
        if _is_at(address, part):
            return address
        self._added[address] = part
        return address

    def is_local(self, name: str) -> bool:
        """Whether a part is known in this process alone, so that no other process can be asked to use it."""
        return name in self._added

    def _load_point(self, point: importlib.metadata.EntryPoint) -> Any:
        try:
            return point.load()
        except (ImportError, AttributeError) as error:
            package = point.dist.name if point.dist is not None else "an installed package"
            raise InputError(
                f"the {self.kind} {point.name!r} of {package} cannot be loaded",
                found=f"{point.value}: {error}",
                fix=f"repair or remove {package}",
            ) from None

    def _load_address(self, address: str) -> Any:
        try:
            return _load(address)
        except (ImportError, AttributeError, ValueError) as error:
            raise InputError(
                f"the {self.kind} {address[:100]!r} cannot be imported",
                expected=f"one of {', '.join(self)}, or `module:name`",
                found=str(error)[:200],
                fix="check the spelling, and that the module is installed or on PYTHONPATH",
            ) from None


def address_of(part: object) -> str:
    """`module:name` of a function or class, or of the class of anything else."""
    named = part if hasattr(part, "__qualname__") else type(part)
    return f"{named.__module__}:{getattr(named, '__qualname__', '')}"


def _is_at(address: str, part: object) -> bool:
    try:
        return _load(address) is part
    except (ImportError, AttributeError, ValueError):
        return False


def _load(address: str) -> Any:
    module, _, path = address.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


@functools.cache
def _entry_points(table: str) -> dict[str, importlib.metadata.EntryPoint]:
    """What installed packages add to a table; of two with one name the first found counts."""
    points = importlib.metadata.entry_points(group=f"largegnn.{table}")
    return {point.name: point for point in reversed(tuple(points))}
