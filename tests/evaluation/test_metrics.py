from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from largegnn.artifacts import RankFigures
from largegnn.errors import ArtifactError
from largegnn.evaluation.metrics import Similarity, rank_edges, rank_links, rank_links_by, rank_matrix, summarise

Array = npt.NDArray[Any]


def rank_slowly(source: Array, target: Array, scoring: Similarity, k: int, covered: tuple[Array, Array]) -> list[int]:
    """The definition, link by link in float64: 1 + others that score as high; uncovered ends last, never first."""
    has = [mask & (np.abs(side).sum(axis=1) > 0) for side, mask in zip((source, target), covered, strict=True)]

    def cosine(i: int, j: int) -> float:
        return float(source[i] @ target[j]) / math.sqrt(float(source[i] @ source[i]) * float(target[j] @ target[j]))

    sources, targets = np.flatnonzero(has[0]).tolist(), np.flatnonzero(has[1]).tolist()

    def mean_of_nearest(values: list[float]) -> float:
        nearest = sorted(values, reverse=True)[:k]
        return sum(nearest) / len(nearest) if nearest else 0.0

    near_source = {i: mean_of_nearest([cosine(i, j) for j in targets]) for i in sources}
    near_target = {j: mean_of_nearest([cosine(i, j) for i in sources]) for j in targets}

    def score(i: int, j: int) -> float:
        return cosine(i, j) if scoring == "cosine" else 2 * cosine(i, j) - near_source[i] - near_target[j]

    ranks = []
    for i in range(len(source)):
        if not (has[0][i] and has[1][i]):
            ranks.append(max(len(source), 2))
        else:
            ranks.append(1 + sum(score(i, j) >= score(i, i) - 1e-7 for j in targets if j != i))
    return ranks


@st.composite
def sides(draw: st.DrawFn) -> tuple[Array, Array, Array, Array]:
    """Small integer vectors, hence many ties, duplicates and zeros; and which of them are covered."""
    num_links, dim = draw(st.integers(0, 9)), draw(st.integers(1, 4))
    vectors = hnp.arrays(np.float64, (num_links, dim), elements=st.integers(-2, 2).map(float))
    masks = hnp.arrays(np.bool_, num_links, elements=st.sampled_from([True, True, True, False]))
    return draw(vectors), draw(vectors), draw(masks), draw(masks)


@pytest.mark.parametrize("scoring", ["cosine", "csls"])
@given(drawn=sides(), k=st.integers(1, 12), chunk_bytes=st.sampled_from([1, 80, 1 << 20]))
def test_ranks_equal_their_definition(
    scoring: Similarity, drawn: tuple[Array, Array, Array, Array], k: int, chunk_bytes: int
) -> None:
    source, target, in_source, in_target = drawn
    ranks = rank_links(
        source,
        target,
        scoring,
        k,
        source_covered=in_source,
        target_covered=in_target,
        chunk_bytes=chunk_bytes,
    )
    assert ranks.source_to_target.dtype == ranks.target_to_source.dtype == np.int64
    assert ranks.source_to_target.tolist() == rank_slowly(source, target, scoring, k, (in_source, in_target))
    assert ranks.target_to_source.tolist() == rank_slowly(target, source, scoring, k, (in_target, in_source))


def test_a_ranking_by_hand() -> None:
    """Cosines, rows = sources, columns = targets; the diagonal is gold:

            t0   t1   t2
        s0   1    0   .6      t0 first for s0
        s1   0    1   .8      t1 first for s1
        s2  .8  -.6   0       t2 second for s2, behind t0; s2 is last for t2
    CSLS with k = 1 takes 1, 1, .8 from the columns: 1.0 t1 0.4; s2 scores .6, -2.2, -.8, the ranks stay.
    """
    source = np.array([[1.0, 0.0], [0.0, 1.0], [0.8, -0.6]])
    target = np.array([[2.0, 0.0], [0.0, 0.5], [0.6, 0.8]])
    for scoring in ("cosine", "csls"):
        ranks = rank_links(source, target, scoring, 1)
        assert ranks.source_to_target.tolist() == [1, 1, 2]
        assert ranks.target_to_source.tolist() == [1, 1, 3]
    summary = summarise(ranks)
    assert summary.source_to_target == pytest.approx({"hits@1": 2 / 3, "hits@5": 1, "hits@10": 1, "mrr": 2.5 / 3})
    assert summary.target_to_source["mrr"] == pytest.approx((2 + 1 / 3) / 3)
    assert summary.mean["mrr"] == pytest.approx((2 + 1 / 3 + 2.5) / 6)


def test_csls_demotes_a_hub() -> None:
    """Sources at 0 and 40 degrees, targets at 0 and 85: s1 is nearer to t0, but t0 has a nearer one, t1 has none."""
    angles = np.radians([[0.0, 40.0], [0.0, 85.0]])
    source, target = np.stack([np.cos(angles), np.sin(angles)], axis=2)
    assert rank_links(source, target, "cosine").source_to_target.tolist() == [1, 2]
    assert rank_links(source, target, "csls", 1).source_to_target.tolist() == [1, 1]


@pytest.mark.parametrize("dim", [37, 128, 768])
@pytest.mark.parametrize("chunk_bytes", [1, 5_000, 1 << 28])
def test_one_point_for_all_ranks_last(dim: int, chunk_bytes: int) -> None:
    point = np.random.default_rng(0).normal(size=(1, dim)).repeat(301, axis=0)
    for scoring in ("cosine", "csls"):
        ranks = rank_links(point, point, scoring, chunk_bytes=chunk_bytes)
        assert set(ranks.source_to_target.tolist()) == set(ranks.target_to_source.tolist()) == {301}


@given(seed=st.integers(0, 99), chunk_bytes=st.integers(1, 100_000))
@example(seed=0, chunk_bytes=1)
def test_chunks_do_not_matter(seed: int, chunk_bytes: int) -> None:
    generator = np.random.default_rng(seed)
    source = generator.normal(size=(97, 32)).astype(np.float32)
    target = source + generator.normal(size=(97, 32)).astype(np.float32)
    whole, chunked = rank_links(source, target), rank_links(source, target, chunk_bytes=chunk_bytes)
    assert np.array_equal(whole.source_to_target, chunked.source_to_target)
    assert np.array_equal(whole.target_to_source, chunked.target_to_source)


@pytest.mark.parametrize("scoring", ["cosine", "csls"])
def test_a_perfect_embedding_ranks_first(scoring: Similarity) -> None:
    vectors = np.random.default_rng(1).normal(size=(500, 64))
    ranks = rank_links(vectors, 3 * vectors, scoring)
    assert summarise(ranks).mean == {"hits@1": 1.0, "hits@5": 1.0, "hits@10": 1.0, "mrr": 1.0}


def test_the_uncovered_neither_win_nor_compete() -> None:
    vectors = np.eye(4)
    vectors[3] = np.nan
    ranks = rank_links(vectors, vectors, source_covered=vectors[:, 3] == 0, target_covered=vectors[:, 3] == 0)
    assert ranks.source_to_target.tolist() == [1, 1, 1, 4]
    with pytest.raises(ArtifactError, match="NaN"):
        rank_links(vectors, vectors)
    # A zero gold would tie with, or beat, whatever is at right angles or behind.
    assert rank_links(np.eye(2), np.array([[0.0, 0.0], [-1.0, -1.0]]), "cosine").source_to_target.tolist() == [2, 1]


def test_one_link_and_none() -> None:
    one, none = np.ones((1, 3)), np.ones((0, 3))
    assert rank_links(one, -one).source_to_target.tolist() == [1]
    assert rank_links(one, 0 * one).source_to_target.tolist() == [2]
    empty = rank_links(none, none)
    assert empty.source_to_target.shape == (0,)
    nothing: dict[str, float | None] = dict.fromkeys(("hits@1", "hits@5", "hits@10", "mrr"))
    assert summarise(empty) == RankFigures(nothing, nothing, nothing)


def test_some_links_are_ranked_as_all_are() -> None:
    rng = np.random.default_rng(4)
    source, target = rng.normal(size=(2, 40, 4))
    covered = np.arange(40) % 7 > 0
    chosen = np.array([0, 3, 8, 21, 39])
    every = rank_links_by(source, target, csls_k=3, source_covered=covered)
    some = rank_links_by(source, target, csls_k=3, source_covered=covered, links=(chosen, chosen))
    for scoring in ("cosine", "csls"):
        assert np.array_equal(some[scoring].source_to_target, every[scoring].source_to_target[chosen])
        assert np.array_equal(some[scoring].target_to_source, every[scoring].target_to_source[chosen])
        assert np.array_equal(
            every[scoring].source_to_target,
            rank_links(source, target, scoring, 3, source_covered=covered).source_to_target,
        )


def test_known_means_are_taken_as_they_are() -> None:
    source, target = np.random.default_rng(5).normal(size=(2, 30, 4))
    cosines = (source / np.linalg.norm(source, axis=1)[:, None]) @ (target / np.linalg.norm(target, axis=1)[:, None]).T
    means = np.sort(cosines, axis=1)[:, -3:].mean(axis=1), np.sort(cosines, axis=0)[-3:].mean(axis=0)
    known = rank_links_by(source, target, means=means)["csls"]
    found = rank_links(source, target, "csls", 3)
    assert np.array_equal(known.source_to_target, found.source_to_target)
    assert np.array_equal(known.target_to_source, found.target_to_source)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_length_does_not_matter(scale: float) -> None:
    vectors = np.random.default_rng(2).normal(size=(50, 8)).astype(np.float32)
    ranks = rank_links(vectors, vectors * np.float32(scale))
    assert set(ranks.source_to_target.tolist()) == {1}


def test_arguments_stay_as_they_are() -> None:
    vectors = np.random.default_rng(3).normal(size=(9, 4)).astype(np.float32)
    before = vectors.copy()
    vectors.flags.writeable = False
    precision = torch.get_float32_matmul_precision()
    rank_links(vectors, vectors)
    assert np.array_equal(vectors, before)
    assert torch.get_float32_matmul_precision() == precision


@st.composite
def gold_matrices(draw: st.DrawFn) -> tuple[Array, Array]:
    """Scores of few different values, hence many ties, and gold entries, of which a row or column may have several."""
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    scores = draw(hnp.arrays(np.float32, (rows, columns), elements=st.integers(-2, 2).map(float)))
    gold = draw(st.lists(st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1)), max_size=8))
    return scores, np.array(gold, dtype=np.int32).reshape(-1, 2)


@given(drawn=gold_matrices(), tolerance=st.sampled_from([1e-6, 1.0]))
def test_ranks_in_a_matrix_equal_their_definition(drawn: tuple[Array, Array], tolerance: float) -> None:
    scores, gold = drawn
    ranks = rank_matrix(torch.from_numpy(scores.copy()), gold[:, 0], gold[:, 1], tolerance)
    assert ranks.source_to_target.dtype == ranks.target_to_source.dtype == np.int64
    for (row, column), forward, backward in zip(gold, ranks.source_to_target, ranks.target_to_source, strict=True):
        least = scores[row, column] - tolerance
        assert forward == 1 + sum(scores[row, other] >= least for other in range(scores.shape[1]) if other != column)
        assert backward == 1 + sum(scores[other, column] >= least for other in range(scores.shape[0]) if other != row)


@given(drawn=gold_matrices(), data=st.data(), tolerance=st.sampled_from([1e-6, 1.0]))
def test_ranks_among_edges_equal_their_definition(
    drawn: tuple[Array, Array], data: st.DataObject, tolerance: float
) -> None:
    """The edges are some entries of a matrix, in any order; a gold entry that is none of them is last."""
    scores, gold = drawn
    entries = [(row, column) for row in range(scores.shape[0]) for column in range(scores.shape[1])]
    edges = data.draw(st.lists(st.sampled_from(entries), unique=True))
    values = np.array([scores[edge] for edge in edges], dtype=np.float32)
    gold_values = np.array([scores[edge] if edge in edges else np.nan for edge in map(tuple, gold.tolist())])
    for side, num_candidates in ((0, scores.shape[1]), (1, scores.shape[0])):
        ends = np.array([edge[side] for edge in edges], dtype=np.int32)
        ranks = rank_edges(ends, values, gold[:, side], gold_values, num_candidates, tolerance)
        for entry, rank in zip(map(tuple, gold.tolist()), ranks.tolist(), strict=True):
            if entry not in edges:
                assert rank == max(num_candidates, 2)
                continue
            rivals = [edge for edge in edges if edge[side] == entry[side] and edge != entry]
            assert rank == 1 + sum(scores[edge] >= scores[entry] - tolerance for edge in rivals)


def test_ties_count_against_us_in_matrices_and_among_edges() -> None:
    ranks = rank_matrix(torch.zeros(3, 4), np.arange(3), np.arange(3))
    assert ranks.source_to_target.tolist() == [4, 4, 4]
    assert ranks.target_to_source.tolist() == [3, 3, 3]
    ends, scores = np.array([0, 0, 1, 1, 1]), np.array([0.5, 0.5, 0.5, 0.4, 0.5])
    gold = np.array([0.5, 0.4, 0.5, np.nan])
    assert rank_edges(ends, scores, np.array([0, 1, 1, 2]), gold, 9).tolist() == [2, 3, 2, 9]
    assert rank_edges(ends[:0], scores[:0], np.array([0]), gold[3:], 1).tolist() == [2], "last, and never first"


def test_what_cannot_be_ranked_is_refused() -> None:
    two, three = np.ones((2, 4)), np.ones((3, 4))
    with pytest.raises(ArtifactError, match="two"):
        rank_links(two, three)
    with pytest.raises(ArtifactError, match="cosine or csls"):
        rank_links(two, two, "dot")  # type: ignore[arg-type]
    with pytest.raises(ArtifactError, match="mask"):
        rank_links(two, two, source_covered=np.ones(3, dtype=bool))
