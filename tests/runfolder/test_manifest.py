"""Manifests of the wrong shape are refused, records of the wrong shape are not used."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from largegnn.artifacts import AlignmentTask, TaskNames
from largegnn.errors import InputError
from largegnn.runfolder.artifact_files import read_sealed, sealed
from largegnn.runfolder.store import FORMAT_VERSION, RunStore
from tests.runfolder.test_store import RECORD, saved


def test_other_versions_and_broken_manifests_are_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"format_version": FORMAT_VERSION + 1, "made_by": "9.9"}))
    with pytest.raises(InputError, match="another version") as error:
        RunStore(tmp_path)
    assert "9.9" in str(error.value.found)


WRONG: list[dict[str, Any]] = [
    {"format_version": "2"},
    {"format_version": None},
    {"format_version": True},
    {"settings": []},
    {"input": "folder"},
    {"input": {"folder": 7}},
    {"input_files": []},
    {"input_files": {"a": None}},
    {"input_files": {"a": {"sha256": 7}}},
]
WRONG_RECORDS: list[dict[str, Any]] = [
    {"files": []},
    {"files": {"task": "01-task"}},
    {"files": {"task": {"01-task/triples.npy": 7}}},
    {"files": {"task": {"01-task/triples.npy": {"bytes": "7", "sha256": ""}}}},
    {"files": {"task": {"../triples.npy": {"bytes": 7, "sha256": ""}}}},
    {"files": {"task": {"/triples.npy": {"bytes": 7, "sha256": ""}}}},
    {"files": {"other": {}}},
    {"scalars": []},
    {"scalars": {"task": []}},
    {"seconds": "long"},
    {"facts": None},
    {"arguments": "all"},
    {"fingerprint": 7},
    {"unknown": 7},
]


def test_manifests_of_the_wrong_shape_are_refused(
    tmp_path: Path, toy_task: AlignmentTask, toy_names: TaskNames
) -> None:
    saved(tmp_path, toy_task, toy_names)
    path = tmp_path / "manifest.json"
    good = json.loads(path.read_text())
    texts = [json.dumps(good | wrong) for wrong in WRONG]
    texts += ["{", "[]", "{}", "null", "7", '"x"', "[" * 100_000, "9" * 10_000, "\udcff"]
    for text in texts:
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(InputError, match=r"manifest cannot be read"):
            RunStore(tmp_path)


def test_records_of_the_wrong_shape_are_not_used(
    tmp_path: Path, toy_task: AlignmentTask, toy_names: TaskNames, caplog: pytest.LogCaptureFixture
) -> None:
    saved(tmp_path, toy_task, toy_names)
    path = tmp_path / "01-load.json"
    good = read_sealed(path)
    contents: list[dict[str, Any]] = [{**good, "record": good["record"] | wrong} for wrong in WRONG_RECORDS]
    contents += [good | {"step": "merge"}, good | {"run": {}}, good | {"record": None}, {}]
    for content in contents:
        caplog.clear()
        path.write_text(sealed(content))
        assert not RunStore(tmp_path).steps, content
        assert "01-load.json: not used" in caplog.text
    path.write_text(sealed(good))
    assert list(RunStore(tmp_path).steps) == ["load"]


def test_a_deleted_manifest_is_taken_from_the_records(
    tmp_path: Path, toy_task: AlignmentTask, toy_names: TaskNames, caplog: pytest.LogCaptureFixture
) -> None:
    store = saved(tmp_path, toy_task, toy_names)
    store.update_manifest(settings={"seed": 3}, input={"folder": "x"}, input_files={"x": {"sha256": "y"}})
    for number, name in enumerate(("merge", "partition", "subgraphs"), start=2):
        store.save_step(name, number, {name: toy_task}, {**RECORD, "fingerprint": name})
    store.forget(["subgraphs"])
    before = store.manifest
    (tmp_path / "manifest.json").unlink()
    with caplog.at_level(logging.WARNING):
        store, _ = RunStore(tmp_path), RunStore(tmp_path)
    assert caplog.text.count("has no manifest; taken from the records of its steps") == 1
    assert store.manifest == before
    assert list(store.steps) == ["load", "merge", "partition"]
    assert all(store.is_intact(step) for step in store.steps)
    assert not (tmp_path / "manifest.json").exists(), "reading writes nothing"
    with store.lock():
        pass
    assert json.loads((tmp_path / "manifest.json").read_text()) == before


@pytest.mark.parametrize("way", ["damage", "delete"])
def test_a_step_counts_only_with_all_steps_before_it(
    way: str, tmp_path: Path, toy_task: AlignmentTask, toy_names: TaskNames, caplog: pytest.LogCaptureFixture
) -> None:
    store = saved(tmp_path, toy_task, toy_names)
    for number, name in enumerate(("merge", "partition"), start=2):
        store.save_step(name, number, {name: toy_task}, RECORD)
    path = tmp_path / "02-merge.json"
    if way == "damage":
        path.write_text(path.read_text().replace('"fingerprint": "f"', '"fingerprint": "g"'))
    else:
        path.unlink()
    (tmp_path / "09-mine.json").write_text("[1]")
    assert list(RunStore(tmp_path).steps) == ["load"]
    assert ("02-merge.json: not used" in caplog.text) == (way == "damage")
    assert "03-partition.json: not used: the record of step merge is missing or damaged" in caplog.text
