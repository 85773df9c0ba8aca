"""What every group of settings is: frozen, strict, without unknown keys, refused with an `InputError`.

Numbers have both bounds, so that no value leads to a crash or to days of waiting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from largegnn.errors import InputError

__all__ = ["MemoryGB", "Section", "Share", "StrictModel", "Weight"]

Share = Annotated[float, Field(ge=0, lt=1)]
Weight = Annotated[float, Field(ge=0, le=10_000)]
MemoryGB = Annotated[float, Field(ge=0.001, le=100_000)]


class StrictModel(BaseModel):
    """Frozen values with exact types; unknown keys, infinities and NaN are refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, strict=True, allow_inf_nan=False, hide_input_in_errors=True
    )


class Section(StrictModel):
    """A group of settings; a wrong one is an `InputError` that names the key and what is allowed."""

    place: ClassVar[str] = ""  # the key of this group in the settings of a run, with a dot

    def __init__(self, /, **values: Any) -> None:
        """Check every value; what is not given has its default."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            from largegnn.settings.describe import refusal_of

            raise refusal_of(type(self), error) from None

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Tell the groups inside this one by which key they are known."""
        for name, field in cls.model_fields.items():
            if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
                field.annotation.place = f"{name}."

    def plain(self) -> dict[str, Any]:
        """The values for JSON; what a step's fingerprint covers."""
        return self.model_dump(mode="json")

    @classmethod
    def of(cls, value: Self | Mapping[str, Any] | None) -> Self:
        """Settings from what a caller gives: settings, a mapping with nested or dotted keys, None."""
        if value is None:
            return cls()
        if isinstance(value, cls):
            return value
        if isinstance(value, Mapping):
            from largegnn.settings.resolving import resolve

            return resolve(cls, {}, values=value)
        raise InputError(
            f"the settings are no {cls.__name__}",
            expected=f"{cls.__name__}(...), a mapping such as {{'seed': 1}}, or None",
            found=type(value).__name__,
            fix=f"`largegnn.settings.resolve({cls.__name__}, PRESETS, file=...)` reads a settings file",
        )
