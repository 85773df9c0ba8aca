"""Size and difficulty of a generated pair of graphs, and named sets of these."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from largegnn.settings.section import Section, Share

__all__ = ["WORLD_PRESETS", "WorldSettings"]

Entities = Annotated[int, Field(ge=10, le=1_000_000_000)]
Relations = Annotated[int, Field(ge=1, le=1_000_000)]
Triples = Annotated[int, Field(ge=10, le=10_000_000_000)]


class WorldSettings(Section):
    """Size and difficulty of a generated pair (`largegnn generate`)."""

    source_entities: Entities = Field(3_000, description="Entities of the source graph.")
    target_entities: Entities = Field(3_000, description="Entities of the target graph.")
    links: int = Field(2_400, ge=3, le=1_000_000_000, description="Entities in both graphs. The others are unmatched.")
    source_relations: Relations = Field(60, description="Relations of the source graph.")
    target_relations: Relations = Field(50, description="Relations of the target graph.")
    source_triples: Triples = Field(12_000, description="Triples of the source graph.")
    target_triples: Triples = Field(10_500, description="Triples of the target graph.")
    missing: Share = Field(
        0.2, description="Share of the facts about linked entities that the richer graph lacks. The poorer lacks more."
    )
    wrong: Share = Field(0.02, description="Share of false triples in each graph.")
    degree_exponent: float = Field(
        2.2, gt=1.5, le=5, description="Exponent of the power law of entity degrees. Smaller: heavier hubs."
    )
    relation_exponent: float = Field(1.0, ge=0, le=3, description="Exponent of the Zipf law of relation frequencies.")
    community_size: int = Field(60, ge=2, le=1_000_000_000, description="Mean number of entities in a community.")
    inside: Share = Field(0.7, description="Share of the facts with both ends in one community.")
    train_share: Share = Field(0.2, description="Share of the links written as train links.")
    valid_share: Share = Field(0.1, description="Share of the links written as valid links. The rest are test links.")

    literals: bool = Field(False, description="Give the entities names, dates, numbers and codes.")
    noise: Share = Field(0.2, description="Share of names and values that the target lacks, misspells or changes.")

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.links > min(self.source_entities, self.target_entities):
            raise ValueError("links must not exceed source_entities or target_entities")
        for side in ("source", "target"):
            entities, triples = getattr(self, f"{side}_entities"), getattr(self, f"{side}_triples")
            if triples < entities:
                raise ValueError(f"{side}_triples must be at least {side}_entities, so that every entity has one")
            if getattr(self, f"{side}_relations") > triples:
                raise ValueError(f"{side}_relations must not exceed {side}_triples")
        if self.train_share + self.valid_share > 1:
            raise ValueError("train_share and valid_share must not exceed 1 together")
        return self


WORLD_PRESETS: dict[str, dict[str, Any]] = {
    "small": {"missing": 0.12},
    "15k": {
        "source_entities": 15_000,
        "target_entities": 15_000,
        "links": 15_000,
        "source_relations": 267,
        "target_relations": 210,
        "source_triples": 47_334,
        "target_triples": 40_864,
        "missing": 0.24,
        "degree_exponent": 1.8,
        "community_size": 60,
        "inside": 0.98,
    },
    "100k": {
        "source_entities": 100_000,
        "target_entities": 100_000,
        "links": 100_000,
        "source_relations": 400,
        "target_relations": 300,
        "source_triples": 309_607,
        "target_triples": 258_285,
        "missing": 0.32,
        "degree_exponent": 1.9,
        "community_size": 80,
        "inside": 0.97,
    },
    "dbpedia1m": {
        "source_entities": 1_211_270,
        "target_entities": 1_176_869,
        "links": 488_563,
        "source_relations": 595,
        "target_relations": 400,
        "source_triples": 8_150_656,
        "target_triples": 4_268_719,
        "missing": 0.5,
        "degree_exponent": 2.0,
        "community_size": 400,
        "inside": 0.94,
    },
}
