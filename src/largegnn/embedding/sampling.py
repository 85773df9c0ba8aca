"""Draw what a step draws at random: negatives, and what dropout drops.

In: counts and a generator. Out: ids, or rows with some numbers set to zero.
Cost: dropout needs eight random bits for each number, not a float: drawing floats would take longer than the encoder.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["BatchNodes", "batch_nodes", "dropout", "sample_nodes"]


def sample_nodes(num_nodes: int, count: int, generator: torch.Generator) -> Tensor:
    """`count` distinct nodes (all of them if there are no more), int64, on the generator's device."""
    return torch.randperm(num_nodes, generator=generator, device=generator.device)[:count]


@dataclass(frozen=True)
class BatchNodes:
    """The nodes a step needs the output of, ascending, and its seeds and negatives as indices among them."""

    nodes: Tensor
    seeds: Tensor
    negatives: Tensor


def batch_nodes(seeds: Tensor, negatives: Tensor) -> BatchNodes:
    """Gather the nodes of `seeds` (b, 2) and `negatives` (m,)."""
    nodes, indices = torch.unique(torch.cat([seeds.flatten(), negatives]), return_inverse=True)
    return BatchNodes(nodes, indices[: seeds.numel()].view(-1, 2), indices[seeds.numel() :])


def dropout(rows: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Set numbers to zero with probability `rate`, rounded to 256ths, and scale the others up to keep the mean."""
    hidden = round(rate * 256)
    if hidden == 0:
        return rows
    words = torch.empty((rows.numel() + 7) // 8, dtype=torch.int64, device=rows.device)
    octets = words.random_(-(2**63), None, generator=generator).view(torch.uint8)[: rows.numel()]
    return rows * (octets >= hidden).view(rows.shape).to(rows.dtype).mul_(256 / (256 - hidden))
