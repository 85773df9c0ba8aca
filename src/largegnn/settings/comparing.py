"""How names and values are compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from largegnn.seams.tables import COMPARATORS, TEXT_ENCODERS
from largegnn.settings.parts import ChoicesOf, PartOf
from largegnn.settings.section import Section

__all__ = ["CompareSettings"]

DEFAULT_COMPARATORS = {kind: kind for kind in ("name", "text", "number", "date", "code", "coordinate", "truth_value")}


class CompareSettings(Section):
    """How names and values are compared (stage `literals`)."""

    k: int = Field(10, ge=1, le=1_000, description="Nearest texts of the other side that become candidates.")
    identifiers: Literal["auto", "off"] = Field(
        "auto", description="Names from IRIs for entities without another. auto: where IRIs are words, not opaque ids."
    )
    comparators: Annotated[Mapping[str, str], ChoicesOf(COMPARATORS, DEFAULT_COMPARATORS)] = Field(
        DEFAULT_COMPARATORS, description="How values of each kind are compared. A kind not named keeps its default."
    )
    text_encoder: Annotated[str, PartOf(TEXT_ENCODERS, "off")] = Field(
        "off", description="Texts as vectors of their meaning, by a model of yours. off: letters alone are compared."
    )
    text_model: str = Field("", max_length=4_096, description="Folder of the text encoder's model.")
    odds_weight: float = Field(
        0.02, ge=0, le=1, description="What a logarithm of odds by values adds to the similarity of a pair."
    )
