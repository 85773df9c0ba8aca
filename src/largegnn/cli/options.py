"""What the command line of a run takes, declared once.

In: input paths, flags, `--preset`, `--config`, `--set`, and, where there is a run folder, `--out`, `--resume`,
`--force`, `--from`, `--to`. Out: one `RunRequest`. A command says which flags it has and gets the request:

    @options.takes_request(*options.DATA_FLAGS, *options.RUN_FLAGS, folder=options.RunFolder(last="integrate"))
    def train_command(request: options.RunRequest, as_json: options.JsonOption = False) -> None:
        run = run_pipeline(request.out, request.given, request.settings, force=request.force, ...)

The flags are those of `flags.FLAGS`; a new one is a line there. Options of a command's own are declared as usual.
"""

from __future__ import annotations

import dataclasses
import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from largegnn.cli.flags import Changes, changes_of, flag_parameters, replace_parameter
from largegnn.errors import InputError
from largegnn.settings import PRESETS, Settings, resolve
from largegnn.settings import STEPS

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

DATA_FLAGS = (
    "--valid-share",
    "--format",
    "--fold",
    "--skip-unknown",
    "--source-key",
    "--target-key",
    "--seeds-from",
)
RUN_FLAGS = ("--seed", "--device", "--cluster", "--channels", "--rounds", "--min-precision")

SourceArgument = Annotated[Path | None, typer.Argument(help="A data set folder, or the triples of the source graph.")]
TargetArgument = Annotated[Path | None, typer.Argument(help="The triples of the target graph.")]
SeedsOption = Annotated[Path | None, typer.Option("--seeds", help="Known links: two columns, or owl:sameAs triples.")]
ValidLinksOption = Annotated[
    Path | None,
    typer.Option(
        "--valid-links", help="Links that choose epoch and threshold and calibrate the confidence. Not trained on."
    ),
]
TestLinksOption = Annotated[
    Path | None, typer.Option("--test-links", help="Links that only measure: the stage evaluate alone reads them.")
]
SourceNamesOption = Annotated[
    Path | None, typer.Option("--source-names", help="Names of source entities: two columns, entity and name.")
]
TargetNamesOption = Annotated[
    Path | None, typer.Option("--target-names", help="Names of target entities: two columns, entity and name.")
]
DecisionsOption = Annotated[
    Path | None,
    typer.Option("--decisions", help="What reviewers decided: accepted pairs become seeds, rejected are forbidden."),
]
PresetOption = Annotated[str | None, typer.Option("--preset", help=f"Named settings: {', '.join(PRESETS)}.")]
SettingsFileOption = Annotated[Path | None, typer.Option("--config", help="A TOML file of settings.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="One setting, as section.key=value. May be repeated.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Resume the interrupted run in --out.")]

_INPUT = {
    "source": SourceArgument,
    "target": TargetArgument,
    "seeds": SeedsOption,
    "valid_links": ValidLinksOption,
    "test_links": TestLinksOption,
    "source_names": SourceNamesOption,
    "target_names": TargetNamesOption,
    "decisions": DecisionsOption,
}
_SETTINGS = {"preset": PresetOption, "config": SettingsFileOption, "overrides": SetOption}


@dataclass(frozen=True)
class RunFolder:
    """The run folder a command works in: where it is by default, if anywhere, and the last stage it computes."""

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
        """Bring the run folder up to the last stage asked for."""
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
    parameters = [*map(_optional, _INPUT, _INPUT.values())]
    parameters += [] if folder is None else [_optional("out", _out_option(folder), folder.out)]
    parameters += [*flag_parameters(flags), *map(_optional, _SETTINGS, _SETTINGS.values())]
    parameters += [] if folder is None else _stage_parameters(folder)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        return replace_parameter(
            command, "request", parameters, lambda values: _request(values, changes_of(flags, values))
        )

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

    Settings given with --resume change those of the run folder; the pipeline refuses them where a finished stage was
    made with others.
    """
    paths = {name: values[name] for name in _INPUT}
    out, resume = values.get("out"), values.get("resume", False)
    given, begun = _resumed(out, paths) if resume else (_given(paths), None)
    settings = run_settings(values["preset"], values["config"], values["overrides"], changes, begun)
    stages = {name: values.get(name) for name in ("force", "first", "last")}
    return RunRequest(given, settings, out, resume, **stages)


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


def _optional(name: str, annotation: Any, default: object = None) -> inspect.Parameter:
    default = False if annotation is ResumeOption else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _out_option(folder: RunFolder) -> Any:
    return Annotated[Path | None, typer.Option("--out", "-o", help=folder.help)]


def _stage_parameters(folder: RunFolder) -> list[inspect.Parameter]:
    end = len(STEPS) if folder.last is None else STEPS.index(folder.last) + 1
    stages = ", ".join(STEPS[:end])
    force = typer.Option("--force", help=f"Compute again from this stage on: {stages}.")
    return [
        _optional("resume", ResumeOption),
        _optional("force", Annotated[str | None, force]),
        _optional("first", Annotated[str | None, typer.Option("--from", help="First stage to compute.")]),
        _optional("last", Annotated[str | None, typer.Option("--to", help="Last stage to compute.")], folder.last),
    ]
