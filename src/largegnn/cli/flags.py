"""Flags made from the settings: a flag is a name and the dotted key of a setting, and everything else stands there.

In: a command function and names of flags. Out: the same command with these flags on its command line; their help,
default and bounds are those of the settings. Flags are read as text and checked as settings, so that a flag, `--set`
and a settings file refuse a value with the same words.

    @with_flags("--format", "--device")
    def update_command(run: RunArgument, changes: Changes) -> None:
        settings = resolve(Settings, PRESETS, values=before.model_dump(), overrides=changes)
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from largegnn.settings import Settings, describe, toml_value
from largegnn.settings.describe import Kind, SettingInfo

__all__ = ["FLAGS", "Changes", "changes_of", "flag_parameters", "replace_parameter", "setting_help", "with_flags"]

FLAGS = {
    "--valid-share": "data.valid_share",
    "--format": "data.format",
    "--fold": "data.fold",
    "--skip-unknown": "data.skip_unknown",
    "--source-key": "data.source_key",
    "--target-key": "data.target_key",
    "--seeds-from": "protocol.seeds_from",
    "--parts": "division.parts",
    "--cap": "landmarks.cap",
    "--landmarks/--no-landmarks": "landmarks.enabled",
    "--seed": "seed",
    "--device": "device",
    "--engine": "engine",
    "--cluster": "cluster.address",
    "--channels": "channels",
    "--rounds": "rounds.number",
    "--min-precision": "match.min_precision",
}

Changes = tuple[str, ...]  # settings as `key=value`, which `resolve` takes as overrides

_METAVARS: dict[Kind, str] = {"integer": "<int>", "number": "<float>", "text": "<str>", "list": "<name,...>"}


def with_flags(*flags: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command some flags; its parameter `changes` gets the settings they change."""
    parameters = flag_parameters(flags)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        return replace_parameter(command, "changes", parameters, lambda values: changes_of(flags, values))

    return decorate


def flag_parameters(flags: Sequence[str]) -> list[inspect.Parameter]:
    """A parameter for each flag; one that is not given is None."""
    settings = {setting.key: setting for setting in describe(Settings)}
    return [_parameter(flag, settings[FLAGS[flag]]) for flag in flags]


def changes_of(flags: Sequence[str], values: Mapping[str, Any]) -> Changes:
    """The settings that the values of the parameters change."""
    given = {FLAGS[flag]: values[_name(flag)] for flag in flags if values[_name(flag)] is not None}
    return tuple(f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in given.items())


def setting_help(key: str) -> str:
    """What the help of a flag says of its setting."""
    return _help(next(setting for setting in describe(Settings) if setting.key == key))


def replace_parameter(
    command: Callable[..., None],
    name: str,
    parameters: Sequence[inspect.Parameter],
    build: Callable[[Mapping[str, Any]], object],
) -> Callable[..., None]:
    """A command that takes `parameters` on its command line and hands over what `build` makes of them as `name`."""
    hints = typing.get_type_hints(command, include_extras=True)
    own = [
        parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(command).parameters.values()
        if parameter.name != name
    ]
    names = [parameter.name for parameter in parameters]

    @functools.wraps(command)
    def wrapped(**values: Any) -> None:
        given = {key: values.pop(key) for key in names}
        command(**{name: build(given)}, **values)

    signature = inspect.Signature([*parameters, *own])
    wrapped.__signature__ = signature  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in signature.parameters.values()}
    return wrapped


def _parameter(flag: str, setting: SettingInfo) -> inspect.Parameter:
    option = typer.Option(flag, help=_help(setting), metavar=_METAVARS.get(setting.kind), show_default=False)
    kind = bool if setting.kind == "switch" else str
    return inspect.Parameter(
        _name(flag), inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )


def _help(setting: SettingInfo) -> str:
    default = ",".join(setting.default) if setting.kind == "list" else toml_value(setting.default).strip('"')
    allowed = "" if setting.kind == "switch" else f"{setting.allowed}, "
    # Square brackets would be read as markup.
    return f"{setting.help} ({setting.key}: {allowed}default {default})"


def _name(flag: str) -> str:
    return flag.split("/")[0].removeprefix("--").replace("-", "_")
