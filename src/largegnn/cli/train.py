"""`largegnn train`: everything up to one vector for each entity, in a run folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from largegnn.cli import options
from largegnn.cli.tables import print_table
from largegnn.runs.pipeline import run_pipeline
from largegnn.stages import STAGE_NAMES, Run

__all__ = ["train_command"]

_LAST = "integrate"
_STAGES = ", ".join(STAGE_NAMES)


def train_command(
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
    device: options.DeviceOption = None,
    preset: options.PresetOption = None,
    config: options.SettingsFileOption = None,
    overrides: options.SetOption = None,
    resume: options.ResumeOption = False,
    force: Annotated[str | None, typer.Option("--force", help=f"compute anew from this stage on: {_STAGES}")] = None,
    first: Annotated[str | None, typer.Option("--from", help="first stage to compute")] = None,
    last: Annotated[str, typer.Option("--to", help="last stage to compute")] = _LAST,
    as_json: options.JsonOption = False,
) -> None:
    """Merge, divide, train and bring all entities into one space."""
    flags = options.common_flags(
        valid_share=valid_share,
        form=form,
        fold=fold,
        skip_unknown=skip_unknown,
        seeds_from=seeds_from,
        seed=seed,
        device=device,
    )
    paths = (source, target, seeds, valid_links, test_links)
    given, settings = options.input_and_settings(paths, out, resume, preset, config, overrides, flags)
    _show(run_pipeline(out, given, settings, force=force, first=first, last=last), out, as_json)


def _show(run: Run, out: Path, as_json: bool) -> None:
    outcomes = {name: run.outcome(name) for name in run.finished()}
    history: list[dict[str, Any]] = outcomes["train"].facts["history"] if "train" in outcomes else []
    if as_json:
        stages = {
            name: {"seconds": outcome.seconds, "peak_memory_mb": outcome.peak_memory_mb}
            for name, outcome in outcomes.items()
        }
        typer.echo(json.dumps({"folder": str(out), "stages": stages, "history": history}, indent=1))
        return
    looked = [epoch for epoch in history if epoch["valid_hits"] is not None]
    if looked:
        print_table(
            "valid links among themselves, mean of both directions, cosine",
            ("epoch", "loss", "H@1"),
            [(str(epoch["epoch"] + 1), f"{epoch['loss']:.3f}", f"{epoch['valid_hits']:.4f}") for epoch in looked],
        )
    rows = [(name, f"{outcome.seconds:.2f}", f"{outcome.peak_memory_mb:,.0f}") for name, outcome in outcomes.items()]
    print_table(f"run folder {out}", ("stage", "seconds", "peak MB"), rows)
