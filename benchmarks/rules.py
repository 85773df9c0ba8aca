"""What each piece of the rules is worth: `rules.py RUN ... [--links valid|test] [--json FILE]`.

RUN is a run folder that has come as far as `search`. Matching is done anew from its vectors, each piece on and off: no
rules; neighbours counted whatever their relations; relations aligned; pairs proposed beside those the search found.
A link counts as found if its target ranks first among all candidates of its source, and the other way round; candidates
are all entities that are no seeds, not only those with links. Printed are the share of links that are candidates, H@1
of both directions by each scoring, and seconds; settings of matching are the defaults. Choose by valid links of runs
with `--seeds-from train`; `--links test` is for the end. With several runs the mean and the sample deviation of each
data set's runs follow.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from largegnn.artifacts import AlignmentTask, CandidateGraph, FloatArray, IntArray, Neighbors
from largegnn.matching import support
from largegnn.matching.candidates import edge_ranks
from largegnn.matching.channels import ChannelContext, gather_candidates
from largegnn.matching.relations import RelationCounts
from largegnn.matching.scorings import ScoringContext, scoring_of, weighted_evidence
from largegnn.runs.pipeline import resume_input
from largegnn.runs.run import Run
from largegnn.runs.store import RunStore
from largegnn.settings import MatchSettings

VARIANTS: dict[str, dict[str, Any]] = {
    "no rules": {"channels": ("structure",)},
    "neighbours": {"aligned": False, "rule_candidates": 0},
    "aligned relations": {"rule_candidates": 0},
    "aligned relations, proposed pairs": {},
}
SCORINGS = ("csls", "reciprocal", "partial_transport")
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


def measure(run: Run, variant: dict[str, Any], links: str) -> Row:
    """One variant on the vectors of a run."""
    settings, match, task = run.settings, MatchSettings(), run.task()
    judged = task.valid_links if links == "valid" else task.test_links
    embeddings = run.final_embeddings()
    found = [run.artifact(name, Neighbors) for name in ("source_neighbors", "target_neighbors")]
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
    begin = time.process_time()
    with contextlib.nullcontext() if variant.get("aligned", True) else relations_ignored():
        graph = gather_candidates(variant.get("channels", ("structure", "rules")), context)
    row: Row = {"seconds": time.process_time() - begin, "candidates": float((graph.find(judged) >= 0).mean())}
    added = weighted_evidence(graph, match.weights)
    balance = ScoringContext(embeddings, match.temperature, match.iterations, torch.device("cpu"))
    for name in SCORINGS:
        row[name] = hits(graph, scoring_of(name).score(graph, added, balance), judged)
    return row


def main() -> None:
    """Every variant on every run; a line each, then the means by data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--links", choices=("valid", "test"), default="valid")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[Row] = []
    for folder in options.runs:
        given, settings = resume_input(folder)
        run = Run(settings, RunStore(folder), given)
        name = folder.name.rpartition("_")[0] or folder.name
        for label, variant in VARIANTS.items():
            rows.append({"set": name, "run": folder.name, "variant": label} | measure(run, variant, options.links))
            print(_line(folder.name, label, {key: [rows[-1][key]] for key in ("candidates", *SCORINGS, "seconds")}))
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["set"], row["variant"]].append(row)
    for (name, label), group in groups.items():
        if len(group) > 1:
            columns = {key: [row[key] for row in group] for key in ("candidates", *SCORINGS, "seconds")}
            print(_line(name, f"{label} ({len(group)})", columns))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _line(name: str, label: str, columns: dict[str, list[float]]) -> str:
    shown = [
        f"{key} {statistics.mean(values):.4f}" + (f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else "")
        for key, values in columns.items()
    ]
    return "  ".join([f"{name:28}", f"{label:38}", *shown])


if __name__ == "__main__":
    main()
