"""Values on their way to other machines: what is in a file is named, what is in memory is sent."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from largegnn.cluster.workers import MappedArray, pack, unpack


@dataclass(frozen=True, eq=False)
class Some:
    """Three values and a number."""

    whole: Any
    part: Any
    other: Any
    count: int


def mapped_file(folder: Path, values: Any) -> Any:
    np.save(folder / "values.npy", values)
    return np.lib.format.open_memmap(folder / "values.npy", mode="r")


def test_mapped_arrays_are_named_and_others_sent(tmp_path: Path) -> None:
    values = np.arange(30, dtype=np.int32).reshape(10, 3)
    mapped = mapped_file(tmp_path, values)
    whole, part = pack(np.ascontiguousarray(mapped).view()), pack(mapped[4:7])
    assert isinstance(whole, MappedArray)
    assert isinstance(part, MappedArray)
    assert whole.file == part.file == str((tmp_path / "values.npy").resolve())
    assert part.offset - whole.offset == 4 * 3 * 4, "four rows of three numbers of four bytes"
    assert np.array_equal(unpack(whole), values)
    assert np.array_equal(unpack(part), values[4:7])
    for here in (values, values[:, ::2], mapped[:, ::2], mapped[:0], (1, "word"), None):
        assert pack(here) is here
        assert unpack(here) is here


def test_arrays_of_a_dataclass_are_named_at_any_depth(tmp_path: Path) -> None:
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    mapped = mapped_file(tmp_path, values)
    in_memory = Some(values, values, values, 1)
    assert pack(in_memory) is in_memory
    packed = pack(Some(values, mapped[1:], Some(mapped, 1, 2, 3), 5))
    assert pack(packed) is packed, "packed before"
    assert len(pickle.dumps(packed)) < len(pickle.dumps(in_memory)) + 500
    found = unpack(packed)
    assert found.whole is values
    assert isinstance(found.part, np.memmap)
    assert np.array_equal(found.part, values[1:])
    assert np.array_equal(found.other.whole, values)
    assert (found.other.count, found.count) == (3, 5)
