"""What every entry of `PAGES` keeps: a whole file, and how many rows are in it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from largegnn import api
from largegnn.artifacts import REASONS, Cost
from largegnn.data.load import LoadSummary
from largegnn.datasets.generator import generate_pair
from largegnn.errors import StorageError
from largegnn.matching.relations import align_relations
from largegnn.review.pages import PAGES, ReportInputs
from largegnn.run import RunSummary
from largegnn.settings import ReportSettings, Settings
from tests.noisy_vectors import TINY, noisy_vectors

every_page = pytest.mark.parametrize("name", PAGES)


@pytest.fixture(scope="module")
def inputs() -> ReportInputs:
    """Pairs of two generated graphs, from noisy vectors; every ninth entity has none."""
    pair = generate_pair(TINY, 0)
    settings = Settings(device="cpu")
    embeddings = noisy_vectors(pair.task, 0.6)
    embeddings = dataclasses.replace(embeddings, covered=np.arange(pair.task.num_entities) % 9 > 0)
    alignment, outcome = api.match(pair.task, embeddings, settings=settings)
    costs = {"match": Cost(1.5, 200.0)}
    summary = RunSummary(settings, costs, load=LoadSummary.of_task(pair.task), match=outcome)
    seeds = pair.task.train_links
    relations = align_relations(pair.task, seeds, np.ones(len(seeds), dtype=np.float32))
    equal = np.array([[0, 1]])
    return ReportInputs(pair.task, pair.names, alignment, summary, duplicates=equal, relations=relations)


@pytest.fixture(scope="module")
def nothing(inputs: ReportInputs) -> ReportInputs:
    """The same without a candidate."""
    found = inputs.alignment
    empty = dataclasses.replace(
        found,
        **{
            field.name: getattr(found, field.name)[:0]
            for field in dataclasses.fields(found)
            if field.name not in ("columns", "evidence", "reasons")
        },
        evidence=found.evidence[:, :0],
        reasons=np.full_like(found.reasons, REASONS.index("not covered")),
    )
    return dataclasses.replace(inputs, alignment=empty)


def rows_of(path: Path) -> int:
    """The rows of a file, by its suffix."""
    if path.suffix == ".tsv":
        return len(path.read_text(encoding="utf-8").splitlines()) - 1
    if path.suffix == ".parquet":
        return len(pl.read_parquet(path))
    if path.suffix == ".json":
        return 1 if isinstance(json.loads(path.read_text(encoding="utf-8")), dict) else 0
    if path.suffix == ".html":
        return path.read_text(encoding="utf-8").count("</html>")
    raise AssertionError(f"what is in {path.name}?")


@every_page
def test_writes_its_file_and_nothing_else_and_counts_its_rows(name: str, inputs: ReportInputs, tmp_path: Path) -> None:
    rows = PAGES[name](inputs, tmp_path / name)
    assert type(rows) is int
    assert rows == rows_of(tmp_path / name) > 0
    assert [path.name for path in tmp_path.iterdir()] == [name]


@every_page
def test_an_older_file_is_replaced(name: str, inputs: ReportInputs, tmp_path: Path) -> None:
    (tmp_path / name).write_text("what was there\n" * 100_000)
    rows = PAGES[name](inputs, tmp_path / name)
    assert rows == rows_of(tmp_path / name)
    assert "what was there" not in (tmp_path / name).read_bytes().decode("utf-8", "replace")


@every_page
def test_the_same_again(name: str, inputs: ReportInputs, tmp_path: Path) -> None:
    PAGES[name](inputs, tmp_path / name)
    first = (tmp_path / name).read_bytes()
    PAGES[name](inputs, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first


@every_page
def test_a_run_without_pairs_has_it_too(name: str, nothing: ReportInputs, tmp_path: Path) -> None:
    assert PAGES[name](nothing, tmp_path / name) == rows_of(tmp_path / name)


@every_page
def test_what_cannot_be_written_is_told(name: str, inputs: ReportInputs, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError):
        PAGES[name](inputs, tmp_path / "file" / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_default_pages_are_all_there_are() -> None:
    assert set(ReportSettings().pages) == set(PAGES)
