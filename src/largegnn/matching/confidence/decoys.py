"""Estimate how likely a pair is right where no link is known, by comparison with decoys, pairs known to be wrong.

In: candidate edges with scores. Out: for each pair the probability that it is right, and a threshold.
The idea (target and decoy, as in the search of spectra): an entity without a counterpart gets a best pair all the same,
and that pair looks like what an entity that has one would get if its counterpart were not there. So counterparts are
taken away from a tenth of the pairs, the rest is scored anew, and the pairs of these orphans are decoys: they have the
scores of wrong pairs, and the share of orphans that is matched in one tells how many wrong pairs come with the entities
that are seen to be in none. What is left over is right. A pair counts by its score and its lead over its rivals.
Cost: a few more scorings, one for large graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import optimize

from largegnn.artifacts import CandidateGraph, FloatArray, IntArray, Mask
from largegnn.matching.candidates import preferred
from largegnn.matching.confidence.calibration import Calibration
from largegnn.matching.confidence.thresholds import Threshold

__all__ = ["DecoyRating", "Decoys", "confidence_by_decoys", "find_decoys", "rate_by_decoys"]

Floats = npt.NDArray[np.float64]
Rescore = Callable[[CandidateGraph], FloatArray]  # scores of the edges of a graph that lacks some
_LOW_SHARE = 0.5  # of the decoys, below which the number of wrong pairs is read
_PER_BIN = 25
_FEWEST = 20
_TAKEN_AWAY = 0.1  # of the pairs, on each side, at a time
_TRIALS = 5
_LARGE = 5_000_000  # edges from which one trial has decoys enough
_MOST_MATCHED = 0.9
_LONE_MARGIN = 1.0  # of a pair without a rival; larger ones are cut to it
_NOT_BEST = 0.5  # what is left of the confidence of a pair that one end has something better for
_MODEL_ERROR = 0.03  # how far the share of wrong pairs may be off beyond chance


@dataclass(frozen=True, eq=False)
class DecoyRating:
    """The confidence of pairs (p,), and what it says of all of them."""

    rating: Floats
    calibration: Calibration

    def choose_threshold(self, selected: Mask, min_precision: float, cut: Literal["f1", "none"]) -> Threshold:
        """Where to cut the selected pairs: at the highest expected F1, or where a precision asked for is kept."""
        ordered = np.sort(self.rating[selected])[::-1]
        if not len(ordered):
            return Threshold(1.0, 0, is_reached=min_precision == 0)
        means = np.cumsum(ordered) / np.arange(1, len(ordered) + 1)
        if min_precision > 0:
            count = int((means >= min_precision).sum())
            is_reached = count > 0
            lowest = ordered[max(count - 1, 0)]
        else:
            is_reached = True
            # One more pair helps as long as it is likelier right than half the F1 there is.
            f1 = 2 * np.cumsum(ordered) / (np.arange(1, len(ordered) + 1) + max(self.calibration.num_links, 1.0))
            lowest = 0.0 if cut == "none" else float(ordered[int(f1.argmax())])
        accepted = ordered[ordered >= lowest]
        expected, count = float(accepted.sum()), len(accepted)
        spread = 1.645 * float(np.sqrt((accepted * (1 - accepted)).sum())) / count + _MODEL_ERROR
        precision, links = expected / count, max(self.calibration.num_links, 1.0)
        return Threshold(
            threshold=float(accepted[-1]),
            num_pairs=count,
            expected_precision=precision,
            precision_low=max(precision - spread, 0.0),
            precision_high=min(precision + spread, 1.0),
            expected_recall=min(expected / links, 1.0),
            expected_f1=2 * expected / (count + links),
            is_reached=is_reached,
        )


def rate_by_decoys(
    graph: CandidateGraph, scores: FloatArray, kept: IntArray, best: Mask, rescore: Rescore
) -> DecoyRating | None:
    """The confidence of the `kept` edges (p,), some of them `best` at both ends; None where too little is known."""
    values = scores.astype(np.float64)
    _, gaps = preferred(graph, scores, _LONE_MARGIN)
    own = values[kept[best]] + np.minimum(gaps, _LONE_MARGIN)
    decoys = find_decoys(graph, kept[best], rescore)
    found = confidence_by_decoys(own, decoys)
    if found is None:
        return None
    order = np.argsort(own, kind="stable")
    rating = _NOT_BEST * np.interp(values[kept], own[order], found[order])
    rating[best] = found
    total = float(found.sum())
    spread = 1.645 * float(np.sqrt((found * (1 - found)).sum()))
    calibration = Calibration(
        weights=(),
        offset=0.0,
        num_valid=0,
        num_judged=0,
        num_right=0,
        num_links=total,
        num_links_low=max(total - spread, 0.0),
        num_links_high=total + spread,
        is_calibrated=True,
        basis="decoys",
    )
    return DecoyRating(rating, calibration)


@dataclass(frozen=True, eq=False)
class Decoys:
    """The scores (d,) of pairs that are known to be wrong, and how many of the pairs they stand for should be wrong."""

    scores: FloatArray
    num_wrong: float


def find_decoys(graph: CandidateGraph, best: IntArray, rescore: Rescore, seed: int = 0) -> Decoys:
    """What entities whose counterpart is taken away choose, and are chosen by; `best` are the edges of both ends."""
    order = np.random.default_rng(seed).permutation(best)
    size = max(int(_TAKEN_AWAY * len(best)), min(_FEWEST, len(best) // 4))
    num_trials = min(_TRIALS if len(graph) <= _LARGE else 1, len(best) // max(2 * size, 1))
    scores, matched = [np.empty(0, dtype=np.float32)], np.zeros(2)
    for trial in range(num_trials):
        one, other = (order[(2 * trial + part) * size : (2 * trial + part + 1) * size] for part in (0, 1))
        found, in_trial = _without_counterparts(graph, one, other, rescore)
        scores.append(found)
        matched += in_trial
    # Of the entities of a side that have no counterpart those in no pair are seen; the others are in wrong pairs.
    chance = np.minimum((matched + 1) / (num_trials * size + 1), _MOST_MATCHED)
    num_alone = np.array([len(np.unique(ends)) - len(best) for ends in (graph.sources, graph.targets)])
    return Decoys(np.concatenate(scores), float((chance * num_alone / (1 - chance)).min()))


def _without_counterparts(
    graph: CandidateGraph, orphan_sources: IntArray, orphan_targets: IntArray, rescore: Rescore
) -> tuple[FloatArray, IntArray]:
    """Take away targets of some edges, sources of others: scores of the orphans' pairs, and orphans in them (2,)."""
    size = int(max(graph.sources.max(initial=-1), graph.targets.max(initial=-1))) + 1
    is_gone, is_orphan = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    is_gone[graph.targets[orphan_sources]] = is_gone[graph.sources[orphan_targets]] = True
    is_orphan[graph.sources[orphan_sources]] = is_orphan[graph.targets[orphan_targets]] = True
    rest = ~(is_gone[graph.sources] | is_gone[graph.targets])
    columns = {name: values[rest] for name, values in graph.evidence.items()}
    others = CandidateGraph(graph.sources[rest], graph.targets[rest], columns)
    scores = rescore(others)
    pairs, gaps = preferred(others, scores, _LONE_MARGIN)
    ends = np.stack([is_orphan[others.sources[pairs]], is_orphan[others.targets[pairs]]])
    found: FloatArray = (scores[pairs] + np.minimum(gaps, _LONE_MARGIN))[ends.any(axis=0)]
    return found, ends.sum(axis=1)


def confidence_by_decoys(scores: npt.NDArray[Any], decoys: Decoys) -> Floats | None:
    """The probability that each pair (p,) is right, rising with its score; None where there is too little to tell."""
    wrong_scores = decoys.scores
    if len(scores) < _FEWEST or len(wrong_scores) < _FEWEST:
        return None
    cut = float(np.quantile(wrong_scores, _LOW_SHARE))
    # Below the cut hardly more pairs can be wrong than there are. One more of each: a share of nothing is not nothing.
    share = min(
        (int((scores <= cut).sum()) + 1) / (int((wrong_scores <= cut).sum()) + 1),
        (decoys.num_wrong + 1) / (len(wrong_scores) + 1),
    )
    order = np.argsort(scores, kind="stable")
    num_bins = max(1, min(len(scores) // _PER_BIN, 60))
    bins = np.array_split(order, num_bins)
    edges = np.array([scores[inside[0]] for inside in bins[1:]])
    wrong = share * np.bincount(np.searchsorted(edges, wrong_scores, side="right"), minlength=num_bins)
    counts = np.array([len(inside) for inside in bins], dtype=np.float64)
    # Half a wrong pair more in all: no bin is beyond doubt.
    precision = 1 - np.minimum((wrong + 0.5 / num_bins) / counts, 1.0)
    rising = optimize.isotonic_regression(precision, weights=counts, increasing=True).x
    centres = np.array([scores[inside].mean() for inside in bins])
    confidence: Floats = np.clip(np.interp(scores, centres, rising), 0.0, 1.0)
    return confidence
