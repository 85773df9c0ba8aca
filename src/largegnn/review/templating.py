"""Render the templates of the pages.

In: values. Out: HTML or SVG with every value escaped, and numbers written the same way on every page. `MEANINGS`
explains words and columns; a column that it does not explain is shown without an explanation.
"""

from __future__ import annotations

import dataclasses
import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from largegnn.data.shown import local_part

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MEANINGS", "asset", "pairs_html", "render"]

_HERE = Path(__file__).parent
_JOINING_SIGNS = re.compile(r"([_+/#])")
MEANINGS = {
    "confidence": "the probability that the pair is right, from 0 to 1",
    "score": "the rank of the pair, from 0 to 1; the run is not calibrated, so this is not a probability",
    "raw score": "the score that ranks the pairs: all evidence, combined by the scoring of the run",
    "margin": "the raw score minus the raw score of the best other candidate of either entity",
    "cosine": "the similarity of the vectors of the two entities",
    "csls": "the cosine, reduced for entities that are near many others (hubs)",
    "name": "the similarity of their names",
    "text": "the similarity of all their values, read as one text",
    "neighbors": "the similarity of the names of their neighbours",
    "meaning": "the similarity of their texts by the text encoder",
    "agreement": "evidence for the pair from equal values; rare values count more",
    "contradiction": "evidence against the pair from different values",
    "literal": "names and values combined",
    "similarity": "vectors, names and values combined",
    "similarity_csls": "the similarity, reduced for entities that are similar to many others (hubs)",
    "support": "neighbours of the two entities that are matched with each other",
    "aligned": "has an accepted pair",
    "seed": "its counterpart was given as input",
    "isolated": "has no triple",
    "not covered": "is in no subgraph, so it has no vector",
    "not mutual": "no candidate ranks it first",
    "below threshold": "its best pair scores below the threshold",
}


def render(template: str, **values: Any) -> str:
    """Fill in a template with values."""
    return _environment().get_template(template).render(**values)


def pairs_html(sentence: str, pairs: pl.DataFrame, maximum: int) -> str:
    """Make HTML of a sentence and the first pairs, for a notebook."""
    rows = pairs.head(maximum).rows()
    return render("pairs.html", sentence=sentence, columns=pairs.columns, rows=rows, total=len(pairs))


def asset(name: str) -> str:
    """Read a style sheet or script."""
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
        "cut": _truncated,
        "duration": _duration,
        "json": _json,
        "local": local_part,
        "meaning": lambda name: MEANINGS.get(name, ""),
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


def _truncated(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def _breakable(text: str) -> Markup:
    """Escape a name, and allow line breaks after the signs that join its words."""
    return Markup("").join(
        escape(part) + (Markup("<wbr>") if part in "_+/#" else "") for part in _JOINING_SIGNS.split(text)
    )


def _json(value: Any) -> Markup:
    """Write values as JSON for a script element; no text in them can end the element."""
    plain = [dataclasses.asdict(row) for row in value] if isinstance(value, tuple) else value
    text = json.dumps(plain, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
