"""Proxies and gate: what a node learns from the whole graph, not from its neighbours (section 5 of the paper).

In: rows (k, w) of nodes, proxies (p, w), the gate's weights. Out: rows (k, w).
The idea: with a = softmax(cosine of the row with each proxy), u = row - a P and g = sigmoid(u G + b), the result is
g * row + (1 - g) * u, which is u + g * (a P). The steps between are made for a few rows at a time, so that they stay in
the processor's cache, and the gradient is written out, so that only cosines and gate are kept for it.
Cost: O(k w^2), two products forward and four backward; memory one array of the rows' size besides input and output.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

__all__ = ["mix_with_proxies"]

_ROWS_IN_CACHE, _ROWS_ON_DEVICE = 1024, 2**17
_SMALLEST_NORM = 1e-12


def mix_with_proxies(rows: Tensor, proxies: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Mix `rows` (k, w) with `proxies` (p, w); `weight` (w, w) and `bias` (w,) make the gate."""
    units = functional.normalize(proxies, dim=1)
    result: Tensor = _Mix.apply(rows, units, proxies, weight, bias)  # type: ignore[no-untyped-call]
    return result


def _chunks(rows: Tensor) -> Iterator[slice]:
    step = _ROWS_IN_CACHE if rows.device.type == "cpu" else _ROWS_ON_DEVICE
    return (slice(start, start + step) for start in range(0, len(rows), step))


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, units: Tensor, proxies: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_min_(_SMALLEST_NORM)
        cosines = (rows @ units.t()).div_(norms)
        gates, result = torch.empty_like(rows), torch.empty_like(rows)
        for chunk in _chunks(rows):
            of_proxies = functional.softmax(cosines[chunk], dim=1) @ proxies
            apart = rows[chunk] - of_proxies
            gate = torch.addmm(bias, apart, weight.t(), out=gates[chunk]).sigmoid_()
            torch.addcmul(apart, gate, of_proxies, out=result[chunk])
        ctx.save_for_backward(rows, units, proxies, weight, norms, cosines, gates)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, units, proxies, weight, norms, cosines, gates = ctx.saved_tensors
        grad_rows, grad_cosines = torch.empty_like(rows), torch.empty_like(cosines)
        grad_units, grad_proxies = torch.zeros_like(units), torch.zeros_like(proxies)
        grad_weight, grad_bias = torch.zeros_like(weight), torch.zeros_like(weight[0])
        for chunk in _chunks(rows):
            coming, gate = grad[chunk], gates[chunk]
            shares = functional.softmax(cosines[chunk], dim=1)
            of_proxies = shares @ proxies
            before_gate = torch.ops.aten.sigmoid_backward(coming * of_proxies, gate)
            grad_weight.addmm_(before_gate.t(), rows[chunk] - of_proxies)
            grad_bias += before_gate.sum(dim=0)
            to_apart = torch.addmm(coming, before_gate, weight, out=grad_rows[chunk])
            to_proxies = torch.mul(coming, gate).sub_(to_apart)
            grad_proxies.addmm_(shares.t(), to_proxies)
            gain = (to_proxies @ proxies.t()).mul_(shares)
            torch.addcmul(gain, shares, gain.sum(dim=1, keepdim=True), value=-1.0, out=grad_cosines[chunk])
            # The gradient of a unit row has no part along the row.
            along = (grad_cosines[chunk] * cosines[chunk]).sum(dim=1, keepdim=True)
            scaled = grad_cosines[chunk].div_(norms[chunk])
            grad_units.addmm_(scaled.t(), rows[chunk])
            to_apart.addmm_(scaled, units)
            to_apart.addcmul_(along.div_(norms[chunk].square()), rows[chunk], value=-1.0)
        return grad_rows, grad_units, grad_proxies, grad_weight, grad_bias
