"""Pairs within blocks, by hand: two sources and two targets a block, one of them in both."""

from __future__ import annotations

import numpy as np
import pytest

from lab.blocks import BlockEmbeddings, BlockPairs

pytestmark = pytest.mark.usefixtures("one_thread")
# Sources 0 to 2, targets 3 to 5. In the first block 0 = 3 and 1 = 4; in the second 1 = 5, and 2 likes 5 in vain.
FIRST = BlockEmbeddings(np.array([0, 1, 3, 4]), np.array([[1, 0], [0, 1], [0.9, 0.1], [0.1, 0.9]], dtype=np.float32))
SECOND = BlockEmbeddings(np.array([1, 2, 5]), np.array([[1, 0], [0.6, 0.8], [0.9, 0.1]], dtype=np.float32))


def found(*blocks: BlockEmbeddings, taken: tuple[int, ...] = ()) -> dict[str, list[tuple[int, int]]]:
    free = np.ones(6, dtype=bool)
    free[list(taken)] = False
    collected = BlockPairs(free, 3)
    assert [block.entities.tolist() for block in collected.watch(blocks)] == [one.entities.tolist() for one in blocks]
    return {name: [(int(left), int(right)) for left, right in pairs] for name, pairs in collected.pairs().items()}


def test_the_pairs_of_all_blocks_together() -> None:
    pairs = found(FIRST, SECOND)
    assert pairs["mutual_top1"] == [(0, 3), (1, 4), (1, 5)]
    assert pairs["mutual_5nn"] == [(0, 3), (0, 4), (1, 3), (1, 4), (1, 5), (2, 5)]
    assert pairs["csls_mutual_top1"] == [(0, 3), (1, 4), (1, 5)]


def test_seeds_take_no_part_and_a_pair_of_two_blocks_counts_once() -> None:
    assert found(FIRST, FIRST, taken=(0, 3))["mutual_top1"] == [(1, 4)]
    assert found(SECOND, taken=(5,)) == {"mutual_5nn": [], "mutual_top1": [], "csls_mutual_top1": []}
