"""What the documents say is what the program does."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path

import numpy as np
import polars as pl

from largegnn.artifacts import AlignmentTask
from largegnn.cli.config import settings_file
from largegnn.data.readers import read_links, read_triples
from largegnn.division.merge import merge
from largegnn.export import EXPORTERS, ExportInfo, export
from largegnn.matching import SEARCHERS, search
from largegnn.seams.tables import ENCODERS, LOSSES, PARTITIONERS, READERS
from largegnn.settings import PRESETS, Settings, resolve
from tests.embedding.small_runs import random_subgraphs, small_options, small_trainer

ROOT = Path(__file__).parents[1]


def test_the_settings_page_is_the_one_generated() -> None:
    expected = settings_file(resolve(Settings, PRESETS))
    assert (ROOT / "docs" / "settings.toml").read_text(encoding="utf-8") == expected + "\n", "run `make docs`"


def code_of_extending_page(index: int) -> str:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    return str(re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[index])


def test_the_partitioner_of_the_extending_page_works(toy_task: AlignmentTask) -> None:
    try:
        exec(compile(code_of_extending_page(1), "extending.md", "exec"), {})
        partition = PARTITIONERS["in_turn"](toy_task, merge(toy_task), "train", 3, 0)
        assert (partition.num_parts, partition.num_uncovered) == (3, 0)
    finally:
        PARTITIONERS.remove("in_turn")


def test_the_reader_of_the_extending_page_works(tmp_path: Path) -> None:
    code = code_of_extending_page(0)
    path = tmp_path / "pair.arrows"
    path.write_text("a -r-> b\nb -s-> c\n")
    try:
        exec(compile(code, "extending.md", "exec"), {})
        (batch,) = read_triples(path)
        assert batch.tails.to_list() == ["b", "c"]
        path.write_text("a = A\nb = B\n")
        assert read_links(path).targets.to_list() == ["A", "B"]
    finally:
        READERS.remove("arrows")


def test_the_encoder_and_the_loss_of_the_extending_page_train() -> None:
    try:
        for index in (2, 3):
            exec(compile(code_of_extending_page(index), "extending.md", "exec"), {})
        values = {"train": {"encoder": "neighbor_mean", "losses": {"short_rows": 0.1}}}
        chosen = resolve(Settings, PRESETS, values=values).train
        options = small_options(encoder=chosen.encoder, losses=chosen.losses)
        assert options.losses["short_rows"] == 0.1
        trainer = small_trainer(random_subgraphs(2), options)
        before = trainer.model.entities.values.clone()
        trainer.run()
        assert not trainer.model.entities.values.equal(before)
    finally:
        ENCODERS.remove("neighbor_mean")
        LOSSES.remove("short_rows")


def test_the_searcher_of_the_extending_page_works() -> None:
    vectors = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    try:
        exec(compile(code_of_extending_page(4), "extending.md", "exec"), {})
        found, exact = (search(vectors[:10], vectors[10:], 3, method) for method in ("all", "torch"))
        assert found.positions.tolist() == exact.positions.tolist()
    finally:
        SEARCHERS.pop("all", None)


def test_the_export_form_of_the_extending_page_works(tmp_path: Path) -> None:
    table = pl.DataFrame({"source": ["a"], "target": ["b"], "accepted": [True]})
    info = ExportInfo("1", "run", "s", "t", "train", "csls", None, datetime.date(2026, 1, 1))
    try:
        exec(compile(code_of_extending_page(5), "extending.md", "exec"), {})
        assert export("jsonl", table, tmp_path / "pairs.jsonl", info) == 1
        assert json.loads((tmp_path / "pairs.jsonl").read_text())["target"] == "b"
    finally:
        EXPORTERS.pop("jsonl", None)
