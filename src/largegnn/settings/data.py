"""How files become an alignment task, and which links training may see."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from largegnn.artifacts import SeedsFrom
from largegnn.seams.tables import READERS
from largegnn.settings.parts import PartOf
from largegnn.settings.section import Section, Share

__all__ = ["DataSettings", "ProtocolSettings"]


class DataSettings(Section):
    """How files become an alignment task (stage `load`)."""

    format: Annotated[str, PartOf(READERS, "auto")] = Field(
        "auto", description="Format of the two triple files. auto: by name and content."
    )
    layout: Literal["auto", "openea", "dbpedia1m", "dbp15k", "pair"] = Field(
        "auto", description="Layout of a data set folder. auto: by the files in it."
    )
    fold: int = Field(1, ge=1, le=1_000, description="Fold of an OpenEA folder.")
    valid_share: Share | Literal["auto"] = Field(
        "auto",
        description="Share of seeds held out as valid links if none are given. auto: a tenth; up to a third of few.",
    )
    source_key: str = Field(
        "", max_length=1_000, description="Key column of a source that is a table of entities. Empty: a triple file."
    )
    target_key: str = Field(
        "", max_length=1_000, description="Key column of a target that is a table of entities. Empty: a triple file."
    )
    skip_unknown: bool = Field(
        False, description="Skip seeds with an entity that is in neither graph. false: such a seed is an error."
    )


class ProtocolSettings(Section):
    """What training may see (every stage from `merge` on)."""

    seeds_from: SeedsFrom = Field(
        "train", description="Links used as seeds. train+valid is how the paper's tables were made."
    )
