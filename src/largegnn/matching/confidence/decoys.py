"""Estimate the confidence of pairs without known links, by comparison with decoys: pairs known to be wrong.

In: candidate edges with scores. Out: a confidence for each pair, and a threshold.
The idea (target and decoy, as in the search of mass spectra): an entity without a counterpart still has a best
candidate, and that pair looks like the pair that another entity would get if its counterpart were missing. So the
counterparts of a tenth of the pairs are removed on each side, the remaining candidates are scored again, and the pairs
of these orphans are decoys. Decoys have the scores of wrong pairs; the share of orphans that are matched, with the
number of entities in no pair, gives the number of wrong pairs. All other pairs are correct. A pair is compared by its
score plus its margin. Cost: up to five more scorings, one for large graphs.
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

__all__ = ["DecoyEstimate", "Decoys", "confidence_by_decoys", "estimate_by_decoys", "find_decoys"]

Floats = npt.NDArray[np.float64]
Rescore = Callable[[CandidateGraph], FloatArray]  # scores the edges of a graph from which some were removed
_LOW_QUANTILE = 0.5  # of the scores of decoys: below it, nearly all pairs are wrong
_PAIRS_PER_BIN = 25
_MIN_PAIRS = 20
_REMOVED_SHARE = 0.1  # of the pairs whose counterparts a trial removes, on each side
_TRIALS = 5
_LARGE_GRAPH = 5_000_000  # edges: from this size, one trial gives enough decoys
_MAX_MATCHED_SHARE = 0.9
_MAX_MARGIN = 1.0  # margin of a pair without a rival; larger margins count as this
_OTHER_FACTOR = 0.5  # of the confidence of pairs that are not the first choice of both ends
_MODEL_ERROR = 0.03  # of the expected precision, besides chance


@dataclass(frozen=True, eq=False)
class DecoyEstimate:
    """The confidence of pairs (p,), and the calibration it amounts to."""

    confidence: Floats
    calibration: Calibration

    def choose_threshold(self, selected: Mask, min_precision: float, cut: Literal["f1", "none"]) -> Threshold:
        """Choose the threshold of the selected pairs: the highest expected F1, or the lowest with a given precision."""
        ordered = np.sort(self.confidence[selected])[::-1]
        if not len(ordered):
            return Threshold(1.0, 0, is_reached=min_precision == 0)
        means = np.cumsum(ordered) / np.arange(1, len(ordered) + 1)
        if min_precision > 0:
            count = int((means >= min_precision).sum())
            is_reached = count > 0
            lowest = ordered[max(count - 1, 0)]
        else:
            is_reached = True
            # A pair raises the F1 while its confidence is above half of the F1.
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


def estimate_by_decoys(
    graph: CandidateGraph, scores: FloatArray, kept: IntArray, best: Mask, rescore: Rescore
) -> DecoyEstimate | None:
    """Estimate the confidence of the `kept` edges (p,); None if there are too few pairs or decoys.

    `best` (p,): whether an edge is the first choice of both ends.
    """
    values = scores.astype(np.float64)
    _, gaps = preferred(graph, scores, _MAX_MARGIN)
    best_scores = values[kept[best]] + np.minimum(gaps, _MAX_MARGIN)
    decoys = find_decoys(graph, kept[best], rescore)
    best_confidence = confidence_by_decoys(best_scores, decoys)
    if best_confidence is None:
        return None
    order = np.argsort(best_scores, kind="stable")
    confidence = _OTHER_FACTOR * np.interp(values[kept], best_scores[order], best_confidence[order])
    confidence[best] = best_confidence
    total = float(best_confidence.sum())
    spread = 1.645 * float(np.sqrt((best_confidence * (1 - best_confidence)).sum()))
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
    return DecoyEstimate(confidence, calibration)


@dataclass(frozen=True, eq=False)
class Decoys:
    """The scores (d,) of pairs known to be wrong, and the expected number of wrong pairs among all first choices."""

    scores: FloatArray
    num_wrong: float


def find_decoys(graph: CandidateGraph, best: IntArray, rescore: Rescore, seed: int = 0) -> Decoys:
    """Remove counterparts and score again, in a few trials; `best` are the first choices of both ends."""
    order = np.random.default_rng(seed).permutation(best)
    size = max(int(_REMOVED_SHARE * len(best)), min(_MIN_PAIRS, len(best) // 4))
    num_trials = min(_TRIALS if len(graph) <= _LARGE_GRAPH else 1, len(best) // max(2 * size, 1))
    scores = [np.empty(0, dtype=np.float32)]
    num_matched = np.zeros(2)  # orphans of either side that are matched, in all trials
    for trial in range(num_trials):
        first = 2 * trial * size
        trial_scores, num_in_trial = _without_counterparts(
            graph, order[first : first + size], order[first + size : first + 2 * size], rescore
        )
        scores.append(trial_scores)
        num_matched += num_in_trial
    # Entities without a counterpart are either in no pair, which is observed, or in a wrong pair.
    chance = np.minimum((num_matched + 1) / (num_trials * size + 1), _MAX_MATCHED_SHARE)
    num_unmatched = np.array([len(np.unique(ends)) - len(best) for ends in (graph.sources, graph.targets)])
    return Decoys(np.concatenate(scores), float((chance * num_unmatched / (1 - chance)).min()))


def _without_counterparts(
    graph: CandidateGraph, orphan_sources: IntArray, orphan_targets: IntArray, rescore: Rescore
) -> tuple[FloatArray, IntArray]:
    """Remove the counterparts of orphans, and score again.

    `orphan_sources` are edges whose target is removed, `orphan_targets` edges whose source is removed. Returns the
    scores of the best pairs of the orphans, and the numbers of matched orphans among sources and targets (2,).
    """
    size = int(max(graph.sources.max(initial=-1), graph.targets.max(initial=-1))) + 1
    is_removed, is_orphan = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    is_removed[graph.targets[orphan_sources]] = is_removed[graph.sources[orphan_targets]] = True
    is_orphan[graph.sources[orphan_sources]] = is_orphan[graph.targets[orphan_targets]] = True
    is_kept = ~(is_removed[graph.sources] | is_removed[graph.targets])
    columns = {name: values[is_kept] for name, values in graph.evidence.items()}
    remaining = CandidateGraph(graph.sources[is_kept], graph.targets[is_kept], columns)
    scores = rescore(remaining)
    pairs, gaps = preferred(remaining, scores, _MAX_MARGIN)
    ends = np.stack([is_orphan[remaining.sources[pairs]], is_orphan[remaining.targets[pairs]]])
    decoy_scores: FloatArray = (scores[pairs] + np.minimum(gaps, _MAX_MARGIN))[ends.any(axis=0)]
    return decoy_scores, ends.sum(axis=1)


def confidence_by_decoys(scores: npt.NDArray[Any], decoys: Decoys) -> Floats | None:
    """Estimate the probability that each pair (p,) is correct, rising with its score; None if there are too few."""
    wrong_scores = decoys.scores
    if len(scores) < _MIN_PAIRS or len(wrong_scores) < _MIN_PAIRS:
        return None
    low = float(np.quantile(wrong_scores, _LOW_QUANTILE))
    # At low scores no more pairs can be wrong than there are. Plus 1 in both counts, so that no estimate is 0.
    share = min(
        (int((scores <= low).sum()) + 1) / (int((wrong_scores <= low).sum()) + 1),
        (decoys.num_wrong + 1) / (len(wrong_scores) + 1),
    )
    order = np.argsort(scores, kind="stable")
    num_bins = max(1, min(len(scores) // _PAIRS_PER_BIN, 60))
    bins = np.array_split(order, num_bins)
    edges = np.array([scores[inside[0]] for inside in bins[1:]])
    wrong = share * np.bincount(np.searchsorted(edges, wrong_scores, side="right"), minlength=num_bins)
    counts = np.array([len(inside) for inside in bins], dtype=np.float64)
    # Plus half a wrong pair over all bins, so that no bin is certain.
    precision = 1 - np.minimum((wrong + 0.5 / num_bins) / counts, 1.0)
    rising = optimize.isotonic_regression(precision, weights=counts, increasing=True).x
    centres = np.array([scores[inside].mean() for inside in bins])
    confidence: Floats = np.clip(np.interp(scores, centres, rising), 0.0, 1.0)
    return confidence
