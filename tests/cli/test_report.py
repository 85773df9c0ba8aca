"""`largegnn report`: the page of a finished run has the numbers of its files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl

from largegnn.api import open_run
from tests.cli.small_runs import call


def test_the_page_has_the_numbers_of_the_files(copy: Path) -> None:
    (copy / "report.html").unlink()
    written = call("report", copy, "--json").json()
    assert written[str(copy / "report.html")] == 1
    text = (copy / "report.html").read_text(encoding="utf-8")
    report = json.loads((copy / "report.json").read_text(encoding="utf-8"))
    pairs = pl.read_csv(copy / "alignment.tsv", separator="\t", quote_char=None)
    assert f'<dd id="pairs">{len(pairs):,}</dd>' in text
    assert f'id="expected-precision">{report["threshold"]["expected_precision"]:.3f}' in text
    found = re.search(r'<script type="application/json" id="cuts">(.*?)</script>', text)
    assert found is not None
    cuts = json.loads(found[1])
    own = next(cut for cut in cuts if cut["threshold"] == report["threshold"]["threshold"])
    assert own["pairs"] == len(pairs) == report["pairs"]
    for cut in cuts:
        if cut["threshold"] > own["threshold"] + 1e-6:
            assert cut["pairs"] == int((pairs["confidence"] >= cut["threshold"]).sum())
    for name, cost in report["stages"].items():
        assert re.search(rf'<th scope="row">{name}</th><td class="number">{cost["seconds"]:.2f}</td>', text)


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
