"""`largegnn inspect`: measure a pair of graphs before anything is trained."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated

import typer

from largegnn.cli import options
from largegnn.cli.tables import number, print_table, share

if TYPE_CHECKING:
    from largegnn.planning.inspection import Inspection

__all__ = ["inspect_command"]

_MOST_PREDICATES = 15


@options.takes_request(*options.DATA_FLAGS)
def inspect_command(
    request: options.RunRequest,
    memory_gb: Annotated[
        float | None, typer.Option("--memory-gb", min=0.1, help="Memory to plan for. Default: what is free.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Count and measure two graphs, name the benchmark they are, and estimate what a run needs."""
    from largegnn import api  # polars and the like take a moment
    from largegnn.data.load import load_pair

    assert request.given is not None, "only a run that is resumed may have no input"
    pair = load_pair(request.given, request.settings.data, keep_literals=request.settings.keep_literals)
    inspection = api.inspect(pair, settings=request.settings, memory_mb=None if memory_gb is None else memory_gb * 1024)
    if as_json:
        typer.echo(json.dumps({"layout": pair.summary.layout, **inspection.to_dict()}, indent=1))
    else:
        _print_inspection(inspection)


def _print_inspection(inspection: Inspection) -> None:
    sides = [dataclasses.asdict(inspection.source), dataclasses.asdict(inspection.target)]
    histograms = [side.pop("degree_histogram") for side in sides]
    print_table(
        f"benchmark: {inspection.benchmark or 'none of the known ones'}",
        ("graph", "source", "target"),
        [(_label(key), *(_text(key, side[key]) for side in sides)) for key in sides[0]],
    )
    steps = sorted({*histograms[0], *histograms[1]}, key=lambda step: int(step.split("-")[0]))
    print_table(
        "entities by degree",
        ("degree", "source", "target"),
        [(step, *(number(histogram.get(step, 0)) for histogram in histograms)) for step in steps],
    )
    for side, predicates in (("source", inspection.source_predicates), ("target", inspection.target_predicates)):
        if predicates:
            print_table(
                f"literals of the {side}: kinds of its predicates",
                ("predicate", "kind", "entities", "examples"),
                [
                    (_local(one.predicate), one.kind, share(one.coverage), " | ".join(one.examples)[:60])
                    for one in predicates[:_MOST_PREDICATES]
                ],
            )
    seeds = dataclasses.asdict(inspection.seeds)
    merged = {key: getattr(inspection, key) for key in ("merged_nodes", "merged_edges", "merged_components")}
    print_table(
        f"links (seeds from {seeds.pop('seeds_from')})",
        ("", "value"),
        [(_label(key), _text(key, value)) for key, value in {**seeds, **merged}.items()],
    )
    size = inspection.size
    print_table(
        "estimate for a run (order of magnitude)",
        ("", "value"),
        [
            ("sensible number of subgraphs", number(size.num_parts)),
            ("entities per subgraph, at most", number(size.cap)),
            ("limited by memory", "yes" if size.limited_by_memory else "no"),
            ("memory of the graph, MB", number(round(size.graph_mb))),
            ("memory while training, MB", number(round(size.training_mb))),
            ("memory of all embeddings, MB", number(round(size.embeddings_mb))),
        ],
    )


_LABELS = {
    "components": "connected components",
    "largest_component_share": "share of the largest component",
    "many_to_one_links": "seeds that are not one-to-one",
    "source_share": "share of source entities that are a seed",
    "target_share": "share of target entities that are a seed",
    "within_one_hop": "share of entities within one hop of a seed",
    "within_two_hops": "share of entities within two hops of a seed",
}


def _label(key: str) -> str:
    return _LABELS.get(key, key.replace("_", " "))


def _text(key: str, value: float) -> str:
    return share(value) if key.endswith("share") or key.startswith("within") else number(value)


def _local(predicate: str) -> str:
    return predicate.rstrip("/#").rsplit("/", 1)[-1].rsplit("#", 1)[-1]
