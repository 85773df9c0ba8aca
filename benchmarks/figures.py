"""The paper's figures from stored results: `figures.py [--json docs/results/subgraphs.jsonl] [--out docs/figures]`.

Links kept in one subgraph, H@1 and peak memory against the number of subgraphs, one picture each, a panel for each data
set. Methods differ in dash and shape as well as in grey, so the pictures read in black and white. What has no figures
in the JSON is not drawn.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from largegnn.paper.subgraph_records import FIGURES, METHOD_NAMES, mean_rows, read_subgraphs

DOCS = Path(__file__).parents[1] / "docs"
NAMES = list(METHOD_NAMES.values())


def draw(rows: list[dict[str, Any]], title: str, path: Path) -> None:
    """One measure against the number of subgraphs."""
    frame = pl.DataFrame([{**row, "method": METHOD_NAMES[row["method"]]} for row in rows])
    shown = [count for count in (3, 4, 5, 6, 8, 10, 20, 40, 80) if count <= frame["parts"].max()]  # type: ignore[operator]
    legend = alt.Legend(symbolSize=90, symbolStrokeWidth=1.5, labelLimit=220)
    base = alt.Chart(frame).encode(
        x=alt.X(
            "parts:Q",
            title="number of subgraphs",
            scale=alt.Scale(type="log", nice=False),
            axis=alt.Axis(values=shown, format="d", grid=False),
        ),
        y=alt.Y("value:Q", title=title, scale=alt.Scale(zero=False)),
        color=alt.Color("method:N", title=None, legend=legend, scale=_scale(["#000000", "#555555", "#888888"])),
    )
    line = base.mark_line(strokeWidth=1.5).encode(
        strokeDash=alt.StrokeDash("method:N", title=None, legend=legend, scale=_scale([[1, 0], [7, 4], [2, 3]]))
    )
    point = base.mark_point(size=60, strokeWidth=1.5, fill="white", opacity=1).encode(
        shape=alt.Shape("method:N", title=None, legend=legend, scale=_scale(["circle", "square", "triangle-up"]))
    )
    panel = alt.layer(line, point).properties(width=300, height=220)
    picture = panel.facet(
        column=alt.Column("dataset:N", title=None, sort=list(dict.fromkeys(row["dataset"] for row in rows)))
    ).configure_view(stroke="#999999")
    picture.save(path)


def _scale(values: list[Any]) -> Any:
    return alt.Scale(domain=NAMES, range=values)


def main() -> None:
    """Draw every figure there is something to draw of."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=DOCS / "results" / "subgraphs.jsonl")
    parser.add_argument("--out", type=Path, default=DOCS / "figures")
    arguments = parser.parse_args()
    records = read_subgraphs(arguments.json)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for measure, (name, title) in FIGURES.items():
        rows = mean_rows(records, measure)
        path = arguments.out / f"{name}.svg"
        if rows:
            draw(rows, title, path)
        print(f"{path}: {'drawn' if rows else 'nothing measured'}")


if __name__ == "__main__":
    main()
