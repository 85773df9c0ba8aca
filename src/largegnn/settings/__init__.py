"""Every setting: sections, presets, and how they are written and read."""

from __future__ import annotations

from largegnn.settings.describe import SettingInfo, describe
from largegnn.settings.generate import WorldSettings
from largegnn.settings.presets import METHODS, PRESETS, WORLD_PRESETS
from largegnn.settings.resolving import flat_settings, resolve
from largegnn.settings.section import Section, StrictModel
from largegnn.settings.sections import (
    DEFAULT_LOSSES,
    STEPS,
    ClusterSettings,
    CompareSettings,
    DataSettings,
    DivisionSettings,
    EvaluateSettings,
    IntegrateSettings,
    LandmarkSettings,
    MatchSettings,
    ProtocolSettings,
    ReportSettings,
    RoundSettings,
    SearchSettings,
    Settings,
    TrainSettings,
)
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
