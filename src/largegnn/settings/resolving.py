"""Settings from where users write them.

They come from several places, later ones win: the defaults, a preset, a TOML file, `--set section.key=value`. An
unknown key, a wrong type or an impossible combination is an `InputError` that names the key and what is allowed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from largegnn.errors import InputError
from largegnn.settings.describe import describe, unknown_key
from largegnn.settings.parts import shown
from largegnn.settings.section import Section

__all__ = ["read_settings_file", "resolve"]

_Model = TypeVar("_Model", bound=Section)
_MOST_BYTES = 30_000  # twice that of all settings with their comments; the reader of TOML takes the square of dots
_MOST_CHARACTERS = 2_000


def resolve(
    model: type[_Model],
    presets: Mapping[str, Mapping[str, Any]],
    preset: str | None = None,
    file: Path | None = None,
    overrides: Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
) -> _Model:
    """Build settings from defaults, `values`, a preset, a TOML file and `key=value` overrides, later ones winning."""
    sources = [values or {}]
    if preset is not None:
        if preset not in presets:
            raise InputError(
                f"no preset is called {shown(preset)!r}",
                expected=f"one of {', '.join(presets)}",
                fix="see `largegnn config` for what each preset sets",
            )
        sources.append(presets[preset])
    if file is not None:
        sources.append(read_settings_file(file))
    found: dict[str, Any] = {}
    for source in [*sources, *map(_parse_override, overrides)]:
        _add(found, model, source)
    nested: dict[str, Any] = {}
    for key, value in found.items():
        section, _, name = key.rpartition(".")
        (nested.setdefault(section, {}) if section else nested)[name] = value
    return model(**nested)


def _add(found: dict[str, Any], model: type[Section], values: Mapping[Any, Any], prefix: str = "") -> None:
    """Add values to those found before, under their dotted keys; sections are mappings, or their names are prefixes.

    What follows the key of weights is the name of a part; a weight is added to those found before.
    """
    kinds = {setting.key: setting.kind for setting in describe(model)}
    for name, value in values.items():
        if not isinstance(name, str):
            raise InputError("the key of a setting is text", found=shown(name))
        key = prefix + name
        weights = next((one for one, kind in kinds.items() if kind == "weights" and key.startswith(f"{one}.")), None)
        if weights is not None:
            key, value = weights, {key.removeprefix(f"{weights}.").strip("\"'"): value}
        if key in kinds:
            before = found.get(key)
            if kinds[key] == "weights" and isinstance(value, Mapping) and isinstance(before, Mapping):
                value = {**before, **value}
            found[key] = value
        elif isinstance(value, Mapping | Section) and any(one.startswith(f"{key}.") for one in kinds):
            _add(found, model, value.model_dump() if isinstance(value, Section) else value, f"{key}.")
        else:
            raise unknown_key(model, key)


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
        return tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError("the settings file is not valid TOML", where=str(file), found=shown(str(error))) from None


def _parse_override(override: str) -> dict[str, Any]:
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise InputError("--set takes section.key=value", found=shown(override), fix="for example --set data.fold=2")
    if len(override) > _MOST_CHARACTERS:
        raise InputError(
            f"a setting on the command line takes at most {_MOST_CHARACTERS:,} characters", found=shown(override)
        )
    return {key.strip(): _value(text.strip())}


def _value(text: str) -> object:
    """What is written after `=`: as in TOML, where a word needs no quotes."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    value = parsed.pop("value")
    # What follows a # or a line break would be lost; the text as a whole is refused.
    is_whole = not parsed and ("#" not in text or "#" in shown(value))
    return value if is_whole else text
