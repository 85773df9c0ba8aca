"""What training was like: one record for each epoch, and for each self-training round."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EpochRecord", "RoundRecord"]


@dataclass(frozen=True)
class EpochRecord:
    """One epoch of a member of the ensemble: mean loss of its steps, H@1 on the valid links if measured, seconds."""

    epoch: int
    loss: float
    valid_hits: float | None
    seconds: float
    member: int = 0


@dataclass(frozen=True)
class RoundRecord:
    """One self-training round: its pseudo-seeds, how many of those that touch a valid link are right, and its H@1.

    `share_right` and `valid_hits` are None where there are no valid links to judge by; `kept` is False for a round that
    did harm.
    """

    round: int
    num_pseudo_seeds: int
    num_judged: int
    share_right: float | None
    valid_hits: float | None
    kept: bool
