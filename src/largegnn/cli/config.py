"""Define `largegnn config`, which prints every setting with its value, default and help as a TOML file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from largegnn.cli import options
from largegnn.settings import (
    PRESETS,
    WORLD_PRESETS,
    Section,
    Settings,
    WorldSettings,
    describe,
    resolve,
    toml_value,
)

__all__ = ["config_command"]


@click.command("config")
@options.settings_options
@options.json_option
def config_command(preset: str | None, config: Path | None, overrides: tuple[str, ...], as_json: bool) -> None:
    """Print every setting with its value, default, allowed values and meaning. The output is a settings file."""
    settings = resolve(Settings, PRESETS, preset, config, overrides)
    if not as_json:
        click.echo("\n".join([*_run_lines(settings.model_dump()), *_generate_lines()]))
        return
    described = {"settings": _descriptions(Settings), "generate": _descriptions(WorldSettings)}
    presets = {"run": PRESETS, "generate": WORLD_PRESETS}
    click.echo(json.dumps({"values": settings.model_dump(), **described, "presets": presets}, indent=1))


def _descriptions(model: type[Section]) -> list[dict[str, Any]]:
    return [
        {"key": setting.key, "default": setting.default, "allowed": setting.allowed, "help": setting.help}
        for setting in describe(model)
    ]


def _run_lines(values: Mapping[str, Any]) -> Iterator[str]:
    yield "# Settings of a run. Pass this file with --config, or override single settings with --set section.key=value."
    yield from _preset_lines(PRESETS)
    last_section = ""
    for setting in describe(Settings):
        section, _, name = setting.key.rpartition(".")
        if section != last_section:
            last_section = section
            yield from ("", f"[{section}]")
        value = values[section][name] if section else values[name]
        yield f"# {setting.help} Allowed: {setting.allowed}. Default: {toml_value(setting.default)}."
        yield f"{name} = {toml_value(value)}"


def _generate_lines() -> Iterator[str]:
    yield from ("", "# Settings of `largegnn generate`: pass a separate file with --config, or use --set key=value.")
    yield from _preset_lines(WORLD_PRESETS)
    for setting in describe(WorldSettings):
        yield f"#   {setting.key} = {toml_value(setting.default)}   # {setting.help} Allowed: {setting.allowed}."


def _preset_lines(presets: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, values in presets.items():
        yield f"# --preset {name}: {json.dumps(values)}"
