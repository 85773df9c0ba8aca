"""A table of swappable parts by name: our own, those of other installed packages, and objects handed over in Python.

In: names with the parts they stand for, each given as `"package.module:attribute"`, so that a table can be read without
importing what is in it. Out: the part behind a name.
A name is looked up in four places: the table itself; parts added by this process (`add`, or an object handed to the
settings); entry points of the group `largegnn.<table>` of installed packages; and, where the name has a colon, the
module it names. An unknown name is an `InputError` with the names there are.
An object that can be imported is known everywhere by its address, `module:name`, also in the processes a run starts.
Any other object, such as one made inside a function or a script, is known in this process alone (`is_local`).
Cost: a look-up imports what it returns, and `check` imports only a part given by its address. Installed packages are
looked through once, and only for a name that is not ours or for the list of names.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.metadata
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar, cast

from largegnn.errors import InputError

__all__ = ["Table", "address_of"]

_Part = TypeVar("_Part")
_SHOWN = 100


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
        raise self._unknown(name)

    def __iter__(self) -> Iterator[str]:
        """The names there are: ours, those of installed packages, those of this process."""
        return iter(self._names())

    def __contains__(self, name: object) -> bool:
        return name in self._parts or name in self._added or name in _entry_points(self.name)

    def __len__(self) -> int:
        return len(self._names())

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of our own parts, without a look at installed packages."""
        return tuple(self._parts)

    def check(self, name: str) -> str:
        """The name itself; an unknown one is refused. Nothing is imported for a name of the table."""
        if name not in self:
            self[name]
        return name

    def add(self, name: str, part: _Part) -> None:
        """Make a part known in this process; a name that is taken is refused."""
        if name in self:
            raise InputError(f"there is a {self.kind} called {name[:_SHOWN]!r} already", fix="choose another name")
        self._added[name] = part

    def remove(self, name: str) -> None:
        """Forget a part that this process added."""
        self._added.pop(name, None)

    def name_of(self, part: _Part | str) -> str:
        """The name to write into settings for a part given by name or as an object."""
        if isinstance(part, str):
            return self.check(part)
        for name, known in self._added.items():
            if known is part:
                return name
        addresses = {name: point.value for name, point in _entry_points(self.name).items()} | self._parts
        for name, address in addresses.items():
            if _is_loaded_at(address, part):
                return name
        address = address_of(part)
        # Another process has another `__main__`.
        if _is_loaded_at(address, part) and not address.startswith("__main__:"):
            return address
        return self._add_local(part)

    def is_local(self, name: str) -> bool:
        """Whether a part is known in this process alone, so that no other process can be asked to use it."""
        return name in self._added

    def _names(self) -> list[str]:
        return list(dict.fromkeys([*self._parts, *_entry_points(self.name), *self._added]))

    def _add_local(self, part: _Part) -> str:
        """Make a part known under its own name, with a number where that is taken."""
        plain = str(getattr(part, "__name__", type(part).__name__))
        name, number = plain, 2
        while name in self:
            name, number = f"{plain}-{number}", number + 1
        self._added[name] = part
        return name

    def _unknown(self, name: str) -> InputError:
        names = self._names()
        near = difflib.get_close_matches(name[:_SHOWN], names, n=3, cutoff=0.5)
        return InputError(
            f"no {self.kind} is called {name[:_SHOWN]!r}",
            expected=f"one of {', '.join(names)}",
            fix=f"did you mean {' or '.join(near)}?"
            if near
            else f"choose one of these, or give `module:name` of your own {self.kind}; see the guide Extending",
        )

    def _load_point(self, point: importlib.metadata.EntryPoint) -> Any:
        try:
            return point.load()
        except Exception as error:  # another package's code may raise anything
            package = point.dist.name if point.dist is not None else "an installed package"
            raise InputError(
                f"the {self.kind} {point.name!r} of {package} cannot be loaded",
                found=_said(point.value, error),
                fix=f"repair or remove {package}",
            ) from error

    def _load_address(self, address: str) -> Any:
        try:
            return _load(address)
        except (Exception, SystemExit) as error:  # a module of the user's may raise anything, and a script may exit
            raise InputError(
                f"the {self.kind} {address[:_SHOWN]!r} cannot be imported",
                expected=f"one of {', '.join(self)}, or `module:name`",
                found=_said(address, error),
                fix="check the spelling, and that the module is installed or on PYTHONPATH",
            ) from error


def address_of(part: object) -> str:
    """`module:name` of a function or class, or of the class of anything else."""
    named = part if hasattr(part, "__qualname__") else type(part)
    return f"{named.__module__}:{getattr(named, '__qualname__', '')}"


def _said(address: str, error: BaseException) -> str:
    return f"{address[:_SHOWN]}: {type(error).__name__}: {str(error)[: 2 * _SHOWN]}"


def _is_loaded_at(address: str, part: object) -> bool:
    """Whether an address names this very object; an object's module is loaded, so nothing is imported."""
    module, _, path = address.partition(":")
    found: Any = sys.modules.get(module)
    for name in path.split("."):
        found = getattr(found, name, None)
    return found is part


def _load(address: str) -> Any:
    module, _, path = address.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


@functools.cache
def _entry_points(table: str) -> dict[str, importlib.metadata.EntryPoint]:
    """What installed packages add to a table; of two with one name the first found counts."""
    found: dict[str, importlib.metadata.EntryPoint] = {}
    for point in _installed_points():
        if point.group == f"largegnn.{table}":
            found.setdefault(point.name, point)
    return found


@functools.cache
def _installed_points() -> tuple[importlib.metadata.EntryPoint, ...]:
    """The entry points of all installed packages for our tables; looking through the packages takes a moment."""
    points = importlib.metadata.entry_points()
    return tuple(
        point for group in points.groups if group.startswith("largegnn.") for point in points.select(group=group)
    )
