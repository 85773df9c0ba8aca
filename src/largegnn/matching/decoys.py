"""How likely a pair is right where no link is known: by comparison with pairs that are surely wrong.

In: candidate edges with scores. Out: for each pair the probability that it is right, and a threshold.
The idea (target and decoy, as in the search of spectra): an entity without a counterpart gets a best pair all the same,
and that pair looks like what an entity that has one would get if its counterpart were not there. So the wrong pairs are
distributed like decoys, only fewer: the best ones are taken away, the others scored anew, and those that are then each
other's best are the decoys. How many wrong pairs there are is bounded twice: where scores are low nearly all pairs are
wrong; and entities without a counterpart choose each other in vain too, which is seen, and how many wrong pairs come
with a vain choice is seen among the decoys. The lower of the two counts. What is left over is right.
Cost: one more scoring, and a sort.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import optimize

from largegnn.artifacts import CandidateGraph, FloatArray, IntArray, Mask
from largegnn.matching.calibration import Calibration
from largegnn.matching.candidates import preferred
from largegnn.matching.thresholds import Threshold

__all__ = ["DecoyRating", "Decoys", "confidence_by_decoys", "find_decoys", "rate_by_decoys"]

Floats = npt.NDArray[np.float64]
Rescore = Callable[[CandidateGraph], FloatArray]  # scores of the edges of a graph that lacks some
_LOW_SHARE = 1 / 3  # decoys among which the number of wrong pairs is read
_PER_BIN = 25
_FEWEST = 20
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
    own = values[kept[best]]
    decoys = find_decoys(graph, scores, kept[best], rescore)
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
    """The scores (d,) of pairs that are surely wrong, and how many of the pairs they stand for are wrong at most."""

    scores: FloatArray
    most_wrong: float


def find_decoys(graph: CandidateGraph, scores: FloatArray, best: IntArray, rescore: Rescore) -> Decoys:
    """The edges that would be best at both ends if the `best` ones were not there."""
    rest = np.ones(len(graph), dtype=bool)
    rest[best] = False
    columns = {name: values[rest] for name, values in graph.evidence.items()}
    others = CandidateGraph(graph.sources[rest], graph.targets[rest], columns)
    anew = rescore(others)
    decoys = preferred(others, anew, alone=0.0)[0]
    # Where nobody has a counterpart, so many pairs come with so many vain choices; those that are seen come with more.
    per_choice = len(decoys) / (_vain_choices(others, anew, decoys) + 1)
    return Decoys(anew[decoys], per_choice * (_vain_choices(graph, scores, best) + 1))


def _vain_choices(graph: CandidateGraph, scores: FloatArray, best: IntArray) -> float:
    """How many entities that are in no `best` edge choose one that is in none either, which chooses another."""
    is_free = np.ones(int(max(graph.sources.max(initial=-1), graph.targets.max(initial=-1))) + 1, dtype=bool)
    is_free[graph.sources[best]] = is_free[graph.targets[best]] = False
    order = np.argsort(scores, kind="stable")
    counts = []
    for own, other in ((graph.sources, graph.targets), (graph.targets, graph.sources)):
        choice = np.full(len(is_free), -1, dtype=np.int64)
        choice[own[order]] = other[order]  # from the lowest to the highest, so that the best is written last
        counts.append(int(((choice >= 0) & is_free & is_free[np.maximum(choice, 0)]).sum()))
    return float(np.mean(counts))


def confidence_by_decoys(scores: npt.NDArray[Any], decoys: Decoys) -> Floats | None:
    """The probability that each pair (p,) is right, rising with its score; None where there is too little to tell."""
    wrong_scores = decoys.scores
    if len(scores) < _FEWEST or len(wrong_scores) < _FEWEST:
        return None
    cut = float(np.quantile(wrong_scores, _LOW_SHARE))
    # Below the cut pairs are mostly wrong. One more of each: a share of nothing is not nothing.
    share = min(
        (int((scores <= cut).sum()) + 1) / (int((wrong_scores <= cut).sum()) + 1),
        (decoys.most_wrong + 1) / (len(wrong_scores) + 1),
        1.0,
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
