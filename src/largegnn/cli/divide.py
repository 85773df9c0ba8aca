"""Define `largegnn divide`, which merges two graphs, divides them, and shows how much each division keeps.

A single division can be kept in a run folder (`--out`), from which later steps continue. If several methods or numbers
of parts are listed, their divisions are compared side by side.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from largegnn.artifacts import Cost, DivisionPlan, PartitionQuality
from largegnn.cli import options
from largegnn.cli.printing import number, print_table, share
from largegnn.errors import InputError
from largegnn.settings import METHODS, STEPS, Settings

__all__ = ["divide_command"]

_LAST_STEP = "subgraphs"
_STEPS = STEPS[: STEPS.index(_LAST_STEP) + 1]
_TITLE = (
    "number (n) and sizes of subgraphs, recalled landmarks, shares of triples and links with both ends in one subgraph"
)


@dataclass(frozen=True)
class _Row:
    """One division to show; `cap` limits the size of a subgraph, `quality` is None if no subgraphs were made."""

    settings: Settings
    cap: int | None
    costs: Mapping[str, Cost]
    quality: PartitionQuality | None

    @property
    def method(self) -> str:
        """The name of the method that these settings amount to: csg, metis, cps, sbp, cps+landmarks and so on."""
        partitioner, enabled = self.settings.division.partitioner, self.settings.landmarks.enabled
        if partitioner == "metis":
            return "csg" if enabled else "metis"
        return f"{partitioner}+landmarks" if enabled else partitioner


@click.command("divide")
@options.takes_request(
    *options.DATA_FLAGS,
    "--seed",
    "--device",
    "--cluster",
    "--cap",
    folder=options.RunFolder(out=None, last=_LAST_STEP, help="Keep the division in this run folder."),
)
@click.option(
    "--method", help=f"{', '.join(METHODS)}, or any partitioner. Separate several with commas. Default: auto."
)
@click.option("--parts", help="Number of subgraphs. Separate several with commas. (division.parts)")
@click.option(
    "--landmarks/--no-landmarks",
    default=None,
    help="Recall landmarks, or not, whatever the method. (landmarks.enabled)",
)
@click.option(
    "--plot", type=options.PATH, help="Write a chart of sizes, landmarks and shares kept to this .svg or .html file."
)
@options.json_option
def divide_command(
    request: options.RunRequest,
    method: str | None,
    parts: str | None,
    landmarks: bool | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Merge two graphs at their seeds and divide them into subgraphs."""
    from largegnn.review.charts import check_picture_file, division_charts

    if plot is not None:
        check_picture_file(plot)
    options.warm_up_in_background()
    combinations = list(itertools.product(_split(method), _split(parts)))
    if request.out is not None and len(combinations) > 1:
        raise InputError("--out keeps one division", found=f"{len(combinations)} divisions", fix="name one")
    requests = [request.with_changes(_changes(name, num_parts, landmarks)) for name, num_parts in combinations]
    rows = [_kept_row(requests[0])] if request.out is not None else _rows(requests)
    if plot is not None:
        division_charts([(row.method, row.quality) for row in rows if row.quality is not None]).save(plot)
    if as_json:
        plain = [_plain(row) for row in rows]
        click.echo(json.dumps(plain[0] if len(plain) == 1 else plain, indent=1))
        return
    _show(rows)


def _rows(requests: Sequence[options.RunRequest]) -> list[_Row]:
    """Read the pair once and divide it by each request in turn."""
    from largegnn.api import divide
    from largegnn.data.load import load_pair

    assert requests[0].given is not None
    pair = load_pair(requests[0].given, requests[0].settings.data, keep_literals=False)
    rows = []
    for request in requests:
        division = divide(pair.task, request.settings)
        rows.append(_Row(request.settings, division.cap, division.costs, division.quality))
    return rows


def _kept_row(request: options.RunRequest) -> _Row:
    """Divide in a run folder, or take the division that is already there."""
    from largegnn.api import Division

    run = request.run()
    done = [name for name in run.finished if name in _STEPS]
    cap = run.outcome("partition", DivisionPlan).cap if "partition" in done else None
    quality = Division.of(run).quality if _LAST_STEP in done else None
    return _Row(run.settings, cap, {name: cost for name, cost in run.costs().items() if name in done}, quality)


def _split(text: str | None) -> Sequence[str | None]:
    return [None] if text is None else [part.strip() for part in text.split(",")]


def _changes(method: str | None, parts: str | None, landmarks: bool | None) -> list[str]:
    """Translate the options to settings, as `key=value`; an explicit --landmarks or --no-landmarks wins.

    A method is a name used in the paper, or a partitioner of the table, to which landmarks are added.
    """
    changes = [] if parts is None else [f"division.parts={parts}"]
    if method is not None:
        method_settings = METHODS.get(method, {"division": {"partitioner": method}, "landmarks": {"enabled": True}})
        changes.append(f"division.partitioner={method_settings['division']['partitioner']}")
        changes.append(f"landmarks.enabled={str(method_settings['landmarks']['enabled']).lower()}")
    if landmarks is not None:
        changes.append(f"landmarks.enabled={str(landmarks).lower()}")
    return changes


def _plain(row: _Row) -> dict[str, object]:
    """Return a division as plain values for JSON."""
    values: dict[str, object] = {
        "method": row.method,
        "seeds_from": row.settings.protocol.seeds_from,
        "cap": row.cap,
        "seconds": {name: cost.seconds for name, cost in row.costs.items()},
        "peak_memory_mb": max((cost.peak_memory_mb for cost in row.costs.values()), default=0.0),
    }
    if row.quality is not None:
        sizes = row.quality.sizes
        values |= {"parts": len(sizes), "mean_size": sum(sizes) / len(sizes), "max_size": max(sizes)}
        values |= {"landmarks": sum(row.quality.num_landmarks), **dataclasses.asdict(row.quality)}
    return values


def _show(rows: Sequence[_Row]) -> None:
    finished = [(row, row.quality) for row in rows if row.quality is not None]
    print_table(
        f"{_TITLE}; seeds from {rows[0].settings.protocol.seeds_from}",
        ("method", "n", "mean", "max", "recalled", "triples", "train", "valid", "test", "s"),
        [
            (
                row.method,
                number(len(quality.sizes)),
                number(round(sum(quality.sizes) / len(quality.sizes))),
                number(max(quality.sizes)),
                number(sum(quality.num_landmarks)),
                *map(share, (quality.triples_kept, quality.train_kept, quality.valid_kept, quality.test_kept)),
                f"{sum(cost.seconds for name, cost in row.costs.items() if name != 'load'):.2f}",
            )
            for row, quality in finished
        ],
    )
    steps = [step for step in STEPS if step in rows[0].costs]
    print_table(
        "seconds of each step, and peak memory",
        ("method", *steps, "peak MB"),
        [
            (
                row.method,
                *(f"{row.costs[step].seconds:.2f}" for step in steps),
                number(round(max(cost.peak_memory_mb for cost in row.costs.values()))),
            )
            for row in rows
        ],
    )
