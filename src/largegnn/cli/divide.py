"""`largegnn divide`: merge two graphs, divide them, and say how much of them survives.

One division may be kept in a run folder (`--out`), which later stages continue. Several methods or numbers of parts,
given as lists, are compared side by side.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from largegnn import api
from largegnn.artifacts import PartitionQuality
from largegnn.cli import options
from largegnn.cli.tables import number, print_table, share
from largegnn.data.load import load_pair
from largegnn.division import warm_up
from largegnn.errors import InputError
from largegnn.review.division_plot import check_plot_file, plot_divisions
from largegnn.runs.pipeline import run_pipeline
from largegnn.settings import METHODS, Settings
from largegnn.stages import STAGE_NAMES, Run

__all__ = ["divide_command"]

_LAST = "subgraphs"
_STAGES = ", ".join(STAGE_NAMES[: STAGE_NAMES.index(_LAST) + 1])
_TITLE = "n subgraphs, their sizes, landmarks recalled, shares with both ends in one subgraph"
Row = dict[str, Any]


def divide_command(
    source: Annotated[Path | None, typer.Argument(help="a data set folder, or the triples of the source graph")] = None,
    target: options.TargetArgument = None,
    method: Annotated[
        str | None, typer.Option("--method", help=f"{', '.join(METHODS)}, or several, with commas; default csg")
    ] = None,
    parts: Annotated[
        str | None, typer.Option("--parts", help="number of subgraphs, or several, with commas  [division.parts]")
    ] = None,
    cap: Annotated[int | None, typer.Option("--cap", help="entities per subgraph, at most  [landmarks.cap]")] = None,
    landmarks: Annotated[
        bool | None, typer.Option("--landmarks/--no-landmarks", help="over any method  [landmarks.enabled]")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="keep the division in this run folder")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="draw sizes, landmarks and shares kept: .svg, .png, .html")
    ] = None,
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
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in --out, as it was begun")] = False,
    force: Annotated[str | None, typer.Option("--force", help=f"compute anew from this stage on: {_STAGES}")] = None,
    first: Annotated[str | None, typer.Option("--from", help="first stage to compute")] = None,
    last: Annotated[str, typer.Option("--to", help="last stage to compute")] = _LAST,
    as_json: options.JsonOption = False,
) -> None:
    """Merge two graphs at their seeds and divide them into subgraphs."""
    if plot is not None:
        check_plot_file(plot)
    # Loading compiled code takes a moment; it goes on while the files are read. Not a daemon: one that is cut off when
    # the program ends with an error adds a traceback to it.
    threading.Thread(target=warm_up).start()
    flags = {"landmarks.cap": cap} | options.common_flags(
        valid_share=valid_share,
        form=form,
        fold=fold,
        skip_unknown=skip_unknown,
        seeds_from=seeds_from,
        seed=seed,
        device=device,
    )
    wanted = list(itertools.product(_listed(method), _listed(parts)))
    if out is not None and len(wanted) > 1:
        raise InputError("--out keeps one division", found=f"{len(wanted)} were asked for", fix="name one")
    if resume and out is None:
        raise InputError("--resume needs the run folder", expected="--resume --out DIR")
    paths = (source, target, seeds, valid_links, test_links)
    given, chosen = None, []
    for name, count in wanted:
        own = flags | _method_flags(name, count, landmarks)
        given, settings = options.input_and_settings(paths, out or Path(), resume, preset, config, overrides, own)
        chosen.append(settings)
    if out is not None:
        rows = [_row_of_run(run_pipeline(out, given, chosen[0], force=force, first=first, last=last))]
    else:
        assert given is not None
        pair = load_pair(given, chosen[0].data)
        rows = [_row_of_division(api.divide(pair.task, settings), settings) for settings in chosen]
    if plot is not None:
        plot_divisions([row for row in rows if "sizes" in row], plot)
    _show(rows, as_json)


def _listed(text: str | None) -> Sequence[str | None]:
    return [None] if text is None else [part.strip() for part in text.split(",")]


def _method_flags(method: str | None, parts: str | None, landmarks: bool | None) -> dict[str, object | None]:
    """The settings behind a method's name; an explicit --landmarks or --no-landmarks wins."""
    flags: dict[str, object | None] = {"division.parts": parts}
    if method is not None:
        if method not in METHODS:
            raise InputError(f"no method is called {method!r}", expected=f"one of {', '.join(METHODS)}")
        sets = METHODS[method]
        flags["division.partitioner"] = sets["division"]["partitioner"]
        flags["landmarks.enabled"] = sets["landmarks"]["enabled"]
    if landmarks is not None:
        flags["landmarks.enabled"] = landmarks
    return flags


def _method_name(settings: Settings) -> str:
    """The name of a method by its settings: csg, metis, cps, sbp, or cps+landmarks and the like."""
    partitioner, enabled = settings.division.partitioner, settings.landmarks.enabled
    if partitioner == "metis":
        return "csg" if enabled else "metis"
    return f"{partitioner}+landmarks" if enabled else partitioner


def _row_of_division(division: api.Division, settings: Settings) -> Row:
    head = {"method": _method_name(settings), "seeds_from": settings.protocol.seeds_from, "cap": division.cap}
    return head | {"seconds": division.seconds, "peak_memory_mb": division.peak_memory_mb} | _shares(division.quality)


def _row_of_run(run: Run) -> Row:
    outcomes = {name: run.outcome(name) for name in run.finished() if name in _STAGES}
    row: Row = {"method": _method_name(run.settings), "seeds_from": run.settings.protocol.seeds_from}
    if "partition" in outcomes:
        row["cap"] = outcomes["partition"].facts["cap"]
    row["seconds"] = {name: outcome.seconds for name, outcome in outcomes.items()}
    row["peak_memory_mb"] = max(outcome.peak_memory_mb for outcome in outcomes.values())
    if _LAST in outcomes:
        row |= _shares(api.quality_of(run))
    return row


def _shares(quality: PartitionQuality) -> Row:
    sizes = quality.sizes
    return {
        "parts": len(sizes),
        "mean_size": sum(sizes) / len(sizes),
        "max_size": max(sizes),
        "landmarks": sum(quality.num_landmarks),
        "uncovered": quality.num_uncovered,
        "edge_cut": quality.edge_cut,
        "triples_kept": quality.triples_kept,
        "train_kept": quality.train_kept,
        "valid_kept": quality.valid_kept,
        "test_kept": quality.test_kept,
        "sizes": list(sizes),
        "source_sizes": list(quality.source_sizes),
        "num_landmarks": list(quality.num_landmarks),
    }


def _show(rows: list[Row], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(rows[0] if len(rows) == 1 else rows, indent=1))
        return
    finished = [row for row in rows if "sizes" in row]
    print_table(
        f"{_TITLE}; seeds from {rows[0]['seeds_from']}",
        ("method", "n", "mean", "max", "recalled", "triples", "train", "valid", "test", "s"),
        [
            (
                str(row["method"]),
                number(row["parts"]),
                number(round(row["mean_size"])),
                number(row["max_size"]),
                number(row["landmarks"]),
                *(share(row[f"{kind}_kept"]) for kind in ("triples", "train", "valid", "test")),
                f"{sum(seconds for step, seconds in row['seconds'].items() if step != 'load'):.2f}",
            )
            for row in finished
        ],
    )
    steps = [step for step in STAGE_NAMES if step in rows[0]["seconds"]]
    print_table(
        "seconds of each step, and peak memory",
        ("method", *steps, "peak MB"),
        [
            (
                str(row["method"]),
                *(f"{row['seconds'][step]:.2f}" for step in steps),
                number(round(row["peak_memory_mb"])),
            )
            for row in rows
        ],
    )
