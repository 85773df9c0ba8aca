"""Test `report.html`: numbers as in the files, escaped names, one file, and its size for many pairs."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

from largegnn.artifacts import (
    REASONS,
    Alignment,
    AlignmentTask,
    RelationAlignment,
    StringTable,
    TaskNames,
)
from largegnn.matching.confidence.thresholds import Threshold
from largegnn.review.pages import ReportInputs
from largegnn.review.report_page import report_html
from tests.review.small_alignment import toy_alignment, toy_literals, toy_summary

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>\u202e'


@pytest.fixture
def inputs(toy_task: AlignmentTask, toy_names: TaskNames) -> ReportInputs:
    return ReportInputs(toy_task, toy_names, toy_alignment(), toy_summary(), literals=toy_literals())


def page(inputs: ReportInputs, folder: Path) -> str:
    assert report_html(inputs, folder / "report.html") == 1
    return (folder / "report.html").read_text(encoding="utf-8")


def test_the_numbers_of_the_run_stand_on_the_page(inputs: ReportInputs, tmp_path: Path) -> None:
    text = page(inputs, tmp_path)
    assert '<dd id="pairs">2</dd>' in text
    assert re.search(r'id="expected-precision">0\.895 .*0\.700 to 0\.950', text)
    assert '<dd id="cut-pairs">2</dd>' in text
    found = re.search(r'<script type="application/json" id="cuts">(.*?)</script>', text)
    assert found is not None
    cuts = json.loads(found[1])
    run_cut = next(cut for cut in cuts if cut["threshold"] == 0.5)
    assert (run_cut["pairs"], run_cut["expected_precision"], run_cut["expected_recall"]) == (2, 0.895, 0.45)
    assert re.search(
        r'<th scope="row">not mutual <small>.{,80}?</th><td class="number">1</td>.{,400}?<td class="number">1</td>',
        text,
        flags=re.S,
    )
    assert "31.5 s" in text
    assert "the b" in text
    for title in ("Reliability", "Loss", "Valid H@1", "Subgraphs", "Pairs by margin", "Values side by side"):
        assert title in text


def test_names_and_values_are_harmless(inputs: ReportInputs, toy_task: AlignmentTask, tmp_path: Path) -> None:
    hostile = TaskNames(
        StringTable.from_strings([f"{HOSTILE}{number}" for number in range(11)]),
        StringTable.from_strings([HOSTILE] * 4),
    )
    text = page(dataclasses.replace(inputs, names=hostile), tmp_path)
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert re.findall(r"<script[ >]", text) == ["<script ", "<script>"], "the numbers, and the script of the page"
    assert "default-src 'none'" in text


def test_one_file_that_loads_nothing(inputs: ReportInputs, tmp_path: Path) -> None:
    text = page(inputs, tmp_path)
    assert not re.search(r"""(src|href)=|@import|url\(""", text)
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_relations_are_shown_where_the_run_has_them(inputs: ReportInputs, tmp_path: Path) -> None:
    assert "<caption>Relations</caption>" not in page(inputs, tmp_path)
    pairs = np.array([(0, inputs.task.num_source_relations)])
    one = np.array([0.9], dtype=np.float32)
    relations = RelationAlignment(pairs, np.array([True]), one, one, one, np.array([7]), np.full((1, 3, 4), -1))
    text = page(dataclasses.replace(inputs, relations=relations), tmp_path)
    assert "<caption>Relations</caption>" in text
    target = inputs.names.relations[inputs.task.num_source_relations]
    assert f"<td>^{target}</td>" in text
    assert re.search(r'<td class="number">0?\.900</td><td class="number">7</td>', text)


def test_a_million_pairs_make_no_larger_page(tmp_path: Path) -> None:
    count = 1_000_000
    names = StringTable(np.full(2 * count, ord("x")), np.arange(2 * count + 1))
    triples = np.stack([np.arange(999), np.zeros(999), np.arange(1, 1000)], axis=1)
    none = np.empty((0, 2))
    task = AlignmentTask(count, count, 1, 0, triples, none, none, none)
    confidence = np.random.default_rng(0).random(count).astype(np.float32)
    first = np.ones(count, dtype=np.int32)
    alignment = Alignment(
        np.stack([np.arange(count), np.arange(count, 2 * count)], axis=1), ("cosine",), confidence[None], confidence,
        confidence - 0.5, first, first, confidence, confidence >= 0.5, np.tile(np.where(confidence >= 0.5, 0, 5), 2),
    )  # fmt: skip
    accepted = int(alignment.accepted.sum())
    match = toy_summary().match
    assert match is not None
    found = dataclasses.replace(match, num_accepted=accepted, threshold=Threshold(0.5, accepted, 0.75, 0.7, 0.8))
    inputs = ReportInputs(task, TaskNames(names, StringTable.from_strings("r")), alignment, toy_summary(match=found))
    text = page(inputs, tmp_path)
    assert len(text.encode("utf-8")) < 1_000_000
    assert f"<dd>{accepted:,}</dd>" in text.replace(' id="pairs"', "")
    assert REASONS[5] == "below threshold"
