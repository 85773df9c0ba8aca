"""Sample the negatives of a training step, and apply dropout.

In: counts and a generator. Out: ids of nodes, or rows with some numbers set to zero.
Cost: dropout draws eight random bits for each number instead of a float: floats would take longer than the encoder.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["BatchNodes", "batch_nodes", "dropout", "sample_nodes"]


def sample_nodes(num_nodes: int, count: int, generator: torch.Generator) -> Tensor:
    """Sample `count` distinct nodes (all nodes if there are fewer), int64, on the generator's device."""
    return torch.randperm(num_nodes, generator=generator, device=generator.device)[:count]


@dataclass(frozen=True)
class BatchNodes:
    """The nodes whose outputs a step needs, ascending, and its seeds and negatives as indices into `nodes`."""

    nodes: Tensor
    seeds: Tensor
    negatives: Tensor


def batch_nodes(seeds: Tensor, negatives: Tensor) -> BatchNodes:
    """Collect the distinct nodes of `seeds` (b, 2) and `negatives` (m,)."""
    nodes, indices = torch.unique(torch.cat([seeds.flatten(), negatives]), return_inverse=True)
    return BatchNodes(nodes, indices[: seeds.numel()].view(-1, 2), indices[seeds.numel() :])


def dropout(rows: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Set numbers to zero with probability `rate`, rounded to 256ths, and scale the rest up to keep the mean."""
    hidden = round(rate * 256)
    if hidden == 0:
        return rows
    words = torch.empty((rows.numel() + 7) // 8, dtype=torch.int64, device=rows.device)
    octets = words.random_(-(2**63), None, generator=generator).view(torch.uint8)[: rows.numel()]
    return rows * (octets >= hidden).view(rows.shape).to(rows.dtype).mul_(256 / (256 - hidden))
