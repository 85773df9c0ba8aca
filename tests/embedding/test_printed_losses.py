"""Cross-subgraph negatives as printed, against a loop."""

from __future__ import annotations

import math

import pytest
import torch

from largegnn.embedding.printed_losses import printed_cross_loss

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("chunk_bytes", [1, 10**6])
@pytest.mark.parametrize("factor", [1.0, 20.0])
def test_it_equals_a_loop_and_so_does_its_gradient(chunk_bytes: int, factor: float) -> None:
    draw = torch.Generator().manual_seed(1)
    rows = (factor * torch.randn(5, 3, generator=draw, dtype=torch.float64)).requires_grad_()
    outside = torch.randn(4, 3, generator=draw, dtype=torch.float64)
    loss = printed_cross_loss(rows, outside, chunk_bytes=chunk_bytes)
    (grad,) = torch.autograd.grad(loss, rows)
    rows, loss = rows.detach(), loss.detach()
    total = 1.0 + sum(math.exp(float(row @ other)) for row in rows for other in outside)
    assert float(loss) == pytest.approx(math.log(total))
    for row, slope in zip(rows, grad, strict=True):
        expected = sum(math.exp(float(row @ other)) / total * other for other in outside)
        assert torch.allclose(slope, torch.as_tensor(expected))


def test_outside_rows_get_no_gradient() -> None:
    outside = torch.ones(2, 3, requires_grad=True)
    loss = printed_cross_loss(torch.ones(2, 3, requires_grad=True), outside)
    grads: tuple[torch.Tensor | None, ...] = torch.autograd.grad(loss, outside, allow_unused=True)
    assert grads == (None,)
