"""Every setting: sections, presets, and how they are written and read."""

from __future__ import annotations

from largegnn.settings.describe import SettingInfo, describe, flat_settings, to_toml, toml_value
from largegnn.settings.generate import WORLD_PRESETS, WorldSettings
from largegnn.settings.presets import METHODS, PRESETS
from largegnn.settings.resolving import resolve
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
