"""What every group of settings is: frozen, strict, without unknown keys; and the kinds of numbers they share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Positive", "Section", "Share", "Weight"]

Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]
Weight = Annotated[float, Field(ge=0)]


class Section(BaseModel):
    """A frozen group of settings that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, strict=True)
