"""Scratch artifacts are used as far as their checksums go, and made again where they do not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from largegnn.artifacts import AlignmentTask, TrainedModel
from largegnn.runfolder.store import RunStore
from tests.runfolder.test_store import damage


def a_model() -> TrainedModel:
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    return TrainedModel("dual_amn", rows, rows[:2], np.arange(5, dtype=np.float32))


def test_scratch_comes_back_with_its_scalars(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    assert store.load_scratch("work/round-01", TrainedModel) is None
    for _ in range(2):  # the second takes the place of the first
        store.save_scratch("work/round-01", a_model())
        found = store.load_scratch("work/round-01", TrainedModel)
        assert found is not None
        assert found.encoder == "dual_amn"
        assert np.array_equal(found.entity_rows, a_model().entity_rows)
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["round-01"]
    store.remove_scratch("work/round-01")
    store.remove_scratch("work/round-01")
    assert store.load_scratch("work/round-01", TrainedModel) is None


@pytest.mark.parametrize("file", ["entity_rows.npy", "artifact.json"])
@pytest.mark.parametrize("kind", ["flip", "cut", "remove"])
def test_damaged_scratch_is_as_if_not_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, file: str, kind: str
) -> None:
    store = RunStore(tmp_path)
    store.save_scratch("work/round-01", a_model())
    path = tmp_path / "work" / "round-01" / file
    if kind == "flip" and file == "artifact.json":
        path.write_text(path.read_text().replace("dual_amn", "dual_amo"))
    else:
        damage(path, kind)
        if file == "artifact.json" and kind == "cut":
            damage(path, kind)  # the last byte is a line break, without which all is said
    assert store.load_scratch("work/round-01", TrainedModel) is None
    assert "made again" in caplog.text
    store.save_scratch("work/round-01", a_model())
    assert store.load_scratch("work/round-01", TrainedModel) is not None


def test_foreign_scratch_is_as_if_not_there(
    tmp_path: Path, toy_task: AlignmentTask, caplog: pytest.LogCaptureFixture
) -> None:
    store = RunStore(tmp_path)
    store.save_scratch("work/x", toy_task)
    assert store.load_scratch("work/x", TrainedModel) is None
    assert "holds a AlignmentTask" in caplog.text
    (tmp_path / "work" / "y").write_text("a file")
    assert store.load_scratch("work/y", TrainedModel) is None

    store.save_scratch("work/z", Other("dual_amn"))
    assert store.load_scratch("work/z", TrainedModel) is None


@dataclass(frozen=True)
class Other:
    """What another version called by the same name."""

    encoder: str


Other.__name__ = "TrainedModel"
