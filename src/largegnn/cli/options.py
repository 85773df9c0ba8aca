"""Options several commands share, declared once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from largegnn import api
from largegnn.data.inputs import DataInput
from largegnn.errors import InputError
from largegnn.runs.pipeline import resume_input
from largegnn.settings import PRESETS, Settings, resolve

__all__ = [
    "DeviceOption",
    "FoldOption",
    "FormatOption",
    "JsonOption",
    "PresetOption",
    "ResumeOption",
    "SeedOption",
    "SeedsFromOption",
    "SeedsOption",
    "SetOption",
    "SettingsFileOption",
    "SkipUnknownOption",
    "SourceArgument",
    "TargetArgument",
    "TestLinksOption",
    "ValidLinksOption",
    "ValidShareOption",
    "common_flags",
    "input_and_settings",
    "run_settings",
]

SourceArgument = Annotated[Path, typer.Argument(help="a data set folder, or the triples of the source graph")]
TargetArgument = Annotated[Path | None, typer.Argument(help="the triples of the target graph")]
SeedsOption = Annotated[Path | None, typer.Option("--seeds", help="known links: two columns, or owl:sameAs triples")]
ValidLinksOption = Annotated[
    Path | None, typer.Option("--valid-links", help="links that choose options, not trained on")
]
TestLinksOption = Annotated[Path | None, typer.Option("--test-links", help="links for the final report only")]
ValidShareOption = Annotated[
    float | None, typer.Option("--valid-share", help="share of the seeds held out as valid links  [data.valid_share]")
]
FormatOption = Annotated[str | None, typer.Option("--format", help="format of the triple files  [data.format]")]
FoldOption = Annotated[int | None, typer.Option("--fold", help="fold of an OpenEA folder  [data.fold]")]
SkipUnknownOption = Annotated[
    bool, typer.Option("--skip-unknown", help="leave out seeds that name unknown entities  [data.skip_unknown]")
]
SeedsFromOption = Annotated[
    str | None, typer.Option("--seeds-from", help="train (honest) or train+valid (as the paper)  [protocol.seeds_from]")
]
DeviceOption = Annotated[str | None, typer.Option("--device", help="auto, cpu or cuda  [device]")]
SeedOption = Annotated[int | None, typer.Option("--seed", help="random seed  [seed]")]
PresetOption = Annotated[str | None, typer.Option("--preset", help=f"a named set of settings: {', '.join(PRESETS)}")]
SettingsFileOption = Annotated[Path | None, typer.Option("--config", help="a TOML file of settings")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="one setting, as section.key=value; may be repeated")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="go on with the run in --out, as it was begun")]
JsonOption = Annotated[bool, typer.Option("--json", help="print JSON instead of a table")]


def common_flags(
    *,
    valid_share: float | None,
    form: str | None = None,
    fold: int | None,
    skip_unknown: bool,
    seeds_from: str | None,
    seed: int | None = None,
    device: str | None = None,
) -> dict[str, object | None]:
    """The settings behind the flags several commands share; None leaves a setting alone."""
    return {
        "data.valid_share": valid_share,
        "data.format": form,
        "data.fold": fold,
        "data.skip_unknown": skip_unknown or None,
        "protocol.seeds_from": seeds_from,
        "seed": seed,
        "device": device,
    }


def input_and_settings(
    paths: tuple[Path | None, Path | None, Path | None, Path | None, Path | None],
    out: Path,
    resume: bool,
    preset: str | None,
    file: Path | None,
    overrides: list[str] | None,
    flags: Mapping[str, object | None],
) -> tuple[DataInput | None, Settings]:
    """What to run on, and how: from the command line, or from the run folder to be resumed.

    `paths` are source (or folder), target, seeds, valid links and test links. Settings given with --resume change those
    of the run folder; the pipeline refuses them where a finished stage was made with others.
    """
    source, target, seeds, valid_links, test_links = paths
    if resume:
        if any(path is not None for path in paths):
            raise InputError("--resume takes input and settings from the run folder", fix="leave the input out")
        given, begun = resume_input(out)
        return given, run_settings(preset, file, overrides, flags, begun)
    if source is None:
        raise InputError("no input was given", expected="FOLDER, SOURCE TARGET --seeds FILE, or --resume")
    given = api.data_input(source, target, seeds, valid_links=valid_links, test_links=test_links)
    return given, run_settings(preset, file, overrides, flags)


def run_settings(
    preset: str | None,
    file: Path | None,
    overrides: list[str] | None,
    flags: Mapping[str, object | None],
    begun: Settings | None = None,
) -> Settings:
    """The settings a command line asks for; its own flags win over `--set`, a file, a preset and those `begun` with."""
    written = [f"{key}={_written(value)}" for key, value in flags.items() if value is not None]
    values = None if begun is None else begun.model_dump()
    return resolve(Settings, PRESETS, preset, file, [*(overrides or []), *written], values)


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
