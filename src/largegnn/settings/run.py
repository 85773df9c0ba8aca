"""All settings of a run: one section per step."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from largegnn.seams.tables import CHANNELS
from largegnn.settings.cluster import ClusterSettings
from largegnn.settings.comparing import CompareSettings
from largegnn.settings.data import DataSettings, ProtocolSettings
from largegnn.settings.division import DivisionSettings, LandmarkSettings
from largegnn.settings.matching import MatchSettings, SearchSettings
from largegnn.settings.parts import PartsOf
from largegnn.settings.reporting import EvaluateSettings, ReportSettings
from largegnn.settings.section import Section
from largegnn.settings.training import IntegrateSettings, RoundSettings, TrainSettings

__all__ = ["STEPS", "Settings"]

# The steps of a run in order, as `--from`, `--to` and `--force` name them.
STEPS = (
    "load",
    "literals",
    "merge",
    "partition",
    "landmarks",
    "subgraphs",
    "train",
    "integrate",
    "rounds",
    "search",
    "match",
    "evaluate",
    "report",
)


class Settings(Section):
    """All settings of a run."""

    seed: int = Field(0, ge=0, le=2**32 - 1, description="Random seed. Every stage derives its own from it.")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="Device. auto: a GPU if there is one.")
    channels: Annotated[tuple[str, ...], PartsOf(CHANNELS, word="auto")] = Field(
        ("auto",),
        description="Sources of candidate pairs. auto: all that the data allow. structure alone is the paper's system.",
    )
    data: DataSettings = DataSettings()
    compare: CompareSettings = CompareSettings()
    protocol: ProtocolSettings = ProtocolSettings()
    division: DivisionSettings = DivisionSettings()
    landmarks: LandmarkSettings = LandmarkSettings()
    train: TrainSettings = TrainSettings()
    integrate: IntegrateSettings = IntegrateSettings()
    rounds: RoundSettings = RoundSettings()
    search: SearchSettings = SearchSettings()
    match: MatchSettings = MatchSettings()
    evaluate: EvaluateSettings = EvaluateSettings()
    report: ReportSettings = ReportSettings()
    cluster: ClusterSettings = ClusterSettings()

    @property
    def keep_literals(self) -> bool:
        """Whether names and values are read; without them, entities that have nothing else are left out."""
        return bool({"auto", "literals"} & set(self.channels))

    def only(self, *sections: str) -> Settings:
        """These sections, and the defaults in place of all others: what a step that takes several depends on."""
        return Settings(**{name: getattr(self, name) for name in sections})

    @model_validator(mode="after")
    def _check_neighbors(self) -> Self:
        if self.search.k < max(self.match.csls_k, self.match.k):
            raise ValueError("search.k must be at least match.csls_k and match.k")
        return self
