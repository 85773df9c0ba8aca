"""Settings as TOML text that reads back to the same settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from largegnn.settings.section import Section

__all__ = ["to_toml", "toml_value"]


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
