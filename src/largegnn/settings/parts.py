"""Types of settings that pydantic does not have: a part by name, a list of names, weights by name.

In: a name of a table, `module:attribute`, or the part itself; text with commas or a list; a mapping. Out: names, which
is what settings keep. A name of a table is checked without importing the part; only `module:attribute` is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from largegnn.errors import InputError
from largegnn.parts import Table

__all__ = ["NamesOf", "PartOf", "RefusedPartError", "WeightsOf", "shown"]

_LONGEST = 100


def shown(value: object) -> str:
    """A value as Python writes it, cut to 100 characters."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):
        # Python writes no numbers of thousands of digits and no lists within lists within thousands of lists.
        return f"a value too large to show ({type(value).__name__})"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text):,} characters)"


class RefusedPartError(ValueError):
    """A name that is refused, with the reason as the user should read it."""

    def __init__(self, reason: InputError) -> None:
        super().__init__(reason.problem)
        self.reason = reason


class _Names:
    """A mark of a type, whose values are checked before the type is."""

    def check(self, value: object) -> object:
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.check, handler(source))


@dataclass(frozen=True)
class PartOf(_Names):
    """One name of a table, or the word `auto`: `Annotated[str, PartOf(TABLE, "auto")]`."""

    table: Table[Any]
    word: str | None = None

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        words = [] if self.word is None else [self.word]
        return f"one of {', '.join([*words, *self.table])}, or module:name"

    def check(self, value: object) -> object:
        """The name of a part given by name or as an object."""
        if self.word is not None and value == self.word:
            return value
        # A plain value that cannot be a part is left for the check of the type.
        plain = type(value).__module__ in ("builtins", "datetime") and not callable(value)
        if plain and not isinstance(value, str):
            return value
        try:
            return self.table.name_of(value)
        except InputError as reason:
            refused = InputError(reason.problem, expected=self.allowed, found=reason.found, fix=reason.fix)
            raise RefusedPartError(refused) from reason


@dataclass(frozen=True)
class NamesOf(_Names):
    """Some of these names, none twice, as a list or as text with commas, or one word such as `auto`."""

    kind: str
    names: tuple[str, ...]
    least: int = 1
    word: str | None = None

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        some = "some" if self.least else "none or some"
        word = "" if self.word is None else f"{self.word}, or "
        return f"{word}a list of {some} of {', '.join(self.names)}"

    def check(self, value: object) -> object:
        """The names as a tuple."""
        if isinstance(value, str):
            value = [name for part in value.split(",") if (name := part.strip())]
        if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
            return value
        names = tuple(value)
        if self.word is not None and names == (self.word,):
            return names
        for name in names:
            if name not in self.names:
                raise self._refused(f"no {self.kind} is called {shown(name)!r}")
            if names.count(name) > 1:
                raise self._refused(f"the {self.kind} {shown(name)} is named twice")
        if len(names) < self.least:
            raise self._refused(f"no {self.kind} is named")
        return names

    def _refused(self, problem: str) -> RefusedPartError:
        return RefusedPartError(InputError(problem, expected=self.allowed))


@dataclass(frozen=True)
class WeightsOf(_Names):
    """A weight for each of some names; one that is not named keeps its default, and 0 switches it off.

    Without `names` every name is allowed: evidence, whose columns the channels name.
    """

    kind: str
    names: tuple[str, ...] | None
    defaults: Mapping[str, float] = field(hash=False)
    most: float

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        names = (
            f"{', '.join(self.defaults)}, ..." if self.names is None else f"{', '.join(self.names)}, or module:function"
        )
        return f"a weight from 0 to {self.most:,} for each of {names}"

    def check(self, value: object) -> object:
        """The weights over their defaults."""
        if not isinstance(value, Mapping):
            return value
        weights: dict[Any, Any] = dict(self.defaults) | dict(value)
        if self.names is None:
            return weights
        # An address is looked up where the part is used.
        unknown = next((name for name in value if name not in self.names and ":" not in str(name)), None)
        if unknown is not None:
            raise RefusedPartError(InputError(f"no {self.kind} is called {shown(unknown)!r}", expected=self.allowed))
        if not any(weights.values()):
            raise RefusedPartError(InputError(f"every {self.kind} is off", expected="one weight above 0"))
        return weights
