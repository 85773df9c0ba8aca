"""Size and difficulty of a generated pair of graphs."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from largegnn.settings.section import Section, Share

__all__ = ["WorldSettings"]


class WorldSettings(Section):
    """Size and difficulty of a generated pair (`largegnn generate`)."""

    source_entities: int = Field(3_000, ge=10, description="entities of the source graph")
    target_entities: int = Field(3_000, ge=10, description="entities of the target graph")
    links: int = Field(2_400, ge=3, description="entities both graphs describe; the others have no counterpart")
    source_relations: int = Field(60, ge=1, description="relations of the source graph")
    target_relations: int = Field(50, ge=1, description="relations of the target graph")
    source_triples: int = Field(12_000, ge=10, description="triples of the source graph")
    target_triples: int = Field(10_500, ge=10, description="triples of the target graph")
    missing: Share = Field(
        0.2, description="share of the facts about linked entities that the richer graph lacks; the poorer lacks more"
    )
    wrong: Share = Field(0.02, description="share of each graph's triples that state something false")
    degree_exponent: float = Field(
        2.2, gt=1.5, le=5, description="exponent of the power law of entity degrees; smaller = heavier hubs"
    )
    relation_exponent: float = Field(1.0, ge=0, le=3, description="exponent of the Zipf law of relation frequencies")
    community_size: int = Field(60, ge=2, description="mean number of entities in a community")
    inside: Share = Field(0.7, description="share of the facts whose two ends lie in one community")
    train_share: Share = Field(0.2, description="share of the links written as train links")
    valid_share: Share = Field(0.1, description="share of the links written as valid links; the rest are test links")

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.links > min(self.source_entities, self.target_entities):
            raise ValueError("links must not exceed source_entities or target_entities")
        for side in ("source", "target"):
            entities, triples = getattr(self, f"{side}_entities"), getattr(self, f"{side}_triples")
            if 2 * triples < entities:
                raise ValueError(f"{side}_triples must be at least half of {side}_entities, or some stay isolated")
            if getattr(self, f"{side}_relations") > triples:
                raise ValueError(f"{side}_relations must not exceed {side}_triples")
        if self.train_share + self.valid_share > 1:
            raise ValueError("train_share and valid_share must not exceed 1 together")
        return self
