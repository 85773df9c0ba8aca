"""How the nearest entities of the other graph are found, and how they become pairs with a confidence."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from largegnn.settings.section import Positive, Section, Weight

__all__ = ["MatchSettings", "SearchSettings"]


class SearchSettings(Section):
    """How the nearest entities of the other graph are found (stage `search`)."""

    method: Literal["auto", "torch", "flat", "ivf", "hnsw"] = Field(
        "auto",
        description="auto = exact with torch on a GPU or for small graphs, else Faiss IVF; see docs/alignment.md",
    )
    k: Positive = Field(12, description="neighbours kept for each entity; at least match.csls_k and match.k")
    recall: float = Field(0.95, gt=0, le=1, description="share of true neighbours an approximate search must find")
    max_memory_gb: float = Field(4.0, gt=0, description="memory of the search beyond vectors and results")


class MatchSettings(Section):
    """How neighbours become pairs with a confidence (stage `match`)."""

    scoring: Literal["cosine", "csls", "transport"] = Field(
        "csls", description="score of a pair; transport suits graphs where nearly every entity has a counterpart"
    )
    csls_k: Positive = Field(10, description="neighbourhood of CSLS")
    support_weight: Weight = Field(0.15, description="cosine that one supporting neighbour pair is worth; 0 = off")
    temperature: float = Field(0.02, gt=0, description="of transport (Sinkhorn)")
    iterations: Positive = Field(30, description="of transport")
    selection: Literal["mutual_top1", "mutual_knn", "one_to_one"] = Field(
        "mutual_top1", description="which pairs may be put out; mutual_knn with k = 5 is the paper's"
    )
    k: Positive = Field(5, description="candidates kept for each entity, and the k of mutual_knn")
    threshold: Literal["f1", "none"] = Field(
        "f1", description="f1 = cut where the F1 expected from the valid links is best; none = put out all selected"
    )
    min_precision: float = Field(
        0.0, ge=0, le=1, description="put out as many pairs as keep this expected precision; 0 = as threshold says"
    )
