"""Whether there are enough seeds to expect anything of a run, said before it trains."""

from __future__ import annotations

from largegnn.artifacts import AlignmentTask, SeedsFrom
from largegnn.matching.confidence.calibration import FEWEST_VALID

__all__ = ["FEWEST_SEEDS", "FEWEST_VALID_LINKS", "seeds_warning"]

# Below these a run was seen to give pairs that are mostly wrong, or scores that cannot be calibrated.
FEWEST_SEEDS, FEWEST_VALID_LINKS = 50, FEWEST_VALID


def seeds_warning(task: AlignmentTask, seeds_from: SeedsFrom = "train") -> str | None:
    """What to warn of before training; None where there are seeds and valid links enough."""
    num_seeds, num_valid = len(task.seeds(seeds_from)), len(task.held_out(seeds_from))
    if not num_seeds:
        return "there are no seeds: names and values have to give pairs to start from"
    if num_seeds < FEWEST_SEEDS:
        return (
            f"there are {num_seeds:,} seeds to train on: with fewer than {FEWEST_SEEDS} most pairs will be wrong. "
            "Give more seeds, or check every pair"
        )
    # With anchors the confidence rests on decoys.
    if num_valid < FEWEST_VALID_LINKS and not len(task.anchors):
        what = "Take train links alone as seeds" if seeds_from != "train" else "Give more seeds, or more valid links"
        return (
            f"there are {num_valid:,} valid links that are no seeds: with fewer than {FEWEST_VALID_LINKS} the result "
            f"is not calibrated, and pairs have a score but no confidence. {what}"
        )
    return None
