"""Every setting: sections, presets, and how they are written and read."""

from __future__ import annotations

from largegnn.settings.cluster import ClusterSettings
from largegnn.settings.comparing import CompareSettings
from largegnn.settings.data import DataSettings, ProtocolSettings
from largegnn.settings.describe import SettingInfo, describe
from largegnn.settings.division import DivisionSettings, LandmarkSettings
from largegnn.settings.flat import flat_settings
from largegnn.settings.generate import WorldSettings
from largegnn.settings.matching import MatchSettings, SearchSettings
from largegnn.settings.presets import METHODS, PRESETS, WORLD_PRESETS
from largegnn.settings.reporting import EvaluateSettings, ReportSettings
from largegnn.settings.resolving import resolve
from largegnn.settings.run import STEPS, Settings
from largegnn.settings.section import Section, StrictModel
from largegnn.settings.training import DEFAULT_LOSSES, IntegrateSettings, RoundSettings, TrainSettings
from largegnn.settings.writing import to_toml, toml_value

__all__ = [
    "DEFAULT_LOSSES",
    "METHODS",
    "PRESETS",
    "STEPS",
    "WORLD_PRESETS",
    "ClusterSettings",
    "CompareSettings",
    "DataSettings",
    "DivisionSettings",
    "EvaluateSettings",
    "IntegrateSettings",
    "LandmarkSettings",
    "MatchSettings",
    "ProtocolSettings",
    "ReportSettings",
    "RoundSettings",
    "SearchSettings",
    "Section",
    "SettingInfo",
    "Settings",
    "StrictModel",
    "TrainSettings",
    "WorldSettings",
    "describe",
    "flat_settings",
    "resolve",
    "to_toml",
    "toml_value",
]
