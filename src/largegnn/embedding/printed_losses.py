"""Cross-subgraph negatives as the paper prints them, beside ours in `losses` (section 5.3, CNS).

In: the input rows of a subgraph and of entities outside it. Out: a number with its gradient.

    loss = log(1 + sum over all entities i of the subgraph, all j outside it, of exp(x_i . y_j))

Ours compares the two ends of seeds with entities outside and pulls the two together; this one only pushes, and all
entities alike. The difference between the two, and that from no such loss, tells what the positive term is worth.
Cost: two products of the subgraph's rows with those outside; memory `chunk_bytes`, besides the gradient.

# Paper: inner products of input rows, all entities of the subgraph, no positive term.
# Departs: the printed signs reward closeness, they are reversed; all entities share one sample.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["printed_cross_loss"]

_CHUNK_BYTES = 8 * 2**20


def printed_cross_loss(rows: Tensor, outside_rows: Tensor, *, chunk_bytes: int = _CHUNK_BYTES) -> Tensor:
    """Push the input rows of a subgraph (k, d) away from those outside it (m, d), which get no gradient."""
    result: Tensor = _PrintedCrossLoss.apply(rows, outside_rows, chunk_bytes)  # type: ignore[no-untyped-call]
    return result


class _PrintedCrossLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, outside_rows: Tensor, chunk_bytes: int) -> Tensor:
        step = max(1, chunk_bytes // (max(1, len(outside_rows)) * rows.element_size()))
        chunks = [rows[start : start + step] for start in range(0, len(rows), step)]
        sums = [torch.logsumexp((chunk @ outside_rows.t()).flatten(), dim=0) for chunk in chunks]
        loss = torch.logsumexp(torch.stack([rows.new_zeros(()), *sums]), dim=0)
        if ctx.needs_input_grad[0]:
            grads = [(chunk @ outside_rows.t()).sub_(loss).exp_() @ outside_rows for chunk in chunks]
            ctx.save_for_backward(torch.cat(grads))
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.saved_tensors[0] * grad, None, None
