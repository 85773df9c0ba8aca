"""Every setting, in one frozen section per stage, with its default, its help and its check.

Settings come from four places, later ones win: the defaults below, a preset, a TOML file, `--set section.key=value`.
An unknown key, a wrong type or an impossible combination is an `InputError` that names the key and what is allowed.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from largegnn.artifacts import SeedsFrom
from largegnn.errors import InputError

__all__ = [
    "PRESETS",
    "WORLD_PRESETS",
    "DataSettings",
    "ProtocolSettings",
    "Settings",
    "WorldSettings",
    "describe",
    "resolve",
    "to_toml",
    "toml_value",
]

FileFormat = Literal["auto", "nt", "nq", "ttl", "tsv", "csv", "parquet"]
FolderFormat = Literal["auto", "openea", "dbpedia1m", "dbp15k", "pair"]
Share = Annotated[float, Field(ge=0, lt=1)]


class _Section(BaseModel):
    """A frozen group of settings that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, strict=True)


class DataSettings(_Section):
    """How files become an alignment task (stage `load`)."""

    format: FileFormat = Field("auto", description="format of the two triple files; auto = from name and content")
    layout: FolderFormat = Field("auto", description="layout of a data set folder; auto = from the files in it")
    fold: int = Field(1, ge=1, description="which fold of an OpenEA folder to read")
    valid_share: Share = Field(
        0.1, description="share of the seeds held out as valid links where no valid links are given"
    )
    skip_unknown: bool = Field(
        False, description="drop seeds whose entities are in neither graph file instead of refusing them"
    )


class ProtocolSettings(_Section):
    """What training may see (every stage from `merge` on)."""

    seeds_from: SeedsFrom = Field(
        "train", description="links used as seeds: train (honest), or train+valid (as the paper's tables were made)"
    )


class Settings(_Section):
    """All settings of a run."""

    seed: int = Field(0, ge=0, lt=2**32, description="random seed; every stage derives its own generator from it")
    data: DataSettings = DataSettings()
    protocol: ProtocolSettings = ProtocolSettings()


class WorldSettings(_Section):
    """Size and difficulty of a generated pair (`largegnn generate`)."""

    source_entities: int = Field(3_000, ge=10, description="entities of the source graph")
    target_entities: int = Field(3_000, ge=10, description="entities of the target graph")
    links: int = Field(2_400, ge=3, description="entities both graphs describe; the others have no counterpart")
    source_relations: int = Field(60, ge=1, description="relations of the source graph")
    target_relations: int = Field(50, ge=1, description="relations of the target graph")
    source_triples: int = Field(12_000, ge=10, description="triples of the source graph")
    target_triples: int = Field(10_500, ge=10, description="triples of the target graph")
    missing: Share = Field(
        0.2, description="share of the facts about linked entities that the richer graph lacks; the poorer lacks more"
    )
    wrong: Share = Field(0.02, description="share of each graph's triples that state something false")
    degree_exponent: float = Field(
        2.2, gt=1.5, le=5, description="exponent of the power law of entity degrees; smaller = heavier hubs"
    )
    relation_exponent: float = Field(1.0, ge=0, le=3, description="exponent of the Zipf law of relation frequencies")
    community_size: int = Field(60, ge=2, description="mean number of entities in a community")
    inside: Share = Field(0.7, description="share of the facts whose two ends lie in one community")
    train_share: Share = Field(0.2, description="share of the links written as train links")
    valid_share: Share = Field(0.1, description="share of the links written as valid links; the rest are test links")

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.links > min(self.source_entities, self.target_entities):
            raise ValueError("links must not exceed source_entities or target_entities")
        for side in ("source", "target"):
            entities, triples = getattr(self, f"{side}_entities"), getattr(self, f"{side}_triples")
            if 2 * triples < entities:
                raise ValueError(f"{side}_triples must be at least half of {side}_entities, or some stay isolated")
            if getattr(self, f"{side}_relations") > triples:
                raise ValueError(f"{side}_relations must not exceed {side}_triples")
        if self.train_share + self.valid_share > 1:
            raise ValueError("train_share and valid_share must not exceed 1 together")
        return self


PRESETS: dict[str, dict[str, Any]] = {
    "honest": {},
    "paper": {"protocol": {"seeds_from": "train+valid"}},
}

WORLD_PRESETS: dict[str, dict[str, Any]] = {
    "small": {"missing": 0.12},
    "15k": {
        "source_entities": 15_000,
        "target_entities": 15_000,
        "links": 15_000,
        "source_relations": 267,
        "target_relations": 210,
        "source_triples": 47_334,
        "target_triples": 40_864,
        "missing": 0.24,
        "degree_exponent": 1.8,
        "community_size": 60,
        "inside": 0.98,
    },
    "100k": {
        "source_entities": 100_000,
        "target_entities": 100_000,
        "links": 100_000,
        "source_relations": 400,
        "target_relations": 300,
        "source_triples": 309_607,
        "target_triples": 258_285,
        "missing": 0.32,
        "degree_exponent": 1.9,
        "community_size": 80,
        "inside": 0.97,
    },
    "dbpedia1m": {
        "source_entities": 1_211_270,
        "target_entities": 1_176_869,
        "links": 488_563,
        "source_relations": 595,
        "target_relations": 400,
        "source_triples": 8_150_656,
        "target_triples": 4_268_719,
        "missing": 0.5,
        "degree_exponent": 2.0,
        "community_size": 400,
        "inside": 0.94,
    },
}

_Model = TypeVar("_Model", bound=_Section)


def resolve(
    model: type[_Model],
    presets: Mapping[str, Mapping[str, Any]],
    preset: str | None = None,
    file: Path | None = None,
    overrides: Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
) -> _Model:
    """Build settings from defaults, `values`, a preset, a TOML file and `key=value` overrides, later ones winning."""
    merged: dict[str, Any] = {}
    _merge(merged, values or {})
    if preset is not None:
        if preset not in presets:
            raise InputError(
                f"no preset is called {preset!r}",
                expected=f"one of {', '.join(presets)}",
                fix="see `largegnn config` for what each preset sets",
            )
        _merge(merged, presets[preset])
    if file is not None:
        _merge(merged, _read_toml(file))
    for override in overrides:
        _merge(merged, _parse_override(model, override))
    try:
        return model.model_validate(merged)
    except ValidationError as error:
        raise _as_input_error(model, error) from None


def describe(model: type[_Section], prefix: str = "") -> Iterator[tuple[str, str, Any, str]]:
    """Every setting as (dotted key, allowed values, default, help), in the order they are declared."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, _Section):
            yield from describe(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _allowed(field), field.default, field.description or ""


def to_toml(settings: _Section) -> str:
    """Settings as TOML text that `resolve` reads back to the same settings."""
    values = settings.model_dump()
    lines = [f"{key} = {toml_value(value)}" for key, value in values.items() if not isinstance(value, dict)]
    for section, content in values.items():
        if isinstance(content, dict):
            lines += ["", f"[{section}]"] + [f"{key} = {toml_value(value)}" for key, value in content.items()]
    return "\n".join(lines).lstrip("\n") + "\n"


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = dict(value) if isinstance(value, Mapping) else value


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        text = file.read_bytes()
    except OSError as error:
        raise InputError("the settings file cannot be read", where=str(file), found=error.strerror) from None
    try:
        return tomllib.loads(text.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError("the settings file is not valid TOML", where=str(file), found=str(error)) from None


def _parse_override(model: type[_Section], override: str) -> dict[str, Any]:
    key, equals, text = override.partition("=")
    key, text = key.strip(), text.strip()
    if not equals or not key:
        raise InputError("--set takes section.key=value", found=override, fix="for example --set data.fold=2")
    if key not in {known for known, *_ in describe(model)}:
        raise _unknown_key(model, key)
    # A bare word is a string; everything else is written as in TOML.
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    nested: dict[str, Any] = {}
    *sections, last = key.split(".")
    inner = nested
    for section in sections:
        inner = inner.setdefault(section, {})
    inner[last] = value
    return nested


def _as_input_error(model: type[_Section], error: ValidationError) -> InputError:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return _unknown_key(model, key)
    known = {name: (allowed, default) for name, allowed, default, _ in describe(model)}
    if key in known:
        return InputError(
            f"the setting {key} has an impossible value",
            expected=f"{known[key][0]} (default {toml_value(known[key][1])})",
            found=repr(first["input"]),
        )
    problem = str(first["msg"]).removeprefix("Value error, ")
    return InputError("the settings do not go together" + (f" ({key})" if key else ""), expected=problem)


def _unknown_key(model: type[_Section], key: str) -> InputError:
    known = [name for name, *_ in describe(model)]
    close = difflib.get_close_matches(key, known, n=3, cutoff=0.5)
    return InputError(
        f"no setting is called {key}",
        expected=", ".join(close or known),
        fix="`largegnn config` prints every setting",
    )


def _allowed(field: FieldInfo) -> str:
    annotation = field.annotation
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(str(value) for value in get_args(annotation))
    kind = {bool: "true or false", int: "a whole number", float: "a number"}.get(annotation, "text")  # type: ignore[arg-type]
    signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    bounds = [
        f"{sign} {getattr(limit, name)}"
        for limit in field.metadata
        for name, sign in signs.items()
        if getattr(limit, name, None) is not None
    ]
    return " ".join([kind, " and ".join(bounds)]).strip()


def toml_value(value: Any) -> str:
    """A plain value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)
