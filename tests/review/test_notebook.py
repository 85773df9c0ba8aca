"""A result in a notebook: charts in a frame that runs nothing, pairs as a table."""

from __future__ import annotations

import html
import re
from pathlib import Path

import polars as pl
import pytest

from largegnn.artifacts import AlignmentTask, TaskNames
from largegnn.review.notebook import Charts, charts_of, pairs_html
from largegnn.stages.report import ReportInputs
from tests.review.small_alignment import toy_alignment, toy_literals, toy_summary


@pytest.fixture
def charts(toy_task: AlignmentTask, toy_names: TaskNames) -> Charts:
    return charts_of(
        ReportInputs(toy_task, toy_names, toy_alignment(), toy_summary(), literals=toy_literals()), 'a "run" <b>'
    )


def test_the_charts_are_those_of_the_report(charts: Charts, tmp_path: Path) -> None:
    titles = [plot.title for plot in charts.plots]
    assert titles[0] == "Pairs by confidence"
    assert {"Reliability", "Loss", "Valid H@1", "Subgraphs"} <= set(titles)
    frame = charts._repr_html_()
    assert frame.startswith('<iframe sandbox srcdoc="')
    assert "<b>" not in frame
    inside = html.unescape(frame.split('srcdoc="')[1].split('" title=')[0])
    assert inside.count("<figure>") == len(titles)
    assert "<script" not in inside
    charts.save(tmp_path / "charts.html")
    assert (tmp_path / "charts.html").read_text(encoding="utf-8").count("<figure>") == len(titles)
    assert repr(charts).startswith("Charts('a \"run\" <b>': Pairs by confidence, ")


def test_the_accepted_bar_is_as_high_as_its_pairs(charts: Charts) -> None:
    """b = B at .99 and d = D at .8 are the pairs that were selected: two bars of one pair each."""
    bars = charts.plots[0].bars
    assert [bar.title for bar in bars] == ["0.8 to 0.82: 1 accepted", "0.98 to 1: 1 accepted"]
    assert len({bar.height for bar in bars}) == 1
    assert charts.plots[0].marker == pytest.approx((46 + 348) / 2), "threshold .5, half way"


def test_pairs_as_a_table() -> None:
    frame = pl.DataFrame(
        {"source": ["<a>", "b", "c"], "confidence": [0.123456, 1.0, 0.5], "mutual": [True, False, True]}
    )
    text = pairs_html("three pairs", frame, 2)
    assert re.findall(r"<th>(\w+)</th>", text) == ["source", "confidence", "mutual"]
    assert "<td>&lt;a&gt;</td><td>0.1235</td><td>True</td>" in text
    assert "1 more pairs" in text
