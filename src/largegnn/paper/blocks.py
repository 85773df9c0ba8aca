"""Within-block training: one independent model for each block, as LargeEA and LIME do (section 6 of the paper).

In: the blocks as subgraphs, the options of a training run. Out, block by block, the unit vectors of its entities.
The idea: a block is a training run of its own with tables for its entities alone, relation rows and an encoder. Nothing
leads from one block to another: no cross-subgraph negatives, no reconstruction, and vectors of different blocks cannot
be compared. `block_metrics` ranks within blocks accordingly.
Cost: that of training each block; memory that of the largest one, since a block is forgotten before the next begins.

# Paper: LargeEA's blocks are CPS parts, LIME's are SBP parts; alignment is searched within a block only.
# Departs: the same encoder, loss and number of epochs as LargeGNN's, so that what is compared is the division. A block
#     without a seed cannot be trained: its vectors are those its random start gives.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from largegnn.artifacts import IntArray, Subgraph, SubgraphSet
from largegnn.embedding.integrate import encode_full
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.options import TrainOptions
from largegnn.embedding.structure import build_structure
from largegnn.embedding.trainer import Trainer

__all__ = ["BlockEmbeddings", "train_blocks"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class BlockEmbeddings:
    """The entities of a block, (k,) ascending, and their unit vectors (k, d); comparable with each other only."""

    entities: IntArray
    vectors: npt.NDArray[np.float32]


def train_blocks(
    subgraphs: SubgraphSet, num_relations: int, options: TrainOptions, device: torch.device, seed: int
) -> Iterator[BlockEmbeddings]:
    """Train a model for each block on that block alone; each follows from `seed` and the block's number."""
    options = replace(options, losses={"alignment": options.losses.get("alignment", 1.0)}, repartition_every=0)
    for index in range(len(subgraphs)):
        block = subgraphs.subgraph(index)
        _log.info("train: block %d of %d, %d entities", index + 1, len(subgraphs), len(block.entities))
        block_seed = int(np.random.SeedSequence([seed, index]).generate_state(1)[0])
        yield _train_block(block, num_relations, options, device, block_seed)


def _train_block(
    block: Subgraph, num_relations: int, options: TrainOptions, device: torch.device, seed: int
) -> BlockEmbeddings:
    num_entities = len(block.entities)
    model = EmbeddingModel(num_entities, num_relations, options, device, seed)
    if len(block.seeds):
        own = SubgraphSet(
            entities=np.arange(num_entities),
            entity_ptr=np.array([0, num_entities]),
            triples=block.triples,
            triple_ptr=np.array([0, len(block.triples)]),
            seeds=block.seeds,
            seed_ptr=np.array([0, len(block.seeds)]),
        )
        Trainer(model, lambda _: own, num_relations, options, seed).run()
    structure = build_structure(num_entities, block.triples, num_relations)
    embeddings = encode_full(model.encoder, model.entities.values, model.relations, structure)
    return BlockEmbeddings(block.entities, embeddings.vectors)
