"""Every setting with its default, what is allowed and what it does, read from the sections themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from largegnn.settings.parts import NamesOf, PartOf, WeightsOf
from largegnn.settings.section import Section

__all__ = ["SettingInfo", "describe"]

Kind = Literal["switch", "integer", "number", "text", "list", "weights"]


@dataclass(frozen=True)
class SettingInfo:
    """One setting: its dotted key, its kind of value, its default, and what it does."""

    key: str
    kind: Kind
    default: Any
    help: str
    field: FieldInfo

    @property
    def allowed(self) -> str:
        """What is allowed, in words; the names of swappable parts include those of installed packages."""
        return _allowed(self.field.annotation, self.field.metadata)


def describe(model: type[Section], prefix: str = "") -> Iterator[SettingInfo]:
    """Every setting in the order of declaration."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield from describe(field.annotation, f"{prefix}{name}.")
        else:
            yield SettingInfo(f"{prefix}{name}", _kind(field), field.default, field.description or "", field)


def _kind(field: FieldInfo) -> Kind:
    if any(isinstance(entry, NamesOf) for entry in field.metadata):
        return "list"
    if get_origin(field.annotation) is Mapping or any(isinstance(entry, WeightsOf) for entry in field.metadata):
        return "weights"
    kinds: dict[Any, Kind] = {bool: "switch", int: "integer", float: "number"}
    return kinds.get(field.annotation, "text")


def _allowed(annotation: Any, limits: Sequence[Any]) -> str:
    for entry in limits:
        if isinstance(entry, (NamesOf, PartOf, WeightsOf)):
            return entry.allowed
    if get_origin(annotation) is Literal:
        values = [str(value) for value in get_args(annotation)]
        return "one of " + ", ".join(values) if len(values) > 1 else values[0]
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        return _allowed(inner, [limit for entry in metadata for limit in getattr(entry, "metadata", [entry])])
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(_allowed(part, limits) for part in get_args(annotation))
    kind = {bool: "true or false", int: "a whole number", float: "a number"}.get(annotation, "text")
    return " ".join([kind, *_bounds(limits)])


def _bounds(limits: Sequence[Any]) -> list[str]:
    bound = {
        name: value
        for name in ("ge", "gt", "le", "lt")
        for limit in limits
        if (value := getattr(limit, name, None)) is not None
    }
    words = {"ge": "from", "gt": "above", "le": "to", "lt": "to below"}
    longest = [limit.max_length for limit in limits if getattr(limit, "max_length", None) is not None]
    return [
        *(f"{words[name]} {value:,}" for name, value in bound.items()),
        *(f"of at most {length:,} characters" for length in longest),
    ]
