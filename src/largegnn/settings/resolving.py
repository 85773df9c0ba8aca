"""Settings from where users write them, and back to text.

They come from several places, later ones win: the defaults, a preset, a TOML file, `--set section.key=value`. An
unknown key, a wrong type or an impossible combination is an `InputError` that names the key and what is allowed.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from largegnn.errors import InputError
from largegnn.settings.describe import describe
from largegnn.settings.section import Section

__all__ = ["resolve", "to_toml", "toml_value"]

_Model = TypeVar("_Model", bound=Section)


def resolve(
    model: type[_Model],
    presets: Mapping[str, Mapping[str, Any]],
    preset: str | None = None,
    file: Path | None = None,
    overrides: Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
) -> _Model:
    """Build settings from defaults, `values`, a preset, a TOML file and `key=value` overrides, later ones winning."""
    merged: dict[str, Any] = {}
    _merge(merged, values or {})
    if preset is not None:
        if preset not in presets:
            raise InputError(
                f"no preset is called {preset!r}",
                expected=f"one of {', '.join(presets)}",
                fix="see `largegnn config` for what each preset sets",
            )
        _merge(merged, presets[preset])
    if file is not None:
        _merge(merged, _read_toml(file))
    for override in overrides:
        _merge(merged, _parse_override(model, override))
    try:
        return model.model_validate(merged)
    except ValidationError as error:
        raise _as_input_error(model, error) from None


def to_toml(settings: Section) -> str:
    """Settings as TOML text that `resolve` reads back to the same settings."""
    values = settings.model_dump()
    lines = [f"{key} = {toml_value(value)}" for key, value in values.items() if not isinstance(value, dict)]
    for section, content in values.items():
        if isinstance(content, dict):
            lines += ["", f"[{section}]"] + [f"{key} = {toml_value(value)}" for key, value in content.items()]
    return "\n".join(lines).lstrip("\n") + "\n"


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = dict(value) if isinstance(value, Mapping) else value


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        text = file.read_bytes()
    except OSError as error:
        raise InputError("the settings file cannot be read", where=str(file), found=error.strerror) from None
    try:
        return tomllib.loads(text.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError("the settings file is not valid TOML", where=str(file), found=str(error)) from None


def _parse_override(model: type[Section], override: str) -> dict[str, Any]:
    key, equals, text = override.partition("=")
    key, text = key.strip(), text.strip()
    if not equals or not key:
        raise InputError("--set takes section.key=value", found=override, fix="for example --set data.fold=2")
    if key not in {known for known, *_ in describe(model)}:
        raise _unknown_key(model, key)
    # A bare word is a string; everything else is written as in TOML.
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    nested: dict[str, Any] = {}
    *sections, last = key.split(".")
    inner = nested
    for section in sections:
        inner = inner.setdefault(section, {})
    inner[last] = value
    return nested


def _as_input_error(model: type[Section], error: ValidationError) -> InputError:
    first = error.errors(include_url=False)[0]
    known = {name: (allowed, default) for name, allowed, default, _ in describe(model)}
    # A setting of several types adds the type that was tried to its path.
    path = [str(part) for part in first["loc"]]
    key = next((key for size in range(len(path), 0, -1) if (key := ".".join(path[:size])) in known), ".".join(path))
    if first["type"] == "extra_forbidden":
        return _unknown_key(model, key)
    if key in known:
        return InputError(
            f"the setting {key} has an impossible value",
            expected=f"{known[key][0]} (default {toml_value(known[key][1])})",
            found=repr(first["input"]),
        )
    problem = str(first["msg"]).removeprefix("Value error, ")
    return InputError("the settings do not go together" + (f" ({key})" if key else ""), expected=problem)


def _unknown_key(model: type[Section], key: str) -> InputError:
    known = [name for name, *_ in describe(model)]
    close = difflib.get_close_matches(key, known, n=3, cutoff=0.5)
    return InputError(
        f"no setting is called {key}",
        expected=", ".join(close or known),
        fix="`largegnn config` prints every setting",
    )


def toml_value(value: Any) -> str:
    """A plain value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)
