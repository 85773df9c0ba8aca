"""Products over candidate edges: those of scipy, to the bit, in however many pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from largegnn.machine import pieces
from largegnn.matching.edge_kernel import EdgeKernel


@pytest.mark.parametrize("size", [1, 7, 1 << 14])
def test_products_are_those_of_scipy_to_the_bit(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(pieces, "_SMALL", size)
    monkeypatch.setattr("largegnn.matching.edge_kernel.num_processors", lambda: 3)
    rng = np.random.default_rng(5)
    matrix: Any = sparse.random_array((60, 40), density=0.2, format="csr", rng=rng)
    kernel = EdgeKernel(matrix.data, matrix.indptr, matrix.indices, 40)
    columns, rows = rng.standard_normal(40), rng.standard_normal(60)
    assert np.array_equal(kernel.times_columns(columns), matrix @ columns)
    assert np.array_equal(kernel.times_rows(rows), matrix.T @ rows)
    kernel.set_values(2 * matrix.data)
    assert np.array_equal(kernel.times_rows(rows), (2 * matrix).T @ rows)


def test_columns_may_begin_anywhere_and_values_be_short() -> None:
    """Values of float32 are summed in float64; columns are numbered from 1,000 on."""
    rng = np.random.default_rng(6)
    matrix: Any = sparse.random_array((30, 20), density=0.3, format="csr", rng=rng)
    matrix.data = matrix.data.astype(np.float32)
    kernel = EdgeKernel(matrix.data, matrix.indptr, matrix.indices + 1000, 20, 1000)
    wide = matrix.astype(np.float64)
    columns, rows = rng.standard_normal(20), rng.standard_normal(30)
    assert np.array_equal(kernel.times_columns(columns), wide @ columns)
    assert np.array_equal(kernel.times_rows(rows), wide.T @ rows)


def test_nothing_gives_nothing() -> None:
    kernel = EdgeKernel(np.empty(0), np.zeros(4, dtype=np.int64), np.empty(0, dtype=np.int32), 2)
    assert kernel.times_columns(np.ones(2)).tolist() == [0.0, 0.0, 0.0]
    assert kernel.times_rows(np.ones(3)).tolist() == [0.0, 0.0]
