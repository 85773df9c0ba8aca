"""How names and values are compared."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from largegnn.settings.section import Section

__all__ = ["CompareSettings"]


class CompareSettings(Section):
    """How names and values are compared (stage `literals`)."""

    k: int = Field(10, ge=1, le=1_000, description="Nearest texts of the other side that become candidates.")
    identifiers: Literal["auto", "off"] = Field(
        "auto", description="Names from IRIs for entities without another. auto: where IRIs are words, not opaque ids."
    )
    odds_weight: float = Field(
        0.02, ge=0, le=1, description="What a logarithm of odds by values adds to the similarity of a pair."
    )
