"""The stage `evaluate`: how good an alignment is by the test links, which no other stage reads (section 6).

Ideal setting: every test source ranks all test targets and the other way round, for each scoring; where that is too
much work for the device, cosine and CSLS rank an even sample of the test links, still among all of them. Real setting:
pairs among all entities that are no seeds, judged by the test links. Every figure comes with its protocol.
Valid links that are no seeds take part like any other entity; a pair that is one of them counts neither way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from largegnn.artifacts import (
    Alignment,
    AlignmentTask,
    EntityEmbeddings,
    Evaluation,
    IntArray,
    Neighbors,
    PairFigures,
    Partition,
    Protocol,
    are_among,
)
from largegnn.artifacts.literal_evidence import LiteralEvidence
from largegnn.division.quality import share_kept
from largegnn.evaluation.measures import summarise
from largegnn.evaluation.pair_metrics import is_complete, precision_recall_f1
from largegnn.machine.devices import choose_device
from largegnn.machine.pieces import by_all_processors
from largegnn.matching.candidates import build_candidates, csls
from largegnn.matching.channels import similarity_weights
from largegnn.matching.reliability import reliability
from largegnn.matching.selection import mutual_knn, mutual_top1
from largegnn.settings import (
    DataSettings,
    EvaluateSettings,
    MatchSettings,
    ProtocolSettings,
    RoundSettings,
    SearchSettings,
)
from largegnn.stages.contest import Contest

__all__ = ["Evaluated", "evaluate"]


@dataclass(frozen=True)
class Evaluated:
    """The figures of a run."""

    outcome: Evaluation


def evaluate(
    task_with_test_links: AlignmentTask,
    final_embeddings: EntityEmbeddings,
    alignment: Alignment,
    source_neighbors: Neighbors,
    target_neighbors: Neighbors,
    membership: Partition | None,
    literal_evidence: LiteralEvidence,
    data: DataSettings,
    protocol: ProtocolSettings,
    channels: tuple[str, ...],
    match: MatchSettings,
    rounds: RoundSettings,
    evaluate: EvaluateSettings,
    search: SearchSettings,
    run_seed: int,
    device: str,
) -> Evaluated:
    """Figures of both settings with their protocol; None for what there are no test links to measure by."""
    task = task_with_test_links
    ideal, real, rows, num_ranked = None, None, None, None
    if len(task.test_links):
        ranking = Contest(task, final_embeddings, match, run_seed, choose_device(device), search.max_memory_gb)
        evidence = literal_evidence.among(task.free(protocol.seeds_from))
        weights = similarity_weights(task.held_out(protocol.seeds_from), source_neighbors, evidence)
        ranks = ranking.ranks(channels, task.seeds(protocol.seeds_from), evidence, weights)
        ideal = {name: summarise(found, evaluate.measures) for name, found in ranks.items()}
        num_ranked = len(ranks["cosine"].source_to_target)
        known = task.held_out(protocol.seeds_from)
        known = known[~are_among(known, task.test_links)]
        real = _real(task, known, alignment, source_neighbors, target_neighbors, match)
        judged = alignment.mutual & ~are_among(alignment.pairs, known)
        right = are_among(alignment.pairs[judged], task.test_links)
        rows = reliability(alignment.confidence[judged], right)
    measured = _protocol(task, data, protocol, channels, match, rounds, evaluate, run_seed, num_ranked)
    kept = None if membership is None else share_kept(task.test_links, membership)
    return Evaluated(Evaluation(measured, ideal, real, rows, kept))


def _protocol(
    task: AlignmentTask,
    data: DataSettings,
    protocol: ProtocolSettings,
    channels: tuple[str, ...],
    match: MatchSettings,
    rounds: RoundSettings,
    evaluate: EvaluateSettings,
    run_seed: int,
    num_ranked: int | None,
) -> Protocol:
    """What every figure of a run was measured under."""
    num_seeds = len(task.given_seeds(protocol.seeds_from))
    num_links = len(task.train_links) + len(task.valid_links) + len(task.test_links)
    return Protocol(
        seeds_from=protocol.seeds_from,
        num_seeds=num_seeds,
        num_anchors=len(task.anchors),
        seed_share=num_seeds / num_links if num_links else None,
        fold=data.fold,
        num_test_links=len(task.test_links),
        num_ranked_links=num_ranked,
        gold=_gold(task, protocol, evaluate),
        ideal_candidates="all test targets for each test source, and the other way round; ties count against us",
        real_candidates="all entities of either side that are no seeds",
        channels=channels,
        csls_k=match.csls_k,
        transport_temperature=match.temperature,
        transport_iterations=match.iterations,
        evidence_weights=dict(match.weights),
        rounds=rounds.number,
        seed=run_seed,
    )


def _gold(task: AlignmentTask, protocol: ProtocolSettings, evaluate: EvaluateSettings) -> str:
    """Whether the test links are the whole truth, as the settings say or as the links look."""
    if evaluate.gold != "auto":
        return evaluate.gold
    free = task.free(protocol.seeds_from)
    free[task.held_out(protocol.seeds_from).ravel()] = False
    return "full" if is_complete(free, task.num_source_entities, task.test_links) else "partial"


def _real(
    task: AlignmentTask,
    known: IntArray,
    alignment: Alignment,
    source_neighbors: Neighbors,
    target_neighbors: Neighbors,
    match: MatchSettings,
) -> dict[str, PairFigures]:
    """The figures of the paper's selections by the vectors alone, and of the run's own pairs."""
    graph = build_candidates(source_neighbors, target_neighbors)
    cosines = graph.column("cosine")
    chosen: dict[str, Callable[[], IntArray]] = {
        "mutual_5nn": lambda: mutual_knn(graph, cosines, 5),
        "mutual_top1": lambda: mutual_top1(graph, cosines),
        "csls_mutual_top1": lambda: mutual_top1(graph, csls(graph, source_neighbors, target_neighbors, match.csls_k)),
    }
    choices = list(chosen.values())
    selected = dict(zip(chosen, by_all_processors(lambda first, _: choices[first](), len(choices), 1), strict=True))
    pairs = {name: graph.pairs(edges) for name, edges in selected.items()}
    pairs["scoring_mutual_top1"] = alignment.pairs[alignment.mutual]
    pairs["accepted"] = alignment.pairs[alignment.accepted]
    return {
        name: precision_recall_f1(found[~are_among(found, known)], task.test_links) for name, found in pairs.items()
    }
