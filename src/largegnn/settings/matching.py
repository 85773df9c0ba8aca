"""How the nearest entities of the other graph are found, and how they become pairs with a confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from largegnn.seams.tables import SCORINGS, SEARCHERS, SELECTIONS
from largegnn.settings.parts import PartOf, WeightsOf
from largegnn.settings.section import MemoryGB, Section, Weight

__all__ = ["MatchSettings", "SearchSettings"]

Neighbors = Annotated[int, Field(ge=1, le=10_000)]
DEFAULT_WEIGHTS = {"support": 0.3}


class SearchSettings(Section):
    """How the nearest entities of the other graph are found (stage `search`)."""

    method: Annotated[str, PartOf(SEARCHERS, "auto")] = Field(
        "auto", description="Search method. auto: exact with torch on a GPU or for small graphs, else Faiss IVF."
    )
    k: Neighbors = Field(12, description="Neighbours kept for each entity. At least match.csls_k and match.k.")
    recall: float = Field(0.95, ge=0.01, le=1, description="Recall that an approximate search must reach.")
    max_memory_gb: MemoryGB = Field(4.0, description="Memory in GB of the search, without vectors and results.")


class MatchSettings(Section):
    """How candidates become accepted pairs with a confidence (stage `match`)."""

    scoring: Annotated[str, PartOf(SCORINGS)] = Field(
        "csls", description="Score of a pair. transport needs graphs where nearly every entity has a counterpart."
    )
    csls_k: Neighbors = Field(10, description="Neighbours in the mean of CSLS.")
    weights: Annotated[Mapping[str, Weight], WeightsOf(None, DEFAULT_WEIGHTS, 100)] = Field(
        DEFAULT_WEIGHTS, description="What one unit of each evidence adds to the cosine of a pair. 0: nothing."
    )
    rule_candidates: int = Field(
        10, ge=0, le=1_000, description="Pairs next to matched pairs that rules propose for each source entity."
    )
    temperature: float = Field(0.02, ge=0.001, le=10, description="Temperature of transport (Sinkhorn).")
    iterations: int = Field(30, ge=1, le=10_000, description="Iterations of transport (Sinkhorn).")
    selection: Annotated[str, PartOf(SELECTIONS)] = Field(
        "mutual_top1", description="Which pairs may be accepted. mutual_knn with k = 5 is the paper's."
    )
    k: Neighbors = Field(5, description="Candidates kept for each entity, and the k of mutual_knn.")
    threshold: Literal["f1", "none"] = Field(
        "f1", description="f1: the threshold with the highest expected F1. none: accept all selected pairs."
    )
    min_precision: float = Field(
        0.0, ge=0, le=1, description="Accept as many pairs as keep this expected precision. 0: as threshold says."
    )
