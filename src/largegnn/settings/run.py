"""All settings of a run: one section per stage."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from largegnn.settings.data import DataSettings, ProtocolSettings
from largegnn.settings.division import DivisionSettings, LandmarkSettings
from largegnn.settings.matching import MatchSettings, SearchSettings
from largegnn.settings.section import Section
from largegnn.settings.training import IntegrateSettings, RoundSettings, TrainSettings

__all__ = ["Settings"]


class Settings(Section):
    """All settings of a run."""

    seed: int = Field(0, ge=0, lt=2**32, description="random seed; every stage derives its own generator from it")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where to compute; auto = a GPU if there is one")
    data: DataSettings = DataSettings()
    protocol: ProtocolSettings = ProtocolSettings()
    division: DivisionSettings = DivisionSettings()
    landmarks: LandmarkSettings = LandmarkSettings()
    train: TrainSettings = TrainSettings()
    integrate: IntegrateSettings = IntegrateSettings()
    rounds: RoundSettings = RoundSettings()
    search: SearchSettings = SearchSettings()
    match: MatchSettings = MatchSettings()

    @model_validator(mode="after")
    def _check_neighbors(self) -> Self:
        if self.search.k < max(self.match.csls_k, self.match.k):
            raise ValueError("search.k must be at least match.csls_k and match.k")
        return self
