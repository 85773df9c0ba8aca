"""A picture of divisions: shares kept against the number of parts, and sizes by side with landmarks (paper, figure 3).

In: the method and quality of each division. Out: an .svg, .png or self-contained .html file. Methods differ in dash
and shape, not in colour alone, so that the picture reads in black and white. A few divisions are shown subgraph by
subgraph, many by the mean of their subgraphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from largegnn.artifacts import PartitionQuality
from largegnn.errors import InputError, StorageError

__all__ = ["DrawnDivision", "check_plot_file", "plot_divisions"]

_SUFFIXES = (".svg", ".png", ".html")
_SHARES = {
    "triples_kept": "triples",
    "train_kept": "train links",
    "valid_kept": "valid links",
    "test_kept": "test links",
}
_FEW = 4
_KINDS = {"source": "#1b4965", "target": "#9ecae1", "own": "#4d4d4d", "landmarks": "#d9a441"}


@dataclass(frozen=True)
class DrawnDivision:
    """A division, and what the method that made it is called."""

    method: str
    quality: PartitionQuality

    @property
    def parts(self) -> int:
        """How many subgraphs it has."""
        return len(self.quality.sizes)

    @property
    def name(self) -> str:
        """Method and number of parts."""
        return f"{self.method}, {self.parts} parts"


Rows = Sequence[DrawnDivision]


def check_plot_file(path: Path) -> None:
    """Refuse a file that could not be drawn, before the work is done."""
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError("the picture's format is not known", expected=" or ".join(_SUFFIXES), found=path.name)
    if not path.parent.is_dir():
        raise InputError("there is no folder for the picture", where=str(path.parent))


def plot_divisions(rows: Rows, path: Path) -> None:
    """Draw the divisions."""
    import altair as alt

    sizes = _sizes_chart(rows) if len(rows) <= _FEW else _mean_sizes_chart(rows)
    picture = alt.vconcat(_shares_chart(rows), sizes).resolve_scale(color="independent")
    suffix = path.suffix.lower()
    try:
        if suffix == ".html":
            picture.save(path, inline=True)
        elif suffix == ".png":
            picture.save(path, ppi=150)
        else:
            picture.save(path)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error


def _shares_chart(rows: Rows) -> Any:
    """What is kept against the number of parts, one panel for each kind."""
    import altair as alt
    import polars as pl

    values = [
        {"method": row.method, "parts": row.parts, "kind": label, "share": getattr(row.quality, key)}
        for row in rows
        for key, label in _SHARES.items()
        if getattr(row.quality, key) is not None
    ]
    return (
        alt.Chart(pl.DataFrame(values))
        .mark_line(point=alt.OverlayMarkDef(size=60, filled=True))
        .encode(
            x=alt.X("parts:O", title="number of subgraphs", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("share:Q", title="share kept", scale=alt.Scale(zero=False)),
            color=alt.Color("method:N", legend=None, scale=alt.Scale(scheme="dark2")),
            strokeDash=alt.StrokeDash("method:N", legend=None),
            shape=alt.Shape("method:N", title="method"),
            column=alt.Column("kind:N", title=None, sort=list(_SHARES.values())),
        )
        .properties(width=150, height=180)
    )


def _parts_of(size: float, source: float, landmarks: float) -> list[tuple[str, str, float]]:
    """The two ways to cut a subgraph's entities: (view, kind, how many)."""
    return [
        ("by side", "source", source),
        ("by side", "target", size - source),
        ("own and recalled", "own", size - landmarks),
        ("own and recalled", "landmarks", landmarks),
    ]


def _sizes_chart(rows: Rows) -> Any:
    """Entities of every subgraph, a row of panels for each division."""
    values = [
        {"division": row.name, "bar": index, "view": view, "kind": kind, "entities": count}
        for row in rows
        for index, subgraph in enumerate(
            zip(row.quality.sizes, row.quality.source_sizes, row.quality.num_landmarks, strict=True), start=1
        )
        for view, kind, count in _parts_of(*subgraph)
    ]
    return _bars(values, "subgraph", [row.name for row in rows])


def _mean_sizes_chart(rows: Rows) -> Any:
    """Mean entities of a subgraph, a bar for each division and a row of panels for each method."""
    values = []
    for row in rows:
        count = len(row.quality.sizes)
        means = (sum(getattr(row.quality, key)) / count for key in ("sizes", "source_sizes", "num_landmarks"))
        for view, kind, entities in _parts_of(*means):
            values.append({"division": row.method, "bar": row.parts, "view": view, "kind": kind, "entities": entities})
    return _bars(values, "number of subgraphs (mean size)", list(dict.fromkeys(row.method for row in rows)))


def _bars(values: list[dict[str, Any]], axis: str, order: list[str]) -> Any:
    import altair as alt
    import polars as pl

    scale = alt.Scale(domain=list(_KINDS), range=list(_KINDS.values()))
    return (
        alt.Chart(pl.DataFrame(values, infer_schema_length=None))
        .mark_bar(stroke="black", strokeWidth=0.3)
        .encode(
            x=alt.X("bar:O", title=axis, axis=alt.Axis(labelOverlap=True, labelAngle=0)),
            y=alt.Y("entities:Q", title="entities"),
            color=alt.Color("kind:N", title="entities", scale=scale),
            row=alt.Row("division:N", title=None, sort=order),
            column=alt.Column("view:N", title=None),
        )
        .properties(width=300, height=100)
    )
