"""`largegnn inspect`: what a pair of graphs looks like, before anything is trained."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from largegnn.cli import options
from largegnn.cli.tables import number, print_table, share

if TYPE_CHECKING:
    from largegnn.planning.inspection import GraphFacts, Inspection

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
    inspection = api.inspect(pair, request.settings, None if memory_gb is None else memory_gb * 1024)
    if as_json:
        typer.echo(json.dumps({"layout": pair.summary.layout, **inspection.to_dict()}, indent=1))
    else:
        _print_inspection(inspection)


def _print_inspection(inspection: Inspection) -> None:
    source, target = inspection.source, inspection.target
    print_table(
        f"benchmark: {inspection.benchmark or 'none of the known ones'}",
        ("graph", "source", "target"),
        [(label, *(_fact(facts, key) for facts in (source, target))) for key, label in _GRAPH_ROWS.items()],
    )
    steps = list(dict.fromkeys([*source.degree_histogram, *target.degree_histogram]))
    steps.sort(key=lambda step: int(step.split("-")[0]))
    print_table(
        "entities by degree",
        ("degree", "source", "target"),
        [(step, *(number(facts.degree_histogram.get(step, 0)) for facts in (source, target))) for step in steps],
    )
    for side, predicates in (("source", inspection.source_predicates), ("target", inspection.target_predicates)):
        if predicates:
            print_table(
                f"literals of the {side}: what its predicates hold",
                ("predicate", "kind", "entities", "examples"),
                [
                    (_local(one.predicate), one.kind, share(one.coverage), " | ".join(one.examples)[:60])
                    for one in predicates[:_MOST_PREDICATES]
                ],
            )
    seeds = inspection.seeds
    print_table(
        f"links (seeds from {seeds.seeds_from})",
        ("", "value"),
        [
            ("train / valid / test", " / ".join(map(number, (seeds.train_links, seeds.valid_links, seeds.test_links)))),
            ("seeds that are not one-to-one", number(seeds.many_to_one_links)),
            ("source entities that are a seed", share(seeds.source_share)),
            ("target entities that are a seed", share(seeds.target_share)),
            ("entities within one hop of a seed", share(seeds.within_one_hop)),
            ("entities within two hops of a seed", share(seeds.within_two_hops)),
            ("merged nodes / edges", f"{number(inspection.merged_nodes)} / {number(inspection.merged_edges)}"),
            ("merged components", number(inspection.merged_components)),
        ],
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


_GRAPH_ROWS = {
    "entities": "entities",
    "relations": "relations",
    "triples": "triples",
    "attribute_triples": "attribute triples",
    "isolated_entities": "isolated entities",
    "mean_degree": "mean degree",
    "median_degree": "median degree",
    "degree_99th_percentile": "99th percentile of degree",
    "max_degree": "largest degree",
    "components": "connected components",
    "largest_component_share": "share of the largest component",
}


def _fact(facts: GraphFacts, key: str) -> str:
    value = getattr(facts, key)
    return share(value) if key.endswith("share") else number(value)


def _local(predicate: str) -> str:
    return predicate.rstrip("/#").rsplit("/", 1)[-1].rsplit("#", 1)[-1]
