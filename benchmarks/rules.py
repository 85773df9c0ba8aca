"""What each piece of the rules is worth: `rules.py RUN ... [--links valid|test] [--members] [--json FILE] [--page]`.

RUN is a run folder that has come as far as `search`. Matching is done anew from its vectors, each piece on and off: no
rules; neighbours counted whatever their relations; relations aligned; pairs proposed beside those the search found.
A link counts as found if its target ranks first among all candidates of its source, and the other way round; candidates
are all entities that are no seeds, not only those with links. Printed are the share of links that are candidates, H@1
of both directions by each scoring, and seconds; settings of matching are the defaults. Choose by valid links of runs
with `--seeds-from train`; `--links test` is for the end. With several runs the mean and the sample deviation of each
data set's runs follow. With `--members` all runs of a data set are joined as the members of one ensemble, as
`train.members` would. `--page` writes the means of the JSON file into docs/measurements/alignment.md.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from largegnn.artifacts import AlignmentTask, CandidateGraph, EntityEmbeddings, FloatArray, IntArray, Neighbors
from largegnn.machine.metering import Meter
from largegnn.matching import support
from largegnn.matching.candidates import edge_ranks
from largegnn.matching.channels import ChannelContext, gather_candidates
from largegnn.matching.relations import RelationCounts
from largegnn.matching.scorings import ScoringContext, scoring_of, weighted_evidence
from largegnn.paper.origin import origin_of_run
from largegnn.paper.pages import put_table
from largegnn.paper.record_lines import add_line, read_lines
from largegnn.pipeline import resume_input
from largegnn.run import Run
from largegnn.runfolder.store import RunStore
from largegnn.settings import MatchSettings
from largegnn.stages.search import search

VARIANTS: dict[str, dict[str, Any]] = {
    "no rules": {"channels": ("structure",)},
    "neighbours": {"aligned": False, "rule_candidates": 0},
    "aligned relations": {"rule_candidates": 0},
    "aligned relations, proposed pairs": {},
}
JUDGED = "among all entities that are no seeds, mean of both directions"
SCORINGS = ("csls", "reciprocal", "partial_transport")
ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "results" / "rules.jsonl"
PAGE = ROOT / "docs" / "measurements" / "alignment.md"
Row = dict[str, Any]


@contextlib.contextmanager
def relations_ignored() -> Iterator[None]:
    """Every relation says what every other says."""

    def alike(task: AlignmentTask, *given: object) -> RelationCounts:
        none = np.zeros(0, dtype=np.float32)
        sides = task.num_source_relations, task.num_target_relations
        # Half a time seen together, where nothing was: that times 2 is 1.
        scales = [np.full(number, 2.0, dtype=np.float32) for number in sides]
        return RelationCounts(np.zeros(sides[0] + 1, dtype=np.int64), none.astype(np.int32), none, *scales)

    with mock.patch.object(support, "count_relations", alike):
        yield


def hits(graph: CandidateGraph, scores: FloatArray, links: IntArray) -> float:
    """The share of links (k, 2) that rank first, mean of both directions."""
    edges = graph.find(links)
    ranks = edge_ranks(graph, scores)
    there = edges[edges >= 0]
    return float(((ranks.source[there] == 1).sum() + (ranks.target[there] == 1).sum()) / (2 * len(links)))


def found_by(runs: list[Run]) -> tuple[EntityEmbeddings, Neighbors, Neighbors]:
    """The vectors of a run and what its search found; of several runs, their vectors side by side, searched here."""
    if len(runs) == 1:
        near = [runs[0].artifact(name, Neighbors) for name in ("source_neighbors", "target_neighbors")]
        return runs[0].final_embeddings(), near[0], near[1]
    vectors = [run.final_embeddings().vectors for run in runs]
    units = [one / np.maximum(np.linalg.norm(one, axis=1, keepdims=True), 1e-30) for one in vectors]
    joined = EntityEmbeddings(
        (np.concatenate(units, axis=1) / len(runs) ** 0.5).astype(np.float32),
        np.logical_and.reduce([run.final_embeddings().covered for run in runs]),
    )
    own = runs[0].settings
    made = search(runs[0].task(), joined, own.protocol, own.search, own.seed, "cpu")
    return joined, made.source_neighbors, made.target_neighbors


def measure(
    run: Run, found_vectors: tuple[EntityEmbeddings, Neighbors, Neighbors], variant: dict[str, Any], links: str
) -> Row:
    """One variant on the vectors of a run, or of an ensemble of runs like this one."""
    settings, match, task = run.settings, MatchSettings(), run.task()
    judged = task.valid_links if links == "valid" else task.test_links
    embeddings, *found = found_vectors
    context = ChannelContext(
        task.without_test_links(),
        task.seeds(settings.protocol.seeds_from),
        embeddings,
        found[0],
        found[1],
        match.csls_k,
        match.weights,
        rule_candidates=variant.get("rule_candidates", match.rule_candidates),
    )
    begin, meter = time.process_time(), Meter()
    with contextlib.nullcontext() if variant.get("aligned", True) else relations_ignored():
        graph = gather_candidates(variant.get("channels", ("structure", "rules")), context)
    row: Row = {"seconds": time.process_time() - begin, "peak_mb": round(meter.read().peak_memory_mb)}
    row["candidates"] = float((graph.find(judged) >= 0).mean())
    added = weighted_evidence(graph, match.weights)
    balance = ScoringContext(embeddings, match.temperature, match.iterations, torch.device("cpu"))
    for name in SCORINGS:
        row[name] = hits(graph, scoring_of(name).score(graph, added, balance), judged)
    return row


def main() -> None:
    """Every variant on every run; a line each, then the means by data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--links", choices=("valid", "test"), default="valid")
    parser.add_argument("--members", action="store_true", help="join the runs of a data set")
    parser.add_argument("--json", type=Path, default=RECORDS)
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    records: list[Row] = read_lines(options.json) if options.json.exists() else []
    rows: list[Row] = []
    for name, runs in _runs(options.runs, options.members):
        label = f"{len(runs)} members" if len(runs) > 1 else runs[0].folder.name
        found = found_by(runs)
        for variant, changes in VARIANTS.items():
            own = {"set": name, "run": label, "variant": variant, "links": options.links, "members": len(runs)}
            rows.append(
                own | {"rounds": runs[0].settings.rounds.number} | measure(runs[0], found, changes, options.links)
            )
            print(_line(label, variant, {key: [rows[-1][key]] for key in ("candidates", *SCORINGS, "seconds")}))
            seeds = ", ".join(str(run.settings.seed) for run in runs)
            origin = origin_of_run(runs[0], {"judged": JUDGED, "links": options.links, "random seeds": seeds})
            add_line(options.json, f"{name}, {label}, {variant}, {options.links}", origin, rows[-1])
    for (name, variant), group in _grouped(rows, "set", "variant").items():
        if len(group) > 1:
            columns = {key: [row[key] for row in group] for key in ("candidates", *SCORINGS, "seconds")}
            print(_line(name, f"{variant} ({len(group)})", columns))
    if options.page:
        put_table(PAGE, "pieces", page(records + rows))


def page(records: list[Row]) -> str:
    """The table of the page: means over runs, with the sample deviation where there are several."""
    head = ("set", "vectors", "rules", "runs", "links among candidates", "CSLS", "reciprocal", "partial transport")
    lines = [f"| {' | '.join((*head, 'CPU seconds'))} |", "|" + "---|" * (len(head) + 1)]
    ordered = sorted(records, key=lambda row: row["set"], reverse=True)
    for (name, members, rounds, variant), group in _grouped(ordered, "set", "members", "rounds", "variant").items():
        vectors = ("one model" if members == 1 else f"{members} members") + (f", {rounds} rounds" if rounds else "")
        cells = [_mean([row[key] for row in group]) for key in ("candidates", *SCORINGS)]
        seconds = f"{statistics.mean(row['seconds'] for row in group):.1f}"
        lines.append(f"| {name} | {vectors} | {variant} | {len(group)} | {' | '.join((*cells, seconds))} |")
    return "\n".join(lines)


def _runs(folders: list[Path], are_members: bool) -> Iterator[tuple[str, list[Run]]]:
    """Each run by itself with the name of its data set, or all runs of a data set together."""
    found: dict[str, list[Run]] = defaultdict(list)
    for folder in folders:
        given, settings = resume_input(folder)
        # Matching is done with the defaults here, whatever the run did.
        run = Run(settings.model_copy(update={"match": MatchSettings()}), RunStore(folder), given)
        found[given.folder.name if given and given.folder else folder.name].append(run)
    for name, runs in found.items():
        yield from [(name, runs)] if are_members else [(name, [run]) for run in runs]


def _grouped(rows: list[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return groups


def _mean(values: list[float]) -> str:
    shown = [statistics.mean(values), *([statistics.stdev(values)] if len(values) > 1 else [])]
    return " ± ".join(f"{value:.3f}".removeprefix("0") for value in shown)


def _line(name: str, label: str, columns: dict[str, list[float]]) -> str:
    shown = [
        f"{key} {statistics.mean(values):.4f}" + (f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else "")
        for key, values in columns.items()
    ]
    return "  ".join([f"{name:28}", f"{label:38}", *shown])


if __name__ == "__main__":
    main()
