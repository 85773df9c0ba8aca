"""Test which file an array is mapped from, and that releasing its pages loses no data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from largegnn.machine.mapped_file import file_behind, forget_pages


def _resident_mb() -> float:
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("this system does not report the memory of a process")
    line = next(line for line in status.read_text().splitlines() if line.startswith("RssFile"))
    return int(line.split()[1]) / 1024


def test_forgotten_pages_are_read_again(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.arange(8_000_000, dtype=np.float32).reshape(-1, 100))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    part = mapped[10:]
    total = float(part.sum())
    before = _resident_mb()
    forget_pages(part)
    assert _resident_mb() < before - 20
    assert float(part.sum()) == total


def test_arrays_in_memory_stay_as_they_are(tmp_path: Path) -> None:
    rows = np.ones((3, 2))
    forget_pages(rows)
    assert file_behind(rows) is None
    np.save(tmp_path / "rows.npy", rows)
    private = np.load(tmp_path / "rows.npy", mmap_mode="c")
    private[0, 0] = 7.0
    forget_pages(private)
    assert private[0, 0] == 7.0
