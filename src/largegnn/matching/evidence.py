"""Take the score of a pair apart into what each kind of evidence adds; with the constants that scoring shares.

In: the evidence of one pair and its weights. Out: named shares that add up to the score; `rivals` is what CSLS
takes off for candidates that are nearly as good. Without a share the score would be lower by just that much, as long as
the others stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = [
    "CSLS_PER_COSINE",
    "LITERAL_PER_COSINE",
    "REACH_EXPONENT",
    "UNKNOWN_LIKELIHOOD",
    "Weighing",
    "contributions",
]

CSLS_PER_COSINE = 2.0  # CSLS counts a similarity twice
LITERAL_PER_COSINE = 0.5  # what the similarity of names and values counts next to a cosine
REACH_EXPONENT = -0.25  # a triple whose relation reaches m entities has the weight m ** -0.25
UNKNOWN_LIKELIHOOD = 0.1  # that two relations mean the same, when they were never seen together
_TIMES = {"csls": CSLS_PER_COSINE}


@dataclass(frozen=True)
class Weighing:
    """How evidence became a score: `evidence` by column, `similarity` of vectors and literals, `views` within these."""

    scoring: str
    evidence: Mapping[str, float]
    similarity: Mapping[str, float] = field(default_factory=dict)
    views: Mapping[str, float] = field(default_factory=dict)
    odds: float = 0.0


def contributions(evidence: Mapping[str, float], score: float, weighing: Weighing) -> dict[str, float]:
    """What each column of `evidence` adds to a score; for transport, to the similarity that is balanced."""
    times = _TIMES.get(weighing.scoring, 1.0)
    found: dict[str, float] = {}
    has_literals = "similarity" in evidence
    if "cosine" in evidence:
        weight = weighing.similarity.get("cosine", 1.0) if has_literals else 1.0
        found["cosine"] = times * weight * (max(evidence["cosine"], 0.0) if has_literals else evidence["cosine"])
    if has_literals and "literal" in evidence:
        scale = times * LITERAL_PER_COSINE * weighing.similarity.get("literal", 1.0)
        parts = {name: weight * evidence[name] for name, weight in weighing.views.items() if name in evidence}
        parts["agreement"] = weighing.odds * evidence.get("agreement", 0.0)
        parts["contradiction"] = -weighing.odds * evidence.get("contradiction", 0.0)
        # A similarity below zero counts as zero: then no evidence supports the pair, and there is nothing to divide.
        found |= {name: scale * value if evidence["literal"] > 0 else 0.0 for name, value in parts.items()}
    found |= {name: times * weight * evidence[name] for name, weight in weighing.evidence.items() if name in evidence}
    if weighing.scoring in _TIMES or weighing.scoring == "cosine":
        found["rivals"] = score - sum(found.values())
    return found
