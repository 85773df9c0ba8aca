"""`largegnn report`: the page of a finished run has the numbers of its files."""

from __future__ import annotations

import json
import re
from collections import Counter
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from largegnn.api import open_run
from tests.cli.small_runs import call

CELL = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.S)


@pytest.fixture(scope="module")
def page(finished: Path) -> str:
    return (finished / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def report(finished: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((finished / "report.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def candidates(finished: Path) -> pl.DataFrame:
    return pl.read_parquet(finished / "alignment.parquet")


def table_after(page: str, title: str) -> list[list[str]]:
    """The rows of the first table after some text, as plain text; pictures are empty."""
    body = page[page.index(title) :].partition("</table>")[0]
    rows = [[_text(cell) for cell in CELL.findall(row)] for row in body.split("<tr>")[1:]]
    return [row for row in rows if row]


def _text(cell: str) -> str:
    return unescape(re.sub(r"<svg.*?</svg>|<small>.*?</small>|<[^>]*>", "", cell, flags=re.S)).strip()


def tooltips(page: str, title: str) -> list[str]:
    """What the marks of a chart stand for."""
    chart = next(part for part in page.split("<figure")[1:] if f"<figcaption>{title}</figcaption>" in part)
    return [unescape(text) for text in re.findall(r"<title>(.*?)</title>", chart.partition("</figure>")[0])]


def cuts_of(page: str) -> list[dict[str, Any]]:
    found = re.search(r'<script type="application/json" id="cuts">(.*?)</script>', page)
    assert found is not None
    cuts: list[dict[str, Any]] = json.loads(found[1])
    return cuts


def test_header(page: str, report: dict[str, Any], finished: Path) -> None:
    pairs = pl.read_csv(finished / "alignment.tsv", separator="\t", quote_char=None)
    assert f'<dd id="pairs">{len(pairs):,}</dd>' in page
    assert len(pairs) == report["pairs"]
    threshold, stages = report["threshold"], report["stages"].values()
    low, high = threshold["precision_low"], threshold["precision_high"]
    expected = threshold["expected_precision"]
    assert re.search(rf'id="expected-precision">{expected:.3f} .*\({low:.3f} to {high:.3f}\)', page)
    assert f"<dt>candidates</dt><dd>{report['candidates']:,}</dd>" in page
    before = [one for name, one in report["stages"].items() if name != "report"]
    assert f"<dt>peak memory</dt><dd>{max(one['peak_memory_mb'] for one in before):,.0f} MB</dd>" in page
    assert len(stages) >= len(before)
    assert '<span class="iri"><bdi>http://source.example.org/resource/</bdi></span>' in page


def test_every_place_of_the_slider(page: str, report: dict[str, Any], candidates: pl.DataFrame) -> None:
    """Pairs, expected precision and recall by the table of candidates; at the run's own place by its report."""
    own = report["threshold"]
    mutual = candidates.filter(pl.col("mutual"))["confidence"].to_numpy()
    num_links = report["calibration"]["num_links"]
    cuts = cuts_of(page)
    assert len(cuts) == 102
    for cut in cuts:
        if cut["threshold"] == own["threshold"]:
            assert cut["pairs"] == report["pairs"]
            assert cut["expected_precision"] == own["expected_precision"]
            assert cut["expected_recall"] == own["expected_recall"]
            continue
        above = mutual[mutual >= np.float32(cut["threshold"])].astype(np.float64)
        assert cut["pairs"] == len(above), cut
        if len(above):
            assert cut["expected_precision"] == pytest.approx(above.mean())
            assert cut["expected_recall"] == pytest.approx(min(1.0, above.sum() / num_links))


@pytest.mark.parametrize("column", ["confidence", "score", "margin"])
def test_histograms(page: str, candidates: pl.DataFrame, column: str) -> None:
    marks = tooltips(page, f"Pairs by {'raw score' if column == 'score' else column}")
    mutual = candidates.filter(pl.col("mutual"))
    values, accepted = mutual[column].to_numpy().astype(np.float64), mutual["accepted"].to_numpy()
    low, high = (0.0, 1.0) if column == "confidence" else (min(0.0, values.min()), max(0.0, values.max()))
    expected = []
    edges = np.linspace(low, high, 51)
    counts = [np.histogram(values[mask], edges)[0] for mask in (accepted, ~accepted)]
    for place in range(50):
        for count, said in zip(counts, ("accepted", "not accepted"), strict=True):
            if count[place]:
                expected.append(f"{edges[place]:.3g} to {edges[place + 1]:.3g}: {count[place]:,} {said}")
    assert marks == expected


def test_reliability_and_training(page: str, report: dict[str, Any]) -> None:
    expected = [
        f"{kind} links, confidence {row['low']:.1f} to {row['high']:.1f}: {row['confidence']:.3f}, "
        f"right {row['right']:.3f}, {row['pairs']:,} pairs"
        for kind in ("valid", "test")
        for row in report["reliability"][kind] or ()
        if row["confidence"] is not None and row["right"] is not None
    ]
    assert expected
    assert tooltips(page, "Reliability") == expected
    epochs = [f"epoch {one['epoch'] + 1}: {one['loss']:.4f}" for one in report["history"]]
    assert tooltips(page, "Loss") == epochs


def test_why_entities_are_unmatched(page: str, report: dict[str, Any], finished: Path) -> None:
    frame = pl.read_csv(finished / "unmatched.tsv", separator="\t", quote_char=None)
    counts = Counter(zip(frame["reason"], frame["side"], strict=True))
    rows = {row[0]: (row[1], row[3]) for row in table_after(page, "Matched and unmatched entities")[1:]}
    assert rows.pop("aligned") == (f"{report['pairs']:,}",) * 2
    rows.pop("seed")
    assert rows == {reason: tuple(f"{counts[reason, side]:,}" for side in ("source", "target")) for reason, _ in counts}


def test_by_the_test_links(page: str, report: dict[str, Any]) -> None:
    ideal = {row[0]: row[1:] for row in table_after(page, "Ideal setting")[1:]}
    assert ideal == {
        name: [f"{value:.3f}" for value in ranks["source_to_target"].values()]
        for name, ranks in report["ideal"].items()
    }
    real = {row[0]: row[1:4] for row in table_after(page, "Real setting")[1:]}
    start = "" if report["protocol"]["gold"] == "full" else "partial_"
    assert real == {
        name: [f"{one[key]:.3f}" for key in (f"{start}precision", "recall", f"{start}f1")]
        for name, one in report["real"].items()
    }


def test_division_relations_and_costs(page: str, report: dict[str, Any], finished: Path) -> None:
    division = dict(table_after(page, "<h2>Division"))
    assert division["subgraphs"] == f"{len(report['partition']['sizes']):,}"
    assert division["landmarks in all"] == f"{sum(report['partition']['num_landmarks']):,}"
    for name in ("triples", "train", "valid", "test"):
        said = division[f"{name} kept" if name == "triples" else f"{name} links kept"]
        assert said == f"{report['partition'][f'{name}_kept']:.3f}"
    frame = pl.read_csv(finished / "relations.tsv", separator="\t", quote_char=None).sort("score", descending=True)
    shown = table_after(page, "<caption>Relations</caption>")[1:]
    assert shown
    assert [row[3] for row in shown] == [f"{score:.3f}" for score in frame["score"][: len(shown)]]
    known = {
        ("^" if inverse else "") + target + source: f"{count:,}"
        for source, target, inverse, count in frame.select("source", "target", "inverse", "count").rows()
    }
    assert all(known[row[1].split()[-1] + row[0].split()[-1]] == row[4] for row in shown)
    costs = {row[0]: row[1:] for row in table_after(page, "<h2>Time and memory")[1:]}
    for name, cost in report["stages"].items():
        if name != "report":
            assert costs[name] == [f"{cost['seconds']:.2f}", "", f"{cost['peak_memory_mb']:,.0f}"]


def test_the_command_writes_the_page_again(copy: Path) -> None:
    (copy / "report.html").unlink()
    written = call("report", copy, "--json").json()
    assert written[str(copy / "report.html")] == 1
    assert cuts_of((copy / "report.html").read_text(encoding="utf-8"))


def test_a_run_of_an_older_version_gets_its_page(copy: Path) -> None:
    """One whose settings do not name the page."""
    call("align", "--resume", "--out", copy, "--force", "report", "--set", 'report.pages=["report.json"]')
    assert not (copy / "report.html").exists()
    call("report", copy)
    assert (copy / "report.html").exists()


def test_a_result_prints_as_a_table_and_plots(finished: Path) -> None:
    result = open_run(finished)
    assert f"{len(result.pairs):,} pairs of" in result._repr_html_()
    assert result._repr_html_().count("<tr>") == 11
    assert str(result).startswith("AlignmentResult(")
    assert "source" in str(result)
    assert result.plot().plots[0].title == "Pairs by confidence"
