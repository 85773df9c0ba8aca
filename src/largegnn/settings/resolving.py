"""Settings from where users write them.

They come from several places, later ones win: the defaults, a preset, a TOML file, `--set section.key=value`. An
unknown key, a wrong type or an impossible combination is an `InputError` that names the key and what is allowed.
Text from users is bounded before it is read, so that no file and no flag can hang or crash the program.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from largegnn.errors import InputError
from largegnn.settings.describe import describe
from largegnn.settings.quoting import shown
from largegnn.settings.refusal import unknown_key
from largegnn.settings.section import Section

__all__ = ["flat_settings", "read_settings_file", "resolve"]

_Model = TypeVar("_Model", bound=Section)
_MOST_BYTES = 100_000
_MOST_CHARACTERS = 2_000
_MOST_DOTS = 200


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
    _merge(merged, _nested(model, values or {}))
    if preset is not None:
        if preset not in presets:
            raise InputError(
                f"no preset is called {shown(preset)!r}",
                expected=f"one of {', '.join(presets)}",
                fix="see `largegnn config` for what each preset sets",
            )
        _merge(merged, presets[preset])
    if file is not None:
        _merge(merged, read_settings_file(file))
    for override in overrides:
        _merge(merged, _parse_override(model, override))
    return model(**merged)


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every value of plain nested settings, under its dotted key: to compare them."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flat_settings(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def read_settings_file(file: Path) -> dict[str, Any]:
    """The values of a TOML file."""
    try:
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        found = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError("the settings file cannot be read", where=shown(str(file)), found=found) from None
    if len(content) > _MOST_BYTES:
        raise InputError("the settings file is too large", where=str(file), expected=f"at most {_MOST_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
        _refuse_long_keys(text)
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("the settings file is not valid TOML", where=str(file), found=shown(str(error))) from None


def _refuse_long_keys(text: str) -> None:
    """Refuse keys of very many parts, which the reader of TOML needs hours for."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.count(".") > _MOST_DOTS and not line.lstrip().startswith("#"):
            raise ValueError(f"more than {_MOST_DOTS} dots in line {number}")


def _merge(into: dict[str, Any], values: Mapping[str, Any], depth: int = 3) -> None:
    """Lay values over others; settings are at most three keys deep, and whatever is deeper is left to the check."""
    for key, value in values.items():
        if depth > 1 and not isinstance(key, str):
            raise InputError("the key of a setting is text", found=shown(key))
        if depth > 1 and isinstance(value, Mapping):
            inner = into[key] = dict(into[key]) if isinstance(into.get(key), Mapping) else {}
            _merge(inner, value, depth - 1)
        else:
            into[key] = value


def _nested(model: type[Section], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by nested keys, where some are given by dotted keys."""
    nested: dict[str, Any] = {}
    for key, value in values.items():
        dotted = isinstance(key, str) and "." in key
        _merge(nested, _under(_path(model, key), value) if dotted else {key: value})
    return nested


def _parse_override(model: type[Section], override: str) -> dict[str, Any]:
    key, equals, text = override.partition("=")
    key, text = key.strip(), text.strip()
    if "".join(override.splitlines()) != override:
        raise InputError(
            "a setting on the command line takes one line",
            found=shown(override),
            fix="give --set once for each setting",
        )
    if not equals or not key:
        raise InputError("--set takes section.key=value", found=shown(override), fix="for example --set data.fold=2")
    if len(override) > _MOST_CHARACTERS:
        raise InputError(
            f"a setting on the command line takes at most {_MOST_CHARACTERS:,} characters", found=shown(override)
        )
    return _under(_path(model, key), _value(text))


def _path(model: type[Section], key: str) -> tuple[str, ...]:
    """The nested keys of a dotted key; after the key of weights, all that follows is the name of a part."""
    for setting in describe(model):
        if key == setting.key:
            return tuple(key.split("."))
        if setting.kind == "weights" and key.startswith(f"{setting.key}."):
            name = key.removeprefix(f"{setting.key}.").strip("\"'")
            return (*setting.key.split("."), name)
    raise unknown_key(model, key)


def _under(path: Sequence[str], value: object) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    assert isinstance(value, dict)
    return value


def _value(text: str) -> object:
    """What is written after `=`: as in TOML, where a word needs no quotes."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
    # What follows a # is a comment in TOML; here it would be lost without a word.
    return text if "#" in text and "#" not in shown(value) else value
