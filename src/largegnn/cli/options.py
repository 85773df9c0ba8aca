"""Declare the options that several commands share, and combine the options of a run into one request.

In: input paths, flags, `--preset`, `--config`, `--set` and, for a command with a run folder, `--out`, `--resume`,
`--force`, `--from`, `--to`. Out: one `RunRequest`. A command names its flags and receives the request:

    @click.command("train")
    @options.takes_request(*options.DATA_FLAGS, "--seed", folder=options.RunFolder(last="integrate"))
    def train_command(request: options.RunRequest) -> None:
        run = request.run()

A flag stands for one setting and has the help, default and bounds of that setting. Flags are read as text and checked
as settings, so that a flag, `--set` and a settings file refuse a value with the same message. `--help` shows the
options that most users need, `--help-all` shows all options.
"""

from __future__ import annotations

import dataclasses
import functools
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from largegnn.errors import InputError
from largegnn.settings import PRESETS, STEPS, SettingInfo, Settings, describe, resolve, toml_value

if TYPE_CHECKING:
    from largegnn.data.inputs import DataInput
    from largegnn.run import Run

__all__ = [
    "DATA_FLAGS",
    "FLAGS",
    "PATH",
    "RUN_FLAGS",
    "RunFolder",
    "RunRequest",
    "json_option",
    "run_argument",
    "settings_options",
    "takes_request",
    "warm_up_in_background",
]

# Flag -> dotted key of its setting.
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
# The options below that `--help` shows; only `--help-all` shows the others.
_SHOWN = {
    "--seeds",
    "--test-links",
    "--source-key",
    "--target-key",
    "--out",
    "--rounds",
    "--min-precision",
    "--device",
    "--resume",
}

Decorator = Callable[[Callable[..., None]], Callable[..., None]]

PATH = click.Path(path_type=Path)
run_argument = click.argument("run", type=PATH, help="A run folder.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


def _option(*names: str, **attributes: Any) -> Decorator:
    """Declare an option; `--help` hides it unless it is in `_SHOWN`."""
    return click.option(*names, hidden=names[0] not in _SHOWN, **attributes)


_SETTINGS: dict[str, Decorator] = {
    "preset": _option("--preset", help=f"Named settings: {', '.join(PRESETS)}."),
    "config": _option("--config", type=PATH, help="A TOML file of settings."),
    "overrides": _option(
        "--set", "overrides", multiple=True, help="One setting, as section.key=value. May be repeated."
    ),
}
_INPUT: dict[str, Decorator] = {
    "source": click.argument(
        "source", type=PATH, required=False, help="A data set folder, or the file of the source graph."
    ),
    "target": click.argument("target", type=PATH, required=False, help="The file of the target graph."),
    "seeds": _option("--seeds", type=PATH, help="Known links: two columns, or owl:sameAs triples."),
    "valid_links": _option(
        "--valid-links",
        type=PATH,
        help="Links that choose epoch and threshold and calibrate the confidence. Not trained on.",
    ),
    "test_links": _option(
        "--test-links", type=PATH, help="Links used only for measuring: no step but evaluate reads them."
    ),
    "source_names": _option(
        "--source-names", type=PATH, help="Names of source entities: two columns, entity and name."
    ),
    "target_names": _option(
        "--target-names", type=PATH, help="Names of target entities: two columns, entity and name."
    ),
    "decisions": _option(
        "--decisions",
        type=PATH,
        help="Decisions of reviewers: accepted pairs become seeds, rejected pairs are forbidden.",
    ),
}


@dataclass(frozen=True)
class RunFolder:
    """The run folder that a command works in: its default path, if any, and the last step that the command computes."""

    out: Path | None = Path("run")
    last: str | None = None
    help: str = "The run folder."


@dataclass(frozen=True)
class RunRequest:
    """The run that a command line asks for; `given` is None if a run is resumed whose input is not in files."""

    given: DataInput | None
    settings: Settings
    out: Path | None = None
    force: str | None = None
    first: str | None = None
    last: str | None = None

    def run(self) -> Run:
        """Compute the missing steps of the run folder, up to the last step asked for."""
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
        """Return a copy of the request with some settings changed, each given as `key=value`."""
        values = self.settings.model_dump()
        return dataclasses.replace(self, settings=resolve(Settings, {}, overrides=changes, values=values))


def warm_up_in_background() -> None:
    """Load compiled code, which takes a moment, while the files are read."""
    from largegnn.division import warm_up

    # Not a daemon thread: if the program ends with an error, killing such a thread would add a traceback.
    threading.Thread(target=warm_up).start()


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--preset`, `--config` and `--set` to a command."""
    for option in reversed(_SETTINGS.values()):
        option(command)
    return command


def takes_request(*flags: str, folder: RunFolder | None = None) -> Decorator:
    """Add the input, flags and settings options of a run to a command; its parameter `request` gets a `RunRequest`."""
    settings = {setting.key: setting for setting in describe(Settings)}
    options: dict[str, Decorator] = dict(_INPUT)
    if folder is not None:
        options["out"] = _option(
            "--out", "-o", type=PATH, default=folder.out, show_default=folder.out is not None, help=folder.help
        )
    options |= {_parameter_name(flag): _flag(flag, settings[FLAGS[flag]]) for flag in flags}
    options |= _SETTINGS
    options |= {} if folder is None else _step_options(folder)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_request(**values: Any) -> None:
            given = {name: values.pop(name) for name in options}
            changes = {FLAGS[flag]: value for flag in flags if (value := given[_parameter_name(flag)]) is not None}
            command(request=_request(given, changes), **values)

        _help_all(with_request)
        for option in reversed(options.values()):
            option(with_request)
        return with_request

    return decorate


def _request(values: Mapping[str, Any], changes: Mapping[str, Any]) -> RunRequest:
    """Take input and settings from the command line, or from the run folder to be resumed.

    Flags win over `--set`, a settings file, a preset, and the settings that the run started with. The pipeline refuses
    settings that differ from the settings of a finished step.
    """
    paths = {name: values[name] for name in _INPUT}
    out = values.get("out")
    given, initial = _resumed(out, paths) if values.get("resume") else (_given(paths), None)
    flags = [f"{key}={str(value).lower() if value is True else value}" for key, value in changes.items()]
    overrides = [*values["overrides"], *flags]
    settings = resolve(Settings, PRESETS, values["preset"], values["config"], overrides, initial)
    steps = {name: values.get(name) for name in ("force", "first", "last")}
    return RunRequest(given, settings, out, **steps)


def _given(paths: Mapping[str, Path | None]) -> DataInput:
    from largegnn.api import data_input

    source = paths["source"]
    if source is None:
        raise InputError("no input was given", expected="FOLDER, SOURCE TARGET --seeds FILE, or --resume")
    return data_input(source, **{name: path for name, path in paths.items() if name != "source"})


def _resumed(out: Path | None, paths: Mapping[str, Path | None]) -> tuple[DataInput | None, dict[str, Any]]:
    from largegnn.run import Run

    if out is None:
        raise InputError("--resume needs the run folder", expected="--resume --out DIR")
    if any(path is not None for path in paths.values()):
        raise InputError("--resume takes input and settings from the run folder", fix="omit the input files")
    run = Run.open(out)
    return run.given, run.settings.model_dump()


def _step_options(folder: RunFolder) -> dict[str, Decorator]:
    end = len(STEPS) if folder.last is None else STEPS.index(folder.last) + 1
    choice: dict[str, Any] = {"type": click.Choice(STEPS), "metavar": "STEP"}
    return {
        "resume": _option("--resume", is_flag=True, help="Resume the interrupted run in --out."),
        "force": _option("--force", **choice, help=f"Compute again from this step on: {', '.join(STEPS[:end])}."),
        "first": _option("--from", "first", **choice, help="First step to compute."),
        "last": _option("--to", "last", **choice, default=folder.last, help="Last step to compute."),
    }


def _flag(flag: str, setting: SettingInfo) -> Decorator:
    """Declare the option of a setting, with its help, allowed values and default."""
    default = ",".join(setting.default) if setting.kind == "list" else toml_value(setting.default).strip('"')
    if setting.kind == "switch":
        return _option(flag, is_flag=True, default=None, help=f"{setting.help} ({setting.key}: default {default})")
    text = f"{setting.help} ({setting.key}: {setting.allowed}, default {default})"
    return _option(flag, metavar=setting.kind.upper(), help=text)


def _show_all(context: click.Context, _: click.Parameter, value: bool) -> None:
    """Print the help with every option."""
    if value:
        hidden = [option for option in context.command.params if isinstance(option, click.Option) and option.hidden]
        for option in hidden:
            option.hidden = False
        click.echo(context.get_help())
        for option in hidden:
            option.hidden = True
        context.exit()


_help_all: Decorator = click.option(
    "--help-all", is_flag=True, is_eager=True, expose_value=False, callback=_show_all, help="Show every option."
)


def _parameter_name(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")
