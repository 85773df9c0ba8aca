"""Which machines work on a run together."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from largegnn.settings.section import Section

__all__ = ["ClusterSettings"]


class ClusterSettings(Section):
    """Which machines work on a run together. Like the device, this is no part of what a stage is made from."""

    address: str = Field(
        "none",
        min_length=1,
        max_length=300,
        description="Ray cluster. none: this process. local: one started here. auto: the one running here. HOST:PORT.",
    )
    workers: Annotated[int, Field(ge=1, le=100_000)] | Literal["auto"] = Field(
        "auto",
        description="Workers of the training. auto: one for each processor, or for each GPU where there are any.",
    )
    staleness: Annotated[int, Field(ge=0, le=100_000)] | Literal["auto"] = Field(
        "auto", description="Most visits by others while one is under way. 0: one at a time. auto: 4 for each worker."
    )
