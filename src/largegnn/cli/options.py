"""Declare what the command line of a run takes, once.

In: input paths, flags, `--preset`, `--config`, `--set`, and, where there is a run folder, `--out`, `--resume`,
`--force`, `--from`, `--to`. Out: one `RunRequest`. A command names its flags and gets the request:

    @options.takes_request(*options.DATA_FLAGS, *options.RUN_FLAGS, folder=options.RunFolder(last="integrate"))
    def train_command(request: options.RunRequest, as_json: options.JsonOption = False) -> None:
        run = request.run()

A flag is a name and the dotted key of a setting; its help, default and bounds are those of the setting. Flags are read
as text and checked as settings, so that a flag, `--set` and a settings file refuse a value with the same words.
`--help` shows the options that most people need, `--help-all` every one.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import shlex
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from largegnn.errors import InputError
from largegnn.settings import PRESETS, STEPS, Settings, describe, resolve, toml_value
from largegnn.settings.describe import Kind, SettingInfo

if TYPE_CHECKING:
    from largegnn.data.inputs import DataInput
    from largegnn.run import Run

__all__ = [
    "DATA_FLAGS",
    "RUN_FLAGS",
    "JsonOption",
    "PresetOption",
    "RunFolder",
    "RunRequest",
    "SetOption",
    "SettingsFileOption",
    "run_settings",
    "takes_request",
]

# By the dotted key of the setting.
FLAGS = {
    "--valid-share": "data.valid_share",
    "--format": "data.format",
    "--fold": "data.fold",
    "--skip-unknown": "data.skip_unknown",
    "--source-key": "data.source_key",
    "--target-key": "data.target_key",
    "--seeds-from": "protocol.seeds_from",
    "--cap": "landmarks.cap",
    "--seed": "seed",
    "--device": "device",
    "--cluster": "cluster.address",
    "--channels": "channels",
    "--rounds": "rounds.number",
    "--min-precision": "match.min_precision",
}
DATA_FLAGS = ("--valid-share", "--format", "--fold", "--skip-unknown", "--source-key", "--target-key", "--seeds-from")
RUN_FLAGS = ("--seed", "--device", "--cluster", "--channels", "--rounds", "--min-precision")
# What `--help` shows; the rest is under `--help-all`.
_SHOWN = {
    *("source", "target", "seeds", "test_links", "source_key", "target_key", "out", "rounds", "min_precision"),
    *("device", "resume"),
}

Changes = tuple[str, ...]  # settings as `key=value`, which `resolve` takes as overrides

_METAVARS: dict[Kind, str] = {"integer": "<int>", "number": "<float>", "text": "<str>", "list": "<name,...>"}
_OptionalPath = Path | None

PresetOption = Annotated[str | None, typer.Option("--preset", help=f"Named settings: {', '.join(PRESETS)}.")]
SettingsFileOption = Annotated[_OptionalPath, typer.Option("--config", help="A TOML file of settings.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="One setting, as section.key=value. May be repeated.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]

_INPUT: dict[str, tuple[Any, Any]] = {
    "source": (_OptionalPath, typer.Argument(help="A data set folder, or the file of the source graph.")),
    "target": (_OptionalPath, typer.Argument(help="The file of the target graph.")),
    "seeds": (_OptionalPath, typer.Option("--seeds", help="Known links: two columns, or owl:sameAs triples.")),
    "valid_links": (
        _OptionalPath,
        typer.Option(
            "--valid-links", help="Links that choose epoch and threshold and calibrate the confidence. Not trained on."
        ),
    ),
    "test_links": (
        _OptionalPath,
        typer.Option("--test-links", help="Links that only measure: the step evaluate alone reads them."),
    ),
    "source_names": (
        _OptionalPath,
        typer.Option("--source-names", help="Names of source entities: two columns, entity and name."),
    ),
    "target_names": (
        _OptionalPath,
        typer.Option("--target-names", help="Names of target entities: two columns, entity and name."),
    ),
    "decisions": (
        _OptionalPath,
        typer.Option("--decisions", help="Decisions of reviewers: accepted pairs become seeds, rejected forbidden."),
    ),
}
_SETTINGS: dict[str, tuple[Any, Any]] = {
    "preset": typing.get_args(PresetOption),
    "config": typing.get_args(SettingsFileOption),
    "overrides": typing.get_args(SetOption),
}


@dataclass(frozen=True)
class RunFolder:
    """The run folder a command works in: where it is by default, if anywhere, and the last step it computes."""

    out: Path | None = Path("run")
    last: str | None = None
    help: str = "The run folder."


@dataclass(frozen=True)
class RunRequest:
    """What a command line asks for; `given` is None where a run is resumed that has no input of its own."""

    given: DataInput | None
    settings: Settings
    out: Path | None = None
    resume: bool = False
    force: str | None = None
    first: str | None = None
    last: str | None = None

    def run(self) -> Run:
        """Bring the run folder up to the last step asked for."""
        from largegnn.pipeline import run_pipeline

        assert self.out is not None, "the command has a run folder"
        try:
            return run_pipeline(self.out, self.given, self.settings, force=self.force, first=self.first, last=self.last)
        except KeyboardInterrupt as interruption:
            if (self.out / "manifest.json").exists():
                last = "" if self.last is None else f" --to {self.last}"
                out = shlex.quote(str(self.out))
                interruption.add_note(f"resume it with: largegnn align --resume --out {out}{last}")
            raise

    def with_changes(self, changes: Sequence[str]) -> RunRequest:
        """The same with some settings changed, each as `key=value`."""
        values = self.settings.model_dump()
        return dataclasses.replace(self, settings=resolve(Settings, {}, overrides=changes, values=values))


def takes_request(*flags: str, folder: RunFolder | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the input, flags and settings options of a run; its parameter `request` gets a `RunRequest`."""
    settings = {setting.key: setting for setting in describe(Settings)}
    parameters = [_parameter(name, *kind) for name, kind in _INPUT.items()]
    if folder is not None:
        parameters.append(
            _parameter("out", _OptionalPath, typer.Option("--out", "-o", help=folder.help), default=folder.out)
        )
    parameters += [_flag_parameter(flag, settings[FLAGS[flag]]) for flag in flags]
    parameters += [_parameter(name, *kind) for name, kind in _SETTINGS.items()]
    parameters += [] if folder is None else _step_parameters(folder)
    help_all = typer.Option("--help-all", help="Show every option and exit.", is_eager=True, callback=_show_all)
    parameters.append(_parameter("help_all", bool, help_all, default=False, hidden=False))

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = typing.get_type_hints(command, include_extras=True)
        own = [
            parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in inspect.signature(command).parameters.values()
            if parameter.name != "request"
        ]
        names = [parameter.name for parameter in parameters]

        @functools.wraps(command)
        def wrapped(**values: Any) -> None:
            given = {key: values.pop(key) for key in names}
            command(request=_request(given, _changes(flags, given)), **values)

        signature = inspect.Signature([*parameters, *own])
        wrapped.__signature__ = signature  # type: ignore[attr-defined]
        wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in signature.parameters.values()}
        return wrapped

    return decorate


def run_settings(
    preset: str | None,
    file: Path | None,
    overrides: Sequence[str] | None,
    changes: Changes = (),
    begun: Settings | None = None,
) -> Settings:
    """The settings of a command line; its flags win over `--set`, a file, a preset and those a run was begun with."""
    values = None if begun is None else begun.model_dump()
    return resolve(Settings, PRESETS, preset, file, [*(overrides or []), *changes], values)


def _request(values: Mapping[str, Any], changes: Changes) -> RunRequest:
    """Input and settings from the command line, or from the run folder to be resumed.

    Settings given with --resume change those of the run folder; the pipeline refuses them where a finished step was
    computed with others.
    """
    paths = {name: values[name] for name in _INPUT}
    out, resume = values.get("out"), values.get("resume", False)
    given, begun = _resumed(out, paths) if resume else (_given(paths), None)
    settings = run_settings(values["preset"], values["config"], values["overrides"], changes, begun)
    steps = {name: values.get(name) for name in ("force", "first", "last")}
    return RunRequest(given, settings, out, resume, **steps)


def _given(paths: Mapping[str, Path | None]) -> DataInput:
    from largegnn.api import data_input

    source, others = paths["source"], {name: path for name, path in paths.items() if name != "source"}
    if source is None:
        raise InputError("no input was given", expected="FOLDER, SOURCE TARGET --seeds FILE, or --resume")
    return data_input(source, **others)


def _resumed(out: Path | None, paths: Mapping[str, Path | None]) -> tuple[DataInput | None, Settings]:
    from largegnn.run import Run

    if out is None:
        raise InputError("--resume needs the run folder", expected="--resume --out DIR")
    if any(path is not None for path in paths.values()):
        raise InputError("--resume takes input and settings from the run folder", fix="leave the input out")
    run = Run.open(out)
    return run.given, run.settings


def _changes(flags: Sequence[str], values: Mapping[str, Any]) -> Changes:
    """The settings that the values of the flags change."""
    given = {FLAGS[flag]: values[_name(flag)] for flag in flags if values[_name(flag)] is not None}
    return tuple(f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in given.items())


def _step_parameters(folder: RunFolder) -> list[inspect.Parameter]:
    end = len(STEPS) if folder.last is None else STEPS.index(folder.last) + 1
    force = typer.Option("--force", help=f"Compute again from this step on: {', '.join(STEPS[:end])}.")
    resume = typer.Option("--resume", help="Resume the interrupted run in --out.")
    return [
        _parameter("resume", bool, resume, default=False),
        _parameter("force", str | None, force),
        _parameter("first", str | None, typer.Option("--from", help="First step to compute.")),
        _parameter("last", str | None, typer.Option("--to", help="Last step to compute."), default=folder.last),
    ]


def _flag_parameter(flag: str, setting: SettingInfo) -> inspect.Parameter:
    option = typer.Option(flag, help=_help(setting), metavar=_METAVARS.get(setting.kind), show_default=False)
    return _parameter(_name(flag), (bool if setting.kind == "switch" else str) | None, option)


def _parameter(
    name: str, kind: Any, option: Any, default: object = None, hidden: bool | None = None
) -> inspect.Parameter:
    option.hidden = name not in _SHOWN if hidden is None else hidden
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])


def _show_all(context: typer.Context, value: bool) -> None:
    """Print the help with every option."""
    if value:
        for parameter in context.command.params:
            parameter.hidden = False  # type: ignore[attr-defined]
        typer.echo(context.get_help())
        raise typer.Exit


def _help(setting: SettingInfo) -> str:
    default = ",".join(setting.default) if setting.kind == "list" else toml_value(setting.default).strip('"')
    allowed = "" if setting.kind == "switch" else f"{setting.allowed}, "
    # Square brackets would be read as markup.
    return f"{setting.help} ({setting.key}: {allowed}default {default})"


def _name(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")
