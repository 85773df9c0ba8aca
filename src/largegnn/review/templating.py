"""Templates to text: every value is escaped, and numbers are written the same way on every page."""

from __future__ import annotations

import dataclasses
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from largegnn.data.shown import local_part
from largegnn.review.meanings import meaning

__all__ = ["asset", "render"]

_HERE = Path(__file__).parent
_JOINTS = re.compile(r"([_+/#])")


def render(template: str, **values: Any) -> str:
    """A template filled in."""
    return _environment().get_template(template).render(**values)


def asset(name: str) -> str:
    """A style sheet or script of ours."""
    return (_HERE / "static" / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "breakable": _breakable,
        "count": _count,
        "cut": _cut,
        "duration": _duration,
        "json": _json,
        "local": local_part,
        "meaning": meaning,
        "share": _share,
    }
    return environment


def _count(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _share(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _breakable(text: str) -> Markup:
    """A name that may go on in the next line after a sign that joins its words."""
    return Markup("").join(escape(part) + (Markup("<wbr>") if part in "_+/#" else "") for part in _JOINTS.split(text))


def _json(value: Any) -> Markup:
    """Values for a script to read; no text in them can end the element they stand in."""
    plain = [dataclasses.asdict(row) for row in value] if isinstance(value, tuple) else value
    text = json.dumps(plain, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
