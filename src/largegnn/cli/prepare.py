"""`largegnn prepare`: the first stages of a run, up to the merged graph, in a run folder that later stages continue."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from largegnn.api import data_input
from largegnn.cli import options
from largegnn.cli.tables import print_table
from largegnn.errors import InputError
from largegnn.pipeline import STAGE_NAMES, Run, resume_input, run_pipeline

__all__ = ["prepare_command"]

_STAGES = ", ".join(STAGE_NAMES)


def prepare_command(
    source: Annotated[Path | None, typer.Argument(help="a data set folder, or the triples of the source graph")] = None,
    target: options.TargetArgument = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="the run folder")] = Path("run"),
    seeds: options.SeedsOption = None,
    valid_links: options.ValidLinksOption = None,
    test_links: options.TestLinksOption = None,
    valid_share: options.ValidShareOption = None,
    form: options.FormatOption = None,
    fold: options.FoldOption = None,
    skip_unknown: options.SkipUnknownOption = False,
    seeds_from: options.SeedsFromOption = None,
    seed: options.SeedOption = None,
    preset: options.PresetOption = None,
    config: options.SettingsFileOption = None,
    overrides: options.SetOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="go on with the run in --out, input and settings included")
    ] = False,
    force: Annotated[str | None, typer.Option("--force", help=f"compute anew from this stage on: {_STAGES}")] = None,
    first: Annotated[
        str | None, typer.Option("--from", help="the first stage to compute; earlier ones must be there")
    ] = None,
    last: Annotated[str | None, typer.Option("--to", help="the last stage to compute")] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Read, check and merge two graphs into a run folder."""
    if resume:
        if source is not None:
            raise InputError("--resume takes input and settings from the run folder", fix="leave the input out")
        given, settings = resume_input(out)
    else:
        if source is None:
            raise InputError("no input was given", expected="FOLDER, SOURCE TARGET --seeds FILE, or --resume")
        given = data_input(source, target, seeds, valid_links=valid_links, test_links=test_links)
        flags = {
            "data.valid_share": valid_share,
            "data.format": form,
            "data.fold": fold,
            "data.skip_unknown": skip_unknown or None,
            "protocol.seeds_from": seeds_from,
            "seed": seed,
        }
        settings = options.run_settings(preset, config, overrides, flags)
    run = run_pipeline(out, given, settings, force=force, first=first, last=last)
    _print_summary(run, as_json)


def _print_summary(run: Run, as_json: bool) -> None:
    done = run.store.stages
    stages = {name: done[name] for name in STAGE_NAMES if name in done}
    if as_json:
        keys = ("seconds", "peak_memory_mb", "facts", "finished")
        summary = {name: {key: getattr(record, key) for key in keys} for name, record in stages.items()}
        typer.echo(json.dumps({"folder": str(run.store.folder), "stages": summary}, indent=1))
        return
    rows = [
        (
            name,
            f"{record.seconds:.2f}",
            f"{record.peak_memory_mb:,.0f}",
            ", ".join(entry["file"] for entry in record.files.values()),
        )
        for name, record in stages.items()
    ]
    print_table(f"run folder {run.store.folder}", ("stage", "seconds", "peak MB", "files"), rows)
