"""Test an alignment by hand, and that invalid arrays are refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from largegnn.artifacts import REASONS, Alignment
from largegnn.errors import ArtifactError


@pytest.fixture
def alignment() -> Alignment:
    """Source 0 ranks target 3 before 4; target 3 ranks source 0 first, target 4 ranks source 1 first."""
    numbers = np.array([0.9, 0.5, 0.8], dtype=np.float32)
    return Alignment(
        pairs=np.array([(0, 3), (0, 4), (1, 4)]),
        columns=("cosine", "support"),
        evidence=np.stack([numbers, 10 * numbers]),
        scores=numbers,
        margins=numbers,
        source_ranks=np.array([1, 2, 1]),
        target_ranks=np.array([1, 40_000, 1]),
        confidence=numbers,
        accepted=np.array([True, False, True]),
        reasons=np.array([0, 0, 4, 0, 0]),
    )


def test_an_alignment(alignment: Alignment) -> None:
    assert alignment.mutual.tolist() == [True, False, True]
    assert alignment.target_ranks.tolist() == [1, 40_000, 1], "ranks of a hub can exceed two bytes"
    assert alignment.column("cosine").tolist() == pytest.approx([0.9, 0.5, 0.8])
    assert alignment.column("support").tolist() == pytest.approx([9, 5, 8])
    with pytest.raises(ArtifactError, match="no evidence 'name', only cosine, support"):
        alignment.column("name")
    with pytest.raises(ValueError, match="read-only"):
        alignment.accepted[0] = False


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("pairs", np.array([0, 3]), "pairs has shape"),
        ("pairs", np.array([(0, 3)]), "evidence has shape"),
        ("evidence", np.zeros((2, 2)), "evidence has shape"),
        ("evidence", np.zeros((3, 2)), "evidence has shape"),
        ("evidence", np.zeros(6), "evidence has shape"),
        ("columns", ("cosine",), "evidence has shape"),
        *[(name, np.zeros(2), name) for name in ("scores", "margins", "confidence")],
        *[(name, np.ones(4), name) for name in ("source_ranks", "target_ranks", "accepted")],
        ("reasons", np.array([len(REASONS)]), "unknown reason"),
        ("reasons", np.zeros((2, 2)), "reasons has shape"),
    ],
)
def test_an_alignment_refuses_invalid_fields(alignment: Alignment, field: str, value: object, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        dataclasses.replace(alignment, **{field: value})  # type: ignore[arg-type]
