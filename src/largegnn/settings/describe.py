"""Every setting with its default, what is allowed and what it does, read from the sections themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from largegnn.settings.section import Section

__all__ = ["describe"]


def describe(model: type[Section], prefix: str = "") -> Iterator[tuple[str, str, Any, str]]:
    """Every setting as (dotted key, allowed values, default, help), in the order they are declared."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield from describe(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _allowed(field), field.default, field.description or ""


def _allowed(field: FieldInfo) -> str:
    return _allowed_values(field.annotation, field.metadata)


def _allowed_values(annotation: Any, limits: Sequence[Any]) -> str:
    if get_origin(annotation) is Literal:
        values = [str(value) for value in get_args(annotation)]
        return "one of " + ", ".join(values) if len(values) > 1 else values[0]
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        found = [limit for entry in metadata for limit in getattr(entry, "metadata", [entry])]
        return _allowed_values(inner, found)
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(_allowed_values(part, limits) for part in get_args(annotation))
    kind = {bool: "true or false", int: "a whole number", float: "a number"}.get(annotation, "text")
    signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    bounds = [
        f"{sign} {getattr(limit, name)}"
        for limit in limits
        for name, sign in signs.items()
        if getattr(limit, name, None) is not None
    ]
    return " ".join([kind, " and ".join(bounds)]).strip()
