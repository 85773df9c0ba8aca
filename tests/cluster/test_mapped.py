"""Artifacts on their way to other machines: what is in a file is named, what is in memory is sent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from largegnn.cluster.mapped import MappedArray, Sent, opened, parcel, sent, unpacked


@dataclass(frozen=True, eq=False)
class Some:
    """Three arrays and a number."""

    whole: Any
    part: Any
    other: Any
    count: int


def test_mapped_arrays_are_named_and_others_sent(tmp_path: Path) -> None:
    values = np.arange(30, dtype=np.int32).reshape(10, 3)
    np.save(tmp_path / "values.npy", values)
    mapped = np.lib.format.open_memmap(tmp_path / "values.npy", mode="r")
    parcel = sent(Some(np.ascontiguousarray(mapped).view(), mapped[4:7], values[:, ::2], 5))
    whole, part = parcel.fields["whole"], parcel.fields["part"]
    assert isinstance(whole, MappedArray)
    assert isinstance(part, MappedArray)
    assert whole.file == part.file == str((tmp_path / "values.npy").resolve())
    assert part.offset - whole.offset == 4 * 3 * 4, "four rows of three numbers of four bytes"
    assert parcel.fields["other"] is not None
    found = opened(parcel)
    assert np.array_equal(found.whole, values)
    assert np.array_equal(found.part, values[4:7])
    assert np.array_equal(found.other, values[:, ::2])
    assert found.count == 5


def test_what_pieces_share_is_named_where_it_can_be(tmp_path: Path) -> None:
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.save(tmp_path / "values.npy", values)
    mapped = np.lib.format.open_memmap(tmp_path / "values.npy", mode="r")
    assert isinstance(parcel(mapped), MappedArray)
    assert parcel(values) is values
    assert parcel((1, "word")) == (1, "word")
    in_memory, in_file = Some(values, values, values, 1), Some(mapped, values, values, 1)
    assert parcel(in_memory) is in_memory
    packed = parcel(in_file)
    assert isinstance(packed, Sent)
    assert parcel(packed) is packed, "named before"
    assert np.array_equal(unpacked(packed).whole, values)
    assert np.array_equal(unpacked(parcel(mapped[1:])), values[1:])
    assert unpacked(values) is values
