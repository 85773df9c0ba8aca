"""Settings by dotted key, to compare them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["flat_settings"]


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every value of plain nested settings, under its dotted key."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flat_settings(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
