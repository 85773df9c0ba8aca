"""Rows that are fetched ahead for a GPU are those that are read one piece after the other."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from largegnn.artifacts import IntArray
from largegnn.machine.read_only import read_only_tensor
from largegnn.matching.unit_rows import UnitRows

ROWS = np.random.default_rng(0).standard_normal((100, 8))


@pytest.mark.parametrize("kept", [None, np.arange(0, 40, 3)], ids=["all", "some"])
@pytest.mark.parametrize(
    "vectors",
    [ROWS.astype(np.float32), ROWS, ROWS.astype(np.float32)[::2], np.asfortranarray(ROWS.astype(np.float32))],
    ids=["plain", "float64", "every other", "by column"],
)
def test_fetched_rows_are_those_read_in_pieces(vectors: np.ndarray, kept: IntArray | None) -> None:
    rows = UnitRows(vectors, kept)
    is_plain = vectors.dtype == np.float32 and vectors.flags.c_contiguous
    whole = read_only_tensor(vectors) if is_plain else None
    room = torch.empty(7, 8)
    for start, piece in rows.pieces(7):
        fetched = rows._fetch(whole, start, start + 7, room).double()
        fetched /= torch.linalg.vector_norm(fetched, dim=1, keepdim=True)
        assert torch.equal(fetched.float(), piece)
