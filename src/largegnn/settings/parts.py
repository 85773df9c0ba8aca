"""Field types for the names of swappable parts, checked against their tables.

In: a name of the table, `module:attribute`, or the part itself. Out: the name, which is what settings keep.
A name of the table is checked without importing the part; only `module:attribute` is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from largegnn.errors import InputError
from largegnn.seams import Table
from largegnn.settings.quoting import shown

__all__ = ["ChoicesOf", "PartOf", "PartsOf", "RefusedPartError", "WeightsOf"]


class RefusedPartError(ValueError):
    """A part that a table refuses; `reason` is what the table said."""

    def __init__(self, reason: InputError) -> None:
        super().__init__(reason.problem)
        self.reason = reason


@dataclass(frozen=True)
class PartOf:
    """One name of a table, or one of some more words such as `auto`: `Annotated[str, PartOf(TABLE, "auto")]`."""

    table: Table[Any]
    word: str | None = None

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        words = [] if self.word is None else [self.word]
        return f"one of {', '.join([*words, *self.table])}, or module:name"

    def check(self, value: object) -> object:
        """The name of a part given by name or as an object."""
        return value if self.word is not None and value == self.word else _name_of(self, value)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The names are looked up before the type is checked."""
        return core_schema.no_info_before_validator_function(self.check, handler(source))


@dataclass(frozen=True)
class PartsOf:
    """Several names of a table, none twice, as a list or with commas: `Annotated[tuple[str, ...], PartsOf(TABLE)]`."""

    table: Table[Any]
    least: int = 1
    word: str | None = None

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        some = "some" if self.least else "none or some"
        word = "" if self.word is None else f"{self.word}, or "
        return f"{word}a list of {some} of {', '.join(self.table)}, or module:name"

    def check(self, value: object) -> object:
        """The names of parts given as a list, as text with commas, or as one object."""
        if isinstance(value, str):
            value = [name for part in value.split(",") if (name := part.strip())]
        given = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        if self.word is not None and given == (self.word,):
            return given
        names = tuple(_name_of(self, part) for part in given)
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise RefusedPartError(InputError(f"the {self.table.kind} {shown(twice)} is named twice"))
        if len(names) < self.least:
            raise RefusedPartError(InputError(f"no {self.table.kind} is named", expected=self.allowed))
        return names

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Written as a list, which is what JSON and TOML read back."""
        return core_schema.no_info_before_validator_function(
            self.check,
            handler(source),
            serialization=core_schema.plain_serializer_function_ser_schema(
                list, return_schema=core_schema.list_schema()
            ),
        )


@dataclass(frozen=True)
class WeightsOf:
    """A weight for each of some names; one that is not named keeps its default, and 0 switches it off.

    The names are those of a table, or any (evidence, whose columns the channels name).
    """

    table: Table[Any] | None
    defaults: Mapping[str, float] = field(hash=False)
    most: float

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        names = f"{', '.join(self.defaults)}, ..." if self.table is None else f"{', '.join(self.table)}, or module:name"
        return f"a weight from 0 to {self.most:,} for each of {names}"

    def check(self, value: object) -> object:
        """The weights over their defaults."""
        if not isinstance(value, Mapping):
            return value
        weights: dict[Any, Any] = dict(self.defaults)
        if self.table is None:
            return weights | dict(value)
        weights |= {_name_of(self, part): weight for part, weight in value.items()}
        if not any(weights.values()):
            raise RefusedPartError(InputError(f"every {self.table.kind} is off", expected="one weight above 0"))
        return weights

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The names are looked up and the defaults filled in before the weights are checked."""
        return core_schema.no_info_before_validator_function(self.check, handler(source))


@dataclass(frozen=True)
class ChoicesOf:
    """One part of a table for each of some kinds of things; a kind that is not named keeps its default."""

    table: Table[Any]
    defaults: Mapping[str, str] = field(hash=False)

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        return f"for each of {', '.join(self.defaults)} one of {', '.join(self.table)}, or module:name"

    def check(self, value: object) -> object:
        """The choices over their defaults."""
        if not isinstance(value, Mapping):
            return value
        unknown = next((kind for kind in value if kind not in self.defaults), None)
        if unknown is not None:
            known = ", ".join(self.defaults)
            raise RefusedPartError(InputError(f"there is no kind {shown(str(unknown))}", expected=f"one of {known}"))
        return dict(self.defaults) | {kind: _name_of(self, part) for kind, part in value.items()}

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The names are looked up and the defaults filled in before the type is checked."""
        return core_schema.no_info_before_validator_function(self.check, handler(source))


def _name_of(names: PartOf | PartsOf | WeightsOf | ChoicesOf, value: object) -> object:
    """The name of a part; a plain value that cannot be a part is left for the check of the type."""
    assert names.table is not None
    plain = type(value).__module__ in ("builtins", "datetime") and not callable(value)
    if plain and not isinstance(value, str):
        return value
    try:
        return names.table.name_of(value)
    except InputError as reason:
        refused = InputError(reason.problem, expected=names.allowed, found=reason.found, fix=reason.fix)
        raise RefusedPartError(refused) from reason
