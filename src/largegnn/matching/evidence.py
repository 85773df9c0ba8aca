"""Split the score of a pair into the contributions of each kind of evidence; and constants of scores.

In: the evidence of one pair and its weights. Out: named contributions that add up to the score; `rivals` is what CSLS
subtracts for other close candidates. A contribution is how much lower the score would be without that evidence, if all
other evidence stayed.
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
LITERAL_PER_COSINE = 0.5  # weight of the similarity of names and values, relative to a cosine
REACH_EXPONENT = -0.25  # a triple whose relation reaches m entities has the weight m ** -0.25
UNKNOWN_LIKELIHOOD = 0.1  # that two relations are aligned if they never occur together
_SIMILARITY_FACTORS = {"csls": CSLS_PER_COSINE}


@dataclass(frozen=True)
class Weighing:
    """The weights of a score: of columns of `evidence`, of the two in a `similarity`, of `views` of literals."""

    scoring: str
    evidence: Mapping[str, float]
    similarity: Mapping[str, float] = field(default_factory=dict)
    views: Mapping[str, float] = field(default_factory=dict)
    odds: float = 0.0


def contributions(evidence: Mapping[str, float], score: float, weighing: Weighing) -> dict[str, float]:
    """Compute what each column of `evidence` adds to a score; for a transport, to the similarity before it."""
    factor = _SIMILARITY_FACTORS.get(weighing.scoring, 1.0)
    found: dict[str, float] = {}
    has_literals = "similarity" in evidence
    if "cosine" in evidence:
        weight = weighing.similarity.get("cosine", 1.0) if has_literals else 1.0
        found["cosine"] = factor * weight * (max(evidence["cosine"], 0.0) if has_literals else evidence["cosine"])
    if has_literals and "literal" in evidence:
        scale = factor * LITERAL_PER_COSINE * weighing.similarity.get("literal", 1.0)
        parts = {name: weight * evidence[name] for name, weight in weighing.views.items() if name in evidence}
        parts["agreement"] = weighing.odds * evidence.get("agreement", 0.0)
        parts["contradiction"] = -weighing.odds * evidence.get("contradiction", 0.0)
        # A similarity of literals below zero counts as zero, hence so do its contributions.
        found |= {name: scale * value if evidence["literal"] > 0 else 0.0 for name, value in parts.items()}
    found |= {name: factor * weight * evidence[name] for name, weight in weighing.evidence.items() if name in evidence}
    if weighing.scoring in _SIMILARITY_FACTORS or weighing.scoring == "cosine":
        found["rivals"] = score - sum(found.values())
    return found
