from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.blocks import rank_within_blocks, train_blocks
from largegnn.artifacts import IntArray
from largegnn.division.subgraphs import share_kept
from largegnn.embedding.losses import LOSSES
from largegnn.errors import ArtifactError
from largegnn.evaluation.metrics import rank_links, summarise
from tests.embedding.generated_pairs import generated_pair
from tests.embedding.small_runs import CPU, NUM_RELATIONS, random_subgraphs, small_options, train_options

pytestmark = pytest.mark.usefixtures("one_thread")


@dataclass(frozen=True)
class Block:
    entities: IntArray
    vectors: npt.NDArray[Any]


def block(**vectors: tuple[float, float]) -> Block:
    """A block of entities e0, e1, ... with these vectors."""
    return Block(np.array([int(name[1:]) for name in vectors]), np.array(list(vectors.values()), dtype=np.float32))


LINKS = np.array([(0, 5), (1, 6), (2, 7), (3, 8)])


def test_ranks_by_hand() -> None:
    """Sources 0 1 2 3, targets 5 6 7 8; 1 and 7 are in both blocks, 3 and 8 are apart.

    first block:  0 and 5 east, 1 north, 7 north, 6 north-east       second block: 1 and 6 east, 2 north, 7 west, 8 east
    """
    first = block(e0=(2, 0), e1=(0, 1), e3=(0, 3), e5=(1, 0), e6=(1, 1), e7=(0, 1))
    second = block(e1=(1, 0), e2=(0, 1), e6=(5, 0), e7=(-1, 0), e8=(1, 0))
    ranks = rank_within_blocks([first, second], LINKS)
    # 0: 5 alone at 1. 1: best of 6 is 1 (second), of 7 is 1 (first), of 8 is 1: three in a tie. 2: 6, 7, 8 all at 0.
    assert ranks.source_to_target.tolist() == [1, 3, 3, math.inf]
    # 5: 0 alone. 6: 1 at 1 (second), 0 and 3 at .7, 2 at 0. 7: 1 and 3 at 1 (first), 0 and 2 at 0. 8: apart.
    assert ranks.target_to_source.tolist() == [1, 1, 4, math.inf]
    measures = summarise(ranks)
    assert measures.source_to_target == pytest.approx(
        {"hits@1": 0.25, "hits@5": 0.75, "hits@10": 0.75, "mrr": (1 + 2 / 3) / 4}
    )


def test_no_block_no_hit() -> None:
    assert rank_within_blocks([], LINKS).source_to_target.tolist() == [math.inf] * 4
    assert summarise(rank_within_blocks([], LINKS)).mean == {"hits@1": 0, "hits@5": 0, "hits@10": 0, "mrr": 0}
    assert len(rank_within_blocks([], LINKS[:0]).source_to_target) == 0


def test_zeros_are_in_no_block_and_nan_is_an_error() -> None:
    ranks = rank_within_blocks([block(e0=(1, 0), e5=(0, 0), e1=(0, 1), e6=(0, 1))], LINKS)
    assert ranks.source_to_target.tolist() == [math.inf, 1, math.inf, math.inf]
    with pytest.raises(ArtifactError, match="NaN"):
        rank_within_blocks([block(e0=(math.nan, 0))], LINKS)


def test_one_block_of_all_is_the_whole_space() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(60, 5)).astype(np.float32)
    links = np.stack([rng.permutation(30), 30 + rng.permutation(30)], axis=1)
    inside = rank_within_blocks([Block(np.arange(60), vectors)], links)
    whole = rank_links(vectors[links[:, 0]], vectors[links[:, 1]], "cosine")
    assert inside.source_to_target.tolist() == whole.source_to_target.tolist()
    assert inside.target_to_source.tolist() == whole.target_to_source.tolist()


def slow_rank(blocks: list[Block], links: IntArray, query: int, gold: int, sides: tuple[int, int]) -> float:
    """The rule, one pair at a time."""
    scores: dict[int, float] = {}
    for one in blocks:
        row = {int(entity): vector.astype(np.float64) for entity, vector in zip(one.entities, one.vectors, strict=True)}
        for candidate in {int(link[sides[1]]) for link in links}:
            if query in row and candidate in row:
                own, other = row[query], row[candidate]
                cosine = float(own @ other / np.linalg.norm(own) / np.linalg.norm(other))
                scores[candidate] = max(cosine, scores.get(candidate, -math.inf))
    if gold not in scores:
        return math.inf
    return sum(score >= scores[gold] - 1e-6 for score in scores.values())


@settings(max_examples=40)
@given(st.data())
def test_ranks_against_a_slow_loop(data: st.DataObject) -> None:
    num_sources, num_targets = 6, 7
    entity = st.integers(0, num_sources + num_targets - 1)
    link = st.tuples(st.integers(0, num_sources - 1), st.integers(num_sources, num_sources + num_targets - 1))
    links = np.array(data.draw(st.lists(link, min_size=1, max_size=9, unique=True)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    blocks = []
    for members in data.draw(st.lists(st.sets(entity, min_size=1), max_size=4)):
        # Few directions, so that there are ties; never zero.
        vectors = rng.integers(0, 2, (len(members), 3)) * 2.0 - 1.0
        blocks.append(Block(np.array(sorted(members)), vectors.astype(np.float32)))
    ranks = rank_within_blocks(iter(blocks), links, chunk_bytes=data.draw(st.sampled_from([1, 64, 1 << 20])))
    expected = [slow_rank(blocks, links, source, target, (0, 1)) for source, target in links.tolist()]
    assert ranks.source_to_target.tolist() == expected
    expected = [slow_rank(blocks, links, target, source, (1, 0)) for source, target in links.tolist()]
    assert ranks.target_to_source.tolist() == expected


def test_blocks_are_trained_one_at_a_time_and_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cross_subgraph", "reconstruction"):
        monkeypatch.setitem(LOSSES, name, None)
    subgraphs = random_subgraphs(3)
    options = small_options(repartition_every=1)
    every = list(train_blocks(subgraphs, NUM_RELATIONS, options, CPU, 7))
    for index, trained in enumerate(every):
        assert trained.entities.tolist() == subgraphs.subgraph(index).entities.tolist()
        assert trained.vectors.shape == (40, 6 * options.dim)
        np.testing.assert_allclose(np.linalg.norm(trained.vectors, axis=1), 1.0, rtol=1e-5)
    # What a block becomes does not depend on the others, not even on their triples.
    changed = subgraphs.triples.copy()
    changed[: subgraphs.triple_ptr[2], 1] = 0
    other = list(train_blocks(replace(subgraphs, triples=changed), NUM_RELATIONS, options, CPU, 7))
    assert not np.array_equal(other[1].vectors, every[1].vectors)
    assert np.array_equal(other[2].vectors, every[2].vectors)
    assert not np.array_equal(every[0].vectors, next(train_blocks(subgraphs, NUM_RELATIONS, options, CPU, 8)).vectors)


def test_a_block_without_seeds_is_left_as_it_starts() -> None:
    subgraphs = random_subgraphs(2)
    one = replace(subgraphs, seeds=subgraphs.seeds[:12], seed_ptr=np.array([0, 12, 12]))
    trained = list(train_blocks(one, NUM_RELATIONS, small_options(), CPU, 0))
    untrained = list(train_blocks(one, NUM_RELATIONS, small_options(epochs=0), CPU, 0))
    assert not np.array_equal(trained[0].vectors, untrained[0].vectors)
    assert np.array_equal(trained[1].vectors, untrained[1].vectors)


@pytest.mark.parametrize("partitioner", ["cps", "sbp"])
def test_blocks_of_a_pair_beat_chance_and_miss_what_is_split(partitioner: str) -> None:
    task, parts, subgraphs = generated_pair(400, 2, partitioner)
    options = train_options(dim=16, epochs=8, batch_size=16, negatives=100)
    blocks = train_blocks(subgraphs, task.num_relations, options, CPU, 0)
    ranks = rank_within_blocks(blocks, task.test_links)
    share = share_kept(task.test_links, parts)
    assert share is not None
    assert np.isfinite(ranks.source_to_target).mean() == pytest.approx(share)
    assert 30 / len(task.test_links) < (summarise(ranks).mean["hits@1"] or 0) <= share
