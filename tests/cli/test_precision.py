"""What can be promised of the pairs, and what is said where it cannot: a run never fails for it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tests.cli.small_runs import QUICK, call, stages_from, started


def test_a_precision_that_is_reached_is_kept(copy: Path) -> None:
    before = json.loads((copy / "report.json").read_text())
    asked = round(before["threshold"]["expected_precision"] + 0.02, 2)
    ended = call("align", "--resume", "--out", copy, "--min-precision", str(asked), "--force", "match", "--json")
    report = ended.json()
    assert started(ended.stderr) == stages_from("match")
    assert report["threshold"]["is_reached"]
    assert report["threshold"]["expected_precision"] > asked - 1e-6
    assert 0 < report["pairs"] < before["pairs"]
    assert report["settings"]["match"]["min_precision"] == asked


def test_one_out_of_reach_gives_the_most_confident_pairs_and_a_warning(copy: Path) -> None:
    ended = call("align", "--resume", "--out", copy, "--min-precision", "1", "--force", "match")
    assert "match: an expected precision of 1 is not reached; the most confident pairs are kept" in ended.stderr
    assert "less than was asked for" in ended.stdout
    report = json.loads((copy / "report.json").read_text())
    assert not report["threshold"]["is_reached"]
    assert report["threshold"]["expected_precision"] < 1
    assert report["pairs"] > 0
    assert len(pl.read_csv(copy / "alignment.tsv", separator="\t", quote_char=None)) == report["pairs"]


@pytest.fixture
def few(pair: Path, tmp_path: Path) -> list[str | Path]:
    """The input with so few valid links that nothing can be learnt from them."""
    valid = tmp_path / "valid"
    lines = (pair / "721_5fold" / "1" / "valid_links").read_text().splitlines(keepends=True)
    valid.write_text("".join(lines[:5]))
    seeds = pair / "721_5fold" / "1" / "train_links"
    return [pair / "rel_triples_1", pair / "rel_triples_2", "--seeds", seeds, "--valid-links", valid]


def test_too_few_valid_links_are_said(few: list[str | Path], pair: Path, tmp_path: Path) -> None:
    ended = call("align", *few, "--out", tmp_path / "few", *QUICK)
    assert "match: 5 valid links are too few to calibrate by" in ended.stderr
    assert "Not calibrated: 5 valid links are too few" in ended.stdout
    columns = pl.read_csv(tmp_path / "few" / "alignment.tsv", separator="\t", quote_char=None).columns
    assert "confidence" not in columns
    assert "score" in columns
    ended = call("align", pair, "--out", tmp_path / "paper", *QUICK, "--seeds-from", "train+valid")
    assert "match: 0 valid links are too few to calibrate by" in ended.stderr
    report = json.loads((tmp_path / "paper" / "report.json").read_text())
    assert not report["calibrated"]
    assert report["threshold"]["expected_precision"] is None


def test_a_precision_that_cannot_be_checked_is_said(few: list[str | Path], tmp_path: Path) -> None:
    ended = call("align", *few, "--out", tmp_path / "few", *QUICK, "--min-precision", "0.5")
    assert "The precision asked for cannot be checked." in ended.stdout
    report = json.loads((tmp_path / "few" / "report.json").read_text())
    assert not report["threshold"]["is_reached"]
    assert report["pairs"] > 0


def test_what_is_not_calibrated_is_exported_without_confidence(few: list[str | Path], tmp_path: Path) -> None:
    call("align", *few, "--out", tmp_path / "few", *QUICK)
    forms = [word for form in ("sssom", "alignment-api", "tsv", "parquet") for word in ("--form", form)]
    rows = call("export", tmp_path / "few", *forms, "--out", tmp_path / "out", "--json").json()
    sssom, alignment_api, tsv, parquet = map(Path, rows)
    header = next(line for line in sssom.read_text().splitlines() if not line.startswith("#"))
    assert "confidence" not in header.split("\t")
    assert "the share of the cells whose score is no higher" in alignment_api.read_text(), "what stands for it is said"
    assert "confidence" not in pl.read_csv(tsv, separator="\t", quote_char=None).columns
    assert "confidence" not in pl.read_parquet(parquet).columns
