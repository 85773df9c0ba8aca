"""Test that merged graphs, partitions and subgraphs refuse invalid arrays."""

from __future__ import annotations

import numpy as np
import pytest

from largegnn.artifacts import MergedGraph, Partition, Subgraph
from largegnn.errors import ArtifactError


def test_graphs_and_partitions_refuse_invalid_arrays() -> None:
    with pytest.raises(ArtifactError, match="ascend from 0"):
        MergedGraph(np.array([0, 1]), np.array([0, 2, 1]), np.array([1]), np.array([1]), np.array([1, 1]))
    with pytest.raises(ArtifactError, match="add up"):
        MergedGraph(np.array([0, 1]), np.array([0, 1, 2]), np.array([1, 0]), np.array([1, 1]), np.array([1, 2]))
    assert Partition(5, np.array([0, 3, 1, 3, 4]), np.array([0, 2, 2, 5])).sizes.tolist() == [2, 0, 3]
    with pytest.raises(ArtifactError, match="strictly ascending"):
        Partition(5, np.array([0, 3, 3]), np.array([0, 3]))
    with pytest.raises(ArtifactError, match="allowed 0"):
        Partition(5, np.array([0, 5]), np.array([0, 2]))
    with pytest.raises(ArtifactError, match="local ids"):
        Subgraph(np.array([3, 7]), np.array([(0, 0, 2)]), np.empty((0, 2)))
