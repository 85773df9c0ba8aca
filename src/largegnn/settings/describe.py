"""Describe settings by a walk over the sections: what is allowed, why a value is refused, how it is written as TOML."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from largegnn.errors import InputError
from largegnn.settings.parts import NamesOf, PartOf, RefusedPartError, WeightsOf, shown
from largegnn.settings.section import Section

__all__ = ["SettingInfo", "describe", "flat_settings", "refusal_of", "to_toml", "toml_value", "unknown_key"]

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
            yield SettingInfo(
                f"{prefix}{field.alias or name}", _kind(field), field.default, field.description or "", field
            )


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


def refusal_of(model: type[Section], error: ValidationError) -> InputError:
    """The first of the errors, with the full key of the setting."""
    first = error.errors(include_url=False)[0]
    known = {setting.key: setting for setting in describe(model)}
    # A setting of several types adds the type that was tried to its path, and weights add the name of the part.
    path = [str(part) for part in first["loc"]]
    own = next((key for size in range(len(path), 0, -1) if (key := ".".join(path[:size])) in known), None)
    key = model.place + (own or ".".join(path))
    if first["type"] == "extra_forbidden":
        return unknown_key(model, key)
    problem = str(first["msg"]).removeprefix("Value error, ")
    if own is None:
        return InputError("the settings do not go together" + (f" ({key})" if path else ""), expected=problem)
    setting = known[own]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, RefusedPartError):
        reason = cause.reason
        return InputError(
            reason.problem, where=f"the setting {key}", expected=reason.expected, found=reason.found, fix=reason.fix
        )
    if setting.kind == "weights":
        key = model.place + ".".join(path[: own.count(".") + 2])
    default = "" if setting.field.is_required() else f" (default {toml_value(setting.default)})"
    return InputError(
        f"the setting {shown(key)} has an impossible value",
        expected=setting.allowed + default,
        found=shown(first["input"]),
    )


def unknown_key(model: type[Section], key: str) -> InputError:
    """A key that no setting has, with the settings whose names are near."""
    known = [model.place + setting.key for setting in describe(model)]
    last = key.rpartition(".")[2]
    near = difflib.get_close_matches(key[:100], known, n=3, cutoff=0.5)
    near += [name for name in known if name.rpartition(".")[2] == last and name not in near]
    return InputError(
        f"no setting is called {shown(key)}",
        expected=", ".join(near or known),
        fix="`largegnn config` prints every setting",
    )


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every value of plain nested settings, under its dotted key: to compare them."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flat_settings(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def to_toml(settings: Section) -> str:
    """Settings as TOML text: those outside the sections first."""
    sections = {key: value for key, value in settings if isinstance(value, Section)}
    values = settings.model_dump()
    lines = [f"{key} = {toml_value(value)}" for key, value in values.items() if key not in sections]
    for section in sections:
        lines += ["", f"[{section}]", *(f"{key} = {toml_value(value)}" for key, value in values[section].items())]
    return "\n".join(lines).lstrip("\n") + "\n"


def toml_value(value: Any) -> str:
    """A plain value as TOML writes it, on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{_escaped(value)}"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {toml_value(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return repr(value)


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else toml_value(name)


def _escaped(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return re.sub("[\x00-\x1f\x7f]", lambda found: f"\\u{ord(found[0]):04x}", plain)
