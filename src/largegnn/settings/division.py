"""How the merged graph is divided, and which entities are recalled into the parts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from largegnn.seams.tables import PARTITIONERS
from largegnn.settings.parts import PartOf
from largegnn.settings.section import Section

__all__ = ["DivisionSettings", "LandmarkSettings"]


class DivisionSettings(Section):
    """How the merged graph is divided (stage `partition`)."""

    partitioner: Annotated[str, PartOf(PARTITIONERS)] = Field(
        "auto",
        description="auto: KaMinPar, or METIS without it. metis: the paper's. cps: LargeEA's. sbp: LIME's.",
    )
    parts: Annotated[int, Field(ge=1, le=100_000)] | Literal["auto"] = Field(
        "auto", description="Number of subgraphs. auto: by the size of the graph and the memory of the device."
    )


class LandmarkSettings(Section):
    """Which entities are recalled into the parts they connect (stage `landmarks`)."""

    enabled: bool = Field(True, description="Recall landmarks. false: the paper's `w/o CLG`.")
    cap: Annotated[int, Field(ge=1, le=1_000_000_000)] | Literal["auto"] = Field(
        "auto", description="Most entities of a subgraph, landmarks included. auto: a quarter above an even share."
    )
    eta: float = Field(0.001, ge=1e-9, le=1, description="Smoothing of the importance of an entity near a seed.")
    decay: float = Field(0.01, ge=1e-9, le=1, description="Factor on the importance of an entity for each hop.")
    hops: int = Field(2, ge=1, le=2, description="Greatest distance of a landmark from its part.")
