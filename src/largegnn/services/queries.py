"""Read the queries of the Reconciliation Service API 0.2.

In: JSON text. Out: typed queries by the rules of the published schemas; any other text raises an `InputError`.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from largegnn.errors import InputError

__all__ = ["MAX_QUERIES", "ExtendQuery", "PropertyQuery", "Query", "read_align", "read_extend", "read_queries"]

MAX_QUERIES = 1_000
_Read = TypeVar("_Read")
_Sized = TypeVar("_Sized", bound=Sized)


class EntityValue(BaseModel):
    """A value that is an entity."""

    model_config = ConfigDict(extra="allow", frozen=True)
    id: StrictStr
    name: StrictStr = ""


Value = StrictStr | StrictBool | StrictInt | StrictFloat | EntityValue


class PropertyQuery(BaseModel):
    """A property and the values it should have."""

    model_config = ConfigDict(frozen=True)
    pid: StrictStr
    v: Value | list[Value]

    @property
    def texts(self) -> list[str]:
        """The values as texts; for an entity, its id."""
        values = self.v if isinstance(self.v, list) else [self.v]
        return [value.id if isinstance(value, EntityValue) else _text(value) for value in values]


class Query(BaseModel):
    """A query by a name, by values of properties, or by both."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    query: StrictStr | None = None
    type: StrictStr | list[StrictStr] = Field(default_factory=list)
    limit: StrictInt | StrictFloat | None = None
    properties: list[PropertyQuery] = Field(default_factory=list)
    type_strict: Literal["any", "should", "all"] = "should"

    @model_validator(mode="after")
    def _is_complete(self) -> Query:
        if self.query is None and not self.properties:
            raise ValueError("a query needs a name or properties")
        return self

    @property
    def types(self) -> list[str]:
        """The types as a list."""
        return [self.type] if isinstance(self.type, str) else self.type


class ExtendProperty(BaseModel):
    """A property to fetch."""

    model_config = ConfigDict(frozen=True)
    id: StrictStr
    settings: dict[str, Any] = Field(default_factory=dict)

    @property
    def limit(self) -> int | None:
        """The maximum number of values; None for all values."""
        given = str(self.settings.get("limit", ""))
        return int(given) if given.isascii() and given.isdigit() and 0 < len(given) <= 6 and int(given) else None


class ExtendQuery(BaseModel):
    """Entities, and the properties whose values are fetched."""

    model_config = ConfigDict(frozen=True)
    ids: list[StrictStr]
    properties: list[ExtendProperty]


class AlignQuery(BaseModel):
    """Entities to explain."""

    entities: list[StrictStr]
    side: StrictStr | None = None


def read_queries(text: str) -> dict[str, Query]:
    """Read a batch of queries, by their keys."""
    return _limited(_checked(_BATCH, text, "a batch of queries"), "queries")


def read_extend(text: str) -> ExtendQuery:
    """Read a data extension query."""
    query = _checked(_EXTEND, text, "a data extension query")
    _limited(query.ids, "entities")
    return query


def read_align(body: bytes) -> AlignQuery:
    """Read the entities to explain."""
    query = _checked(_ALIGN, body, 'JSON such as {"entities": ["..."], "side": "source"}')
    _limited(query.entities, "entities")
    return query


_BATCH, _EXTEND, _ALIGN = TypeAdapter(dict[str, Query]), TypeAdapter(ExtendQuery), TypeAdapter(AlignQuery)


def _checked(kind: TypeAdapter[_Read], text: str | bytes, what: str) -> _Read:
    try:
        return kind.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"]))
        raise InputError(f"this is not {what}", where=location[:200], found=first["msg"]) from None


def _limited(items: _Sized, what: str) -> _Sized:
    if len(items) > MAX_QUERIES:
        raise InputError(f"too many {what} at once", expected=f"at most {MAX_QUERIES:,}", found=f"{len(items):,}")
    return items


def _text(value: str | bool | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
