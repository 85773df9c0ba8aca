"""Test charts: their numbers against values by hand, as SVG for a notebook and as files; and pairs as a table."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from largegnn.artifacts import AlignmentTask, PartitionQuality, TaskNames
from largegnn.errors import InputError
from largegnn.review.charts import Charts, division_charts
from largegnn.review.pages import ReportInputs
from largegnn.review.report_page import charts_of
from largegnn.review.templating import pairs_html
from tests.review.small_alignment import toy_alignment, toy_literals, toy_summary

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def charts(toy_task: AlignmentTask, toy_names: TaskNames) -> Charts:
    return charts_of(
        ReportInputs(toy_task, toy_names, toy_alignment(), toy_summary(), literals=toy_literals()), 'a "run" <b>'
    )


def test_the_charts_are_those_of_the_report(charts: Charts, tmp_path: Path) -> None:
    titles = [plot.title for plot in charts.plots]
    assert titles[0] == "Pairs by confidence"
    assert {"Reliability", "Loss", "Valid H@1", "Subgraphs"} <= set(titles)
    picture = charts._repr_svg_()
    root = ElementTree.fromstring(picture)
    assert root.tag == f"{SVG}svg"
    assert [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "title"] == titles
    assert root.findtext(f"{SVG}title") == 'a "run" <b>'
    assert "<script" not in picture
    charts.save(tmp_path / "charts.svg")
    assert (tmp_path / "charts.svg").read_text(encoding="utf-8") == picture
    charts.save(tmp_path / "charts.html")
    assert picture in (tmp_path / "charts.html").read_text(encoding="utf-8")
    assert repr(charts).startswith("Charts('a \"run\" <b>': Pairs by confidence, ")
    with pytest.raises(InputError, match="format of the picture is not known"):
        charts.save(tmp_path / "charts.png")


def test_the_accepted_bar_is_as_high_as_its_pairs(charts: Charts) -> None:
    """b = B at .99 and d = D at .8 are the pairs that were selected: two bars of one pair each."""
    bars = charts.plots[0].bars
    assert [bar.title for bar in bars] == ["0.8 to 0.82: 1 accepted", "0.98 to 1: 1 accepted"]
    assert [(bar.base, bar.number) for bar in bars] == [(0, 1), (0, 1)]
    assert charts.plots[0].marker == 0.5
    assert '<line class="marker" x1="197.0" x2="197.0"' in charts.svg(), "halfway between 46 and 348"


def quality(sizes: tuple[int, ...], kept: float) -> PartitionQuality:
    return PartitionQuality(
        sizes, tuple(size // 2 for size in sizes), (1,) * len(sizes), 0, 0.1, kept, kept, None, None
    )


def test_divisions_by_hand() -> None:
    """Two methods with 2 and 3 parts: triples and train links are known, so two charts of shares; then two views."""
    divisions = [("csg", quality((4, 6), 0.9)), ("csg", quality((3, 3, 4), 0.8)), ("cps", quality((5, 5), 0.7))]
    plots = division_charts(divisions).plots
    assert [plot.title for plot in plots[:2]] == ["Triples kept", "Train links kept"]
    assert [dot.title for line in plots[0].lines for dot in line.dots] == [
        "csg, 2 parts: 0.900", "csg, 3 parts: 0.800", "cps, 2 parts: 0.700",
    ]  # fmt: skip
    assert len({line.kind for line in plots[0].lines}) == 2, "methods differ in their dashes"
    titles = [f"{name} parts" for name in ("csg, 2", "csg, 3", "cps, 2") for _ in range(2)]
    assert [plot.title for plot in plots[2:]] == titles
    assert [bar.title for bar in plots[2].bars][:2] == ["6 entities: 3 source, 3 target"] * 2
    assert [bar.title for bar in plots[3].bars][2:] == ["4 entities: 3 own entities, 1 landmarks"] * 2
    assert plots[3].bars[1].number == plots[3].bars[3].number == 1, "one landmark in each"


def test_pairs_as_a_table() -> None:
    frame = pl.DataFrame(
        {"source": ["<a>", "b", "c"], "confidence": [0.123456, 1.0, 0.5], "mutual": [True, False, True]}
    )
    text = pairs_html("three pairs", frame, 2)
    assert re.findall(r"<th>(\w+)</th>", text) == ["source", "confidence", "mutual"]
    assert "<td>&lt;a&gt;</td><td>0.1235</td><td>True</td>" in text
    assert "1 more pairs" in text
