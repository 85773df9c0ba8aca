"""How files become an alignment task, and which links training may see."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from largegnn.artifacts import SeedsFrom
from largegnn.settings.section import Section, Share

__all__ = ["DataSettings", "ProtocolSettings"]

FileFormat = Literal["auto", "nt", "nq", "ttl", "tsv", "csv", "parquet"]
FolderFormat = Literal["auto", "openea", "dbpedia1m", "dbp15k", "pair"]


class DataSettings(Section):
    """How files become an alignment task (stage `load`)."""

    format: FileFormat = Field("auto", description="format of the two triple files; auto = from name and content")
    layout: FolderFormat = Field("auto", description="layout of a data set folder; auto = from the files in it")
    fold: int = Field(1, ge=1, description="which fold of an OpenEA folder to read")
    valid_share: Share = Field(
        0.1, description="share of the seeds held out as valid links where no valid links are given"
    )
    skip_unknown: bool = Field(
        False, description="drop seeds whose entities are in neither graph file instead of refusing them"
    )


class ProtocolSettings(Section):
    """What training may see (every stage from `merge` on)."""

    seeds_from: SeedsFrom = Field(
        "train", description="links used as seeds: train (honest), or train+valid (as the paper's tables were made)"
    )
