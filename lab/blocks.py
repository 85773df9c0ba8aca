"""Train and measure models of single blocks, as LargeEA and LIME do (section 6 of the paper).

In: the blocks as subgraphs, the options of a training run, the test links. Out: the unit vectors of each block, ranks
of all test links, and pairs. Each block is trained on its own, so vectors of different blocks cannot be compared. The
candidates of a source are the test targets that share a block with it, by cosine; if they share several blocks, the
best score counts; a link whose ends share no block is a miss with an infinite rank. Pairs are selected within each
block, and the result is their union. Ties count as errors. An entity whose vector is zero is in no block.
Cost: training each block; the sum over blocks of test sources times test targets, times d. Memory: the largest block.

# Paper: LargeEA's blocks are CPS parts, LIME's are SBP parts; alignment is searched within a block only.
# Departs: encoder, loss and number of epochs are those of LargeGNN, so that only the divisions are compared. A block
#     without a seed cannot be trained: its vectors come from the random initial parameters.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from largegnn.artifacts import IntArray, Mask, Subgraph, SubgraphSet
from largegnn.embedding.integrate import encode_full
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.structure import build_structure
from largegnn.embedding.trainer import Trainer
from largegnn.errors import ArtifactError
from largegnn.evaluation.metrics import SCORE_TOLERANCE, Ranks
from largegnn.machine.precision import full_precision
from largegnn.matching.candidates import csls
from largegnn.matching.search import SearchOptions, search_both
from largegnn.matching.selection import mutual_knn, mutual_top1
from largegnn.matching.union import build_candidates
from largegnn.settings import TrainSettings

__all__ = ["BlockEmbeddings", "BlockPairs", "BlockVectors", "rank_within_blocks", "train_blocks"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class BlockEmbeddings:
    """The entities of a block, (k,) ascending, and their unit vectors (k, d), comparable only within the block."""

    entities: IntArray
    vectors: npt.NDArray[np.float32]


def train_blocks(
    subgraphs: SubgraphSet, num_relations: int, options: TrainSettings, device: torch.device, seed: int
) -> Iterator[BlockEmbeddings]:
    """Train a separate model on each block; its random seed follows from `seed` and the number of the block."""
    alignment_only = {"alignment": options.losses.get("alignment", 1.0)}
    options = options.model_copy(update={"losses": alignment_only, "repartition_every": 0})
    for index in range(len(subgraphs)):
        block = subgraphs.subgraph(index)
        _log.info("train: block %d of %d, %d entities", index + 1, len(subgraphs), len(block.entities))
        block_seed = int(np.random.SeedSequence([seed, index]).generate_state(1)[0])
        yield _train_block(block, num_relations, options, device, block_seed)


def _train_block(
    block: Subgraph, num_relations: int, options: TrainSettings, device: torch.device, seed: int
) -> BlockEmbeddings:
    num_entities = len(block.entities)
    model = EmbeddingModel(num_entities, num_relations, options, device, seed)
    if len(block.seeds):
        subgraph_set = SubgraphSet(
            entities=np.arange(num_entities),
            entity_ptr=np.array([0, num_entities]),
            triples=block.triples,
            triple_ptr=np.array([0, len(block.triples)]),
            seeds=block.seeds,
            seed_ptr=np.array([0, len(block.seeds)]),
        )
        Trainer(model, lambda _: subgraph_set, num_relations, options, seed).run()
    structure = build_structure(num_entities, block.triples, num_relations)
    embeddings = encode_full(model.encoder, model.entities.values, model.relations, structure)
    return BlockEmbeddings(block.entities, embeddings.vectors)


class BlockVectors(Protocol):
    """A block: distinct entities (k,) and their vectors (k, d)."""

    @property
    def entities(self) -> IntArray:
        """Return the global ids (k,)."""
        ...

    @property
    def vectors(self) -> npt.NDArray[Any]:
        """Return one row for each entity, (k, d)."""
        ...


@dataclass(frozen=True, eq=False)
class _Members:
    """Test entities of one side in a block: ascending `indices` (k,) into the side's test entities, and vectors."""

    indices: IntArray
    vectors: torch.Tensor

    def rows(self, indices: IntArray) -> torch.Tensor:
        """Return the vectors of entities of the block, given by their indices."""
        rows = torch.from_numpy(np.searchsorted(self.indices, indices))
        return self.vectors.index_select(0, rows.to(self.vectors.device))


def rank_within_blocks(
    blocks: Iterable[BlockVectors],
    test_links: IntArray,
    *,
    device: torch.device | str = "cpu",
    chunk_bytes: int = 1 << 28,
) -> Ranks:
    """Rank both ends of all `test_links` (k, 2) within their blocks: (k,) float64 each, infinite for a split link.

    Blocks are read one at a time; only the vectors of test entities are kept.
    """
    sources, source_indices = np.unique(test_links[:, 0], return_inverse=True)
    targets, target_indices = np.unique(test_links[:, 1], return_inverse=True)
    source_members, target_members = [], []
    with full_precision():
        for block in blocks:
            source_members.append(_members(block, sources, device))
            target_members.append(_members(block, targets, device))
        forward = _rank(source_members, source_indices, target_members, target_indices, chunk_bytes)
        backward = _rank(target_members, target_indices, source_members, source_indices, chunk_bytes)
    return Ranks(forward, backward)


def _members(block: BlockVectors, entities: IntArray, device: torch.device | str) -> _Members:
    """Find which of the ascending `entities` (m,) have a non-zero vector in the block."""
    _, in_block, indices = np.intersect1d(block.entities, entities, assume_unique=True, return_indices=True)
    vectors = torch.from_numpy(np.asarray(block.vectors[in_block])).to(device, torch.float32)
    if not bool(torch.isfinite(vectors).all()):
        raise ArtifactError("a vector of a block holds NaN or infinity")
    lengths = torch.linalg.vector_norm(vectors, dim=1)
    has_direction = lengths > 0
    return _Members(indices[has_direction.cpu().numpy()], (vectors / lengths[:, None])[has_direction])


def _rank(
    queries: list[_Members],
    query_indices: IntArray,
    candidates: list[_Members],
    gold_indices: IntArray,
    chunk_bytes: int,
) -> npt.NDArray[np.float64]:
    """Rank the true partner of each link among the candidates of its query, (k,)."""
    ranks = np.full(len(query_indices), np.inf)
    if not len(ranks):
        return ranks
    is_in = np.zeros((int(query_indices.max()) + 1, len(queries)), dtype=bool)
    for index, members in enumerate(queries):
        is_in[members.indices, index] = True
    # Queries with the same blocks make a group.
    group_of_query = np.unique(np.packbits(is_in, axis=1), axis=0, return_inverse=True)[1].ravel()
    group_of_link = group_of_query[query_indices]
    by_group = np.argsort(group_of_link, kind="stable")
    starts = np.flatnonzero(np.diff(group_of_link[by_group], prepend=-1))
    for links in np.split(by_group, starts[1:]):
        shared = np.flatnonzero(is_in[query_indices[links[0]]])
        columns = np.unique(np.concatenate([np.empty(0, np.int64), *(candidates[index].indices for index in shared)]))
        links = links[np.isin(gold_indices[links], columns)]
        golds = np.searchsorted(columns, gold_indices[links])
        step = max(1, chunk_bytes // (8 * max(1, len(columns))))
        for start in range(0, len(links), step):
            chunk = slice(start, start + step)
            scores = _best_scores(queries, query_indices[links[chunk]], candidates, shared, columns)
            gold = scores.gather(1, torch.from_numpy(golds[chunk, None]).to(scores.device))
            # The true partner itself is counted once, so the best rank is 1.
            ranks[links[chunk]] = (scores >= gold - SCORE_TOLERANCE).sum(dim=1).cpu().numpy()
    return ranks


def _best_scores(
    queries: list[_Members],
    indices: IntArray,
    candidates: list[_Members],
    shared: IntArray,
    columns: IntArray,
) -> torch.Tensor:
    """Compute cosines of queries (q,), which are in all `shared` blocks, with candidates (c,): the best over blocks."""
    if len(shared) == 1:
        return torch.mm(queries[shared[0]].rows(indices), candidates[shared[0]].vectors.t())
    best: torch.Tensor = candidates[shared[0]].vectors.new_full((len(indices), len(columns)), -torch.inf)
    for index in shared:
        scores = queries[index].rows(indices) @ candidates[index].vectors.t()
        positions = torch.from_numpy(np.searchsorted(columns, candidates[index].indices)).to(best.device)
        best[:, positions] = torch.maximum(best[:, positions], scores)
    return best


_K = 5
_CSLS_K = 10


class BlockPairs:
    """Collect the pairs of blocks; entities with `free` (n,) may be matched, the first `num_sources` are sources."""

    def __init__(self, free: Mask, num_sources: int, device: str = "cpu") -> None:
        self._free = free
        self._num_sources = num_sources
        self._options = SearchOptions(device=device)
        self._found: dict[str, list[IntArray]] = {"mutual_5nn": [], "mutual_top1": [], "csls_mutual_top1": []}

    def watch(self, blocks: Iterable[BlockEmbeddings]) -> Iterator[BlockEmbeddings]:
        """Yield the given blocks; the pairs of a block are collected before it is yielded."""
        for block in blocks:
            self._add(block)
            yield block

    def pairs(self) -> dict[str, IntArray]:
        """Return the pairs (p, 2) of each selection without repetitions."""
        none = np.empty((0, 2), dtype=np.int64)
        return {name: np.unique(np.concatenate([none, *pairs]), axis=0) for name, pairs in self._found.items()}

    def _add(self, block: BlockEmbeddings) -> None:
        is_free = self._free[block.entities]
        is_source = block.entities < self._num_sources
        sides = [np.flatnonzero(is_free & side) for side in (is_source, ~is_source)]
        if not all(len(side) for side in sides):
            return
        near_targets, near_sources = search_both(
            block.vectors[sides[0]],
            block.vectors[sides[1]],
            max(_K, _CSLS_K),
            "torch",
            source_ids=block.entities[sides[0]],
            target_ids=block.entities[sides[1]],
            options=self._options,
        )
        graph = build_candidates(near_targets, near_sources)
        cosines = graph.column("cosine")
        for name, edges in (
            ("mutual_5nn", mutual_knn(graph, cosines, _K)),
            ("mutual_top1", mutual_top1(graph, cosines)),
            ("csls_mutual_top1", mutual_top1(graph, csls(graph, near_targets, near_sources, _CSLS_K))),
        ):
            self._found[name].append(graph.pairs(edges))
