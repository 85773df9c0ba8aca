"""What several workers exchange: gradients averaged, touched rows gathered, the first one's values broadcast.

In: one worker's gradients, losses or state. Out: what all of them hold in common afterwards, the same on every one.
Alone there is nothing to exchange. Under `torch.distributed` (gloo on CPU, nccl on CUDA) the group must have been
initialised; the launcher starts the workers, and ends all of them when one fails.
The idea: every worker holds the tables and applies the same updates, so that they stay equal without being sent. What
is summed is therefore summed in the same order everywhere, and what only one can know (a checkpoint, H@1 on the valid
links) is known by the first and broadcast to the others.
Cost: a step sends the dense parameters and the rows its subgraph touches.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["Exchange"]


class Exchange:
    """The workers of a training run, seen from one of them."""

    def __init__(self) -> None:
        grouped = dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank() if grouped else 0
        self.size = dist.get_world_size() if grouped else 1

    @property
    def is_first(self) -> bool:
        """Whether this is the worker that validates, writes and logs."""
        return self.rank == 0

    def shard(self, items: list[int]) -> list[int]:
        """The share of this worker of a list that every worker has."""
        return items[self.rank :: self.size]

    def reduce_dense(self, parameters: Iterable[Tensor]) -> None:
        """Average the gradients of dense parameters over the workers; one without a gradient counts as zero."""
        if self.size == 1:
            return
        parameters = list(parameters)
        gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in parameters]
        # One message for all of them: most are small, and a message costs more than its bytes.
        together = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(together)
        parts = torch.split(together.div_(self.size), [gradient.numel() for gradient in gradients])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)

    def gather_rows(self, ids: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Distinct ids (k,) of all workers, and the sum of their gradients (k, d) over the number of workers."""
        if self.size == 1:
            return ids, gradient
        # A subgraph's rows differ in number from worker to worker: all are padded to the longest.
        counts = [torch.zeros(1, dtype=torch.int64, device=ids.device) for _ in range(self.size)]
        dist.all_gather(counts, torch.tensor([len(ids)], dtype=torch.int64, device=ids.device))
        lengths = [int(count) for count in counts]
        every_id = self._gather_padded(ids, lengths)
        every_gradient = self._gather_padded(gradient, lengths)
        distinct, indices = torch.unique(torch.cat(every_id), return_inverse=True)
        total = torch.zeros(len(distinct), gradient.shape[1], dtype=gradient.dtype, device=gradient.device)
        # Worker by worker, whose ids are distinct: the order of the sums is then the same on every worker.
        for index, part in zip(torch.split(indices, lengths), every_gradient, strict=True):
            total.index_add_(0, index, part)
        return distinct, total.div_(self.size)

    def mean(self, total: float, count: int, device: torch.device) -> float:
        """The mean of all workers' numbers, of which each has `count` that add up to `total`; 0 of none."""
        sums = torch.tensor([total, count], dtype=torch.float64, device=device)
        if self.size > 1:
            dist.all_reduce(sums)
        return float(sums[0]) / max(float(sums[1]), 1.0)

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Fill every worker's tensors with the first one's."""
        if self.size > 1:
            for tensor in tensors:
                dist.broadcast(tensor, src=0)

    def broadcast_value(self, value: Any, device: torch.device) -> Any:
        """The first worker's value, one that JSON can write, on every worker."""
        if self.size == 1:
            return value
        text = torch.tensor(list(json.dumps(value).encode("utf-8")), dtype=torch.uint8, device=device)
        length = torch.tensor([len(text)], dtype=torch.int64, device=device)
        dist.broadcast(length, src=0)
        if not self.is_first:
            text = torch.empty(int(length), dtype=torch.uint8, device=device)
        dist.broadcast(text, src=0)
        return json.loads(bytes(text.tolist()))

    def _gather_padded(self, values: Tensor, lengths: list[int]) -> list[Tensor]:
        """Every worker's values, worker by worker."""
        padded = values.new_zeros((max(lengths), *values.shape[1:]))
        padded[: len(values)] = values
        received = [torch.empty_like(padded) for _ in range(self.size)]
        dist.all_gather(received, padded)
        return [part[:length] for part, length in zip(received, lengths, strict=True)]
