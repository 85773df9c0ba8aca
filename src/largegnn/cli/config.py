"""`largegnn config`: every setting with its value, default and help, as a TOML file to keep and edit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import typer

from largegnn.cli import options
from largegnn.settings import PRESETS, WORLD_PRESETS, Section, Settings, WorldSettings, describe, toml_value

__all__ = ["config_command", "settings_file"]


def config_command(
    preset: options.PresetOption = None,
    config: options.SettingsFileOption = None,
    overrides: options.SetOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Print every setting with its value, default, what is allowed and what it does; the output is a settings file."""
    settings = options.run_settings(preset, config, overrides)
    if not as_json:
        typer.echo(settings_file(settings))
        return
    described = {"settings": _described(Settings), "generate": _described(WorldSettings)}
    presets = {"run": PRESETS, "generate": WORLD_PRESETS}
    typer.echo(json.dumps({"values": settings.model_dump(), **described, "presets": presets}, indent=1))


def settings_file(settings: Settings) -> str:
    """Settings as a commented TOML file, the generator's as comments below."""
    return "\n".join([*_run_lines(settings.model_dump()), *_generate_lines()])


def _described(model: type[Section]) -> list[dict[str, Any]]:
    return [
        {"key": setting.key, "default": setting.default, "allowed": setting.allowed, "help": setting.help}
        for setting in describe(model)
    ]


def _run_lines(values: dict[str, Any]) -> Iterator[str]:
    yield "# Settings of a run. Give this file with --config, or single settings with --set section.key=value."
    yield from _preset_lines(PRESETS)
    section = ""
    for setting in describe(Settings):
        *sections, name = setting.key.split(".")
        if sections and sections[0] != section:
            section = sections[0]
            yield from ("", f"[{section}]")
        value: Any = values
        for part in setting.key.split("."):
            value = value[part]
        yield f"# {setting.help} Allowed: {setting.allowed}. Default: {toml_value(setting.default)}."
        yield f"{name} = {toml_value(value)}"


def _generate_lines() -> Iterator[str]:
    yield from ("", "# Settings of `largegnn generate`, which takes a file of its own or --set key=value.")
    yield from _preset_lines(WORLD_PRESETS)
    for setting in describe(WorldSettings):
        yield f"#   {setting.key} = {toml_value(setting.default)}   # {setting.help} Allowed: {setting.allowed}."


def _preset_lines(presets: dict[str, dict[str, Any]]) -> Iterator[str]:
    for name, sets in presets.items():
        yield f"# --preset {name}: {json.dumps(sets) if sets else 'the defaults'}"
