"""Read the queries of the Reconciliation Service API 0.2.

In: JSON text. Out: typed queries by the rules of the published schemas; other text is an `InputError`.
"""

from __future__ import annotations

import json
from typing import Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)

from largegnn.errors import InputError

__all__ = ["MOST_QUERIES", "ExtendQuery", "PropertyQuery", "Query", "read_extend", "read_queries"]

MOST_QUERIES = 1_000
_Model = TypeVar("_Model", bound=BaseModel)


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
        """The values as text; an entity by its id."""
        values = self.v if isinstance(self.v, list) else [self.v]
        return [value.id if isinstance(value, EntityValue) else _text(value) for value in values]


class Query(BaseModel):
    """One query: a name, or values of properties, or both."""

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
        """The largest number of values; None for all."""
        given = str(self.settings.get("limit", ""))
        return int(given) if given.isascii() and given.isdigit() and 0 < len(given) <= 6 and int(given) else None


class ExtendQuery(BaseModel):
    """Entities, and the properties to fetch of them."""

    model_config = ConfigDict(frozen=True)
    ids: list[StrictStr]
    properties: list[ExtendProperty]


def read_queries(text: str) -> dict[str, Query]:
    """A batch of queries by their keys."""
    batch = _object(text, "a batch of queries")
    if len(batch) > MOST_QUERIES:
        raise InputError("too many queries at once", expected=f"at most {MOST_QUERIES:,}", found=f"{len(batch):,}")
    return {key: _checked(Query, value, key) for key, value in batch.items()}


def read_extend(text: str) -> ExtendQuery:
    """A data extension query."""
    found = _checked(ExtendQuery, _object(text, "a data extension query"), "extend")
    if len(found.ids) > MOST_QUERIES:
        raise InputError("too many entities at once", expected=f"at most {MOST_QUERIES:,}", found=f"{len(found.ids):,}")
    return found


def _object(text: str, what: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{what} must be JSON") from None
    if not isinstance(value, dict):
        raise InputError(f"{what} must be a JSON object", found=type(value).__name__)
    return value


def _checked(kind: type[_Model], value: Any, where: str) -> _Model:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, (where, *first["loc"])))
        problem = "this is not a query of the Reconciliation Service API 0.2"
        raise InputError(problem, where=place[:200], found=first["msg"]) from None


def _text(value: str | bool | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
