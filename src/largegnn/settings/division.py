"""How the merged graph is divided, and which entities are recalled into the parts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from largegnn.settings.section import Section

__all__ = ["DivisionSettings", "LandmarkSettings"]


class DivisionSettings(Section):
    """How the merged graph is divided (stage `partition`)."""

    partitioner: Literal["metis", "cps", "sbp"] = Field(
        "metis", description="metis = METIS on the merged graph; cps = LargeEA's partition; sbp = LIME's"
    )
    parts: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        "auto", description="number of subgraphs; auto = from the size of the graph and the memory of the device"
    )


class LandmarkSettings(Section):
    """Which entities are recalled into the parts they connect (stage `landmarks`)."""

    enabled: bool = Field(True, description="recall landmarks; false is the paper's `w/o CLG`")
    cap: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        "auto", description="entities a subgraph may reach with its landmarks; auto = a quarter over an even share"
    )
    eta: float = Field(0.001, gt=0, description="smoothing of the importance of an entity near a seed")
    decay: float = Field(0.01, gt=0, le=1, description="how much less an entity one hop further away is worth")
    hops: int = Field(2, ge=1, le=2, description="how far from a part its landmarks may lie")
