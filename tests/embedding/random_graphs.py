"""Small random graphs, and the encoder written as loops, for the tests of this folder."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from largegnn.artifacts import IntArray
from largegnn.embedding.dual_amn import DualAMN

NUM_RELATIONS = 3

# Six nodes: 0-1 twice (two relations, and once backwards), 1-2, 2-3, a self-loop at 3 and at 4; 5 stands alone.
TOY = np.array([(0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 2, 2), (3, 0, 2), (3, 1, 3), (4, 2, 4)])


def random_triples(num_nodes: int, num_triples: int, seed: int) -> IntArray:
    """Distinct triples among the first two thirds of the nodes, with hubs and self-loops; the others stand alone."""
    rng = np.random.default_rng(seed)
    used = max(1, 2 * num_nodes // 3)
    ends = (rng.random((num_triples, 2)) ** 2 * used).astype(np.int32)
    relations = rng.integers(0, NUM_RELATIONS, num_triples)
    return np.unique(np.stack([ends[:, 0], relations, ends[:, 1]], axis=1), axis=0)


def rows_between(triples: IntArray) -> dict[tuple[int, int], list[int]]:
    """The relation rows of each (receiver, neighbour), self-loops left out."""
    result: dict[tuple[int, int], list[int]] = {}
    for head, relation, tail in triples.tolist():
        if head != tail:
            result.setdefault((head, tail), []).append(relation)
            result.setdefault((tail, head), []).append(relation + NUM_RELATIONS)
    return result


def rows_at(triples: IntArray, node: int) -> list[int]:
    """The distinct relation rows at a node."""
    heads = {relation for head, relation, _ in triples.tolist() if head == node}
    tails = {relation + NUM_RELATIONS for _, relation, tail in triples.tolist() if tail == node}
    return sorted(heads | tails)


def slow_dual_amn(encoder: DualAMN, entities: Tensor, relations: Tensor, triples: IntArray) -> Tensor:
    """Section 5 of the method, word by word, one node and one pair at a time."""
    between = rows_between(triples)
    nodes = range(len(entities))
    near = [[j for j in nodes if (i, j) in between] for i in nodes]
    by_entity = torch.stack([entities[[i, *near[i]]].mean(dim=0) for i in nodes])
    at = [rows_at(triples, i) for i in nodes]
    nothing = torch.zeros_like(relations[0])
    by_relation = torch.stack([relations[at[i]].mean(dim=0) if at[i] else nothing for i in nodes])
    outputs = []
    for block, first in ((encoder.entity_block, by_entity), (encoder.relation_block, by_relation)):
        hidden = [torch.tanh(first)]
        for vector in block.attention:
            after = []
            for i in nodes:
                unit = [relations[between[i, j]].mean(dim=0) for j in near[i]]
                unit = [mean / mean.norm() for mean in unit]
                if not unit:
                    after.append(nothing)
                    continue
                weights = torch.softmax(torch.stack([r @ vector for r in unit]), dim=0)
                messages = [hidden[-1][j] - 2 * (hidden[-1][j] @ r) * r for j, r in zip(near[i], unit, strict=True)]
                after.append(torch.tanh((weights[:, None] * torch.stack(messages)).sum(dim=0)))
            hidden.append(torch.stack(after))
        own = torch.cat(hidden, dim=1)
        cosine = torch.cosine_similarity(own[:, None], block.proxies[None], dim=2)
        apart = own - torch.softmax(cosine, dim=1) @ block.proxies
        gate = torch.sigmoid(apart @ block.gate.weight.t() + block.gate.bias)
        outputs.append(gate * own + (1 - gate) * apart)
    return torch.cat(outputs, dim=1)


def random_rows(num_nodes: int, dim: int, seed: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Entity rows and relation rows."""
    generator = torch.Generator().manual_seed(seed)
    entities = torch.randn(num_nodes, dim, generator=generator, dtype=dtype)
    return entities, torch.randn(2 * NUM_RELATIONS, dim, generator=generator, dtype=dtype)
