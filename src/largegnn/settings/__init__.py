"""Every setting: sections, presets, and how they are written and read."""

from __future__ import annotations

from largegnn.settings.data import DataSettings, ProtocolSettings
from largegnn.settings.describe import describe
from largegnn.settings.division import DivisionSettings, LandmarkSettings
from largegnn.settings.generate import WorldSettings
from largegnn.settings.matching import MatchSettings, SearchSettings
from largegnn.settings.presets import METHODS, PRESETS, WORLD_PRESETS
from largegnn.settings.resolving import resolve, to_toml, toml_value
from largegnn.settings.run import Settings
from largegnn.settings.section import Section
from largegnn.settings.training import IntegrateSettings, RoundSettings, TrainSettings

__all__ = [
    "METHODS",
    "PRESETS",
    "WORLD_PRESETS",
    "DataSettings",
    "DivisionSettings",
    "IntegrateSettings",
    "LandmarkSettings",
    "MatchSettings",
    "ProtocolSettings",
    "RoundSettings",
    "SearchSettings",
    "Section",
    "Settings",
    "TrainSettings",
    "WorldSettings",
    "describe",
    "resolve",
    "to_toml",
    "toml_value",
]
