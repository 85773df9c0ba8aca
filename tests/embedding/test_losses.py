from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from largegnn.embedding.losses import (
    HardNegatives,
    alignment_loss,
    cross_negative_loss,
    printed_cross_loss,
    reconstruction_loss,
)
from largegnn.embedding.sampling import batch_nodes, dropout, sample_nodes
from largegnn.embedding.structure import build_structure
from tests.embedding.random_graphs import NUM_RELATIONS, TOY, random_rows

GAMMA, SCALE, SHIFT = 0.7, 3.0, 2.0
SEEDS = torch.tensor([(0, 8), (3, 9), (1, 10), (3, 11)])


def slow_side(anchor: Tensor, partner: Tensor, others: list[Tensor]) -> Tensor:
    """One row of the loss, literally: two zeros and z of the other candidates."""
    positive = (anchor - partner).square().sum()
    row = [torch.zeros_like(positive)] * 2
    row += [positive - (anchor - other).square().sum() + GAMMA for other in others]
    z = torch.stack(row)
    z = (z - z.mean().detach()) / z.std(correction=0).detach()
    return torch.logsumexp(SCALE * z + SHIFT, dim=0)


def slow_alignment_loss(outputs: Tensor, seeds: Tensor, negatives: list[int]) -> Tensor:
    total = outputs.new_zeros(())
    for left, right in seeds.tolist():
        others = [outputs[j] for j in negatives if j not in (left, right)]
        total = total + slow_side(outputs[left], outputs[right], others)
        total = total + slow_side(outputs[right], outputs[left], others)
    return total / len(seeds)


@pytest.mark.parametrize("negatives", [None, [8, 2, 5, 0, 6], [4, 5, 6]])
@pytest.mark.parametrize("chunk_bytes", [1, 200, 10**6])
def test_alignment_loss_is_the_slow_loop(negatives: list[int] | None, chunk_bytes: int) -> None:
    outputs = random_rows(12, 4, 0)[0].requires_grad_()
    chosen = None if negatives is None else torch.tensor(negatives)
    fast = alignment_loss(outputs, SEEDS, chosen, HardNegatives(GAMMA, SCALE, SHIFT, chunk_bytes))
    slow = slow_alignment_loss(outputs, SEEDS, list(range(12)) if negatives is None else negatives)
    torch.testing.assert_close(fast, slow)
    (ours,), (theirs,) = torch.autograd.grad(2 * fast, outputs), torch.autograd.grad(2 * slow, outputs)
    torch.testing.assert_close(ours, theirs)


def test_alignment_loss_with_the_sharpness_of_the_paper() -> None:
    outputs = random_rows(12, 4, 1, torch.float32)[0].mul_(5).requires_grad_()
    loss = alignment_loss(outputs, SEEDS, None)
    (grad,) = torch.autograd.grad(loss, outputs)
    assert torch.isfinite(grad).all()
    moved = (outputs - 1e-3 * grad / grad.norm()).detach()
    assert alignment_loss(moved, SEEDS, None) < loss


def test_equal_outputs_do_not_divide_by_zero() -> None:
    outputs = torch.ones(12, 4, requires_grad=True)
    loss = alignment_loss(outputs, SEEDS, torch.tensor([0, 8]), HardNegatives(gamma=0.0))
    (grad,) = torch.autograd.grad(loss, outputs)
    assert torch.isfinite(loss)
    assert torch.isfinite(grad).all()


def test_alignment_loss_without_gradient_is_the_same_number() -> None:
    outputs = random_rows(12, 4, 2)[0]
    assert alignment_loss(outputs, SEEDS, None) == alignment_loss(outputs.clone().requires_grad_(), SEEDS, None)


@pytest.mark.parametrize("chunk_bytes", [1, 10**6])
def test_cross_negatives_push_seeds_only(chunk_bytes: int) -> None:
    rows, outside = random_rows(10, 4, 3)[0].requires_grad_(), random_rows(7, 4, 4)[0].requires_grad_()
    seed_rows = rows[torch.tensor([(0, 5), (1, 6), (1, 7)])]
    fast = cross_negative_loss(seed_rows, outside, HardNegatives(GAMMA, SCALE, SHIFT, chunk_bytes))
    still = list(outside.detach())
    slow = sum(
        (slow_side(left, right, still) + slow_side(right, left, still) for left, right in seed_rows),
        start=rows.new_zeros(()),
    )
    torch.testing.assert_close(fast, slow / 3)
    ours = torch.autograd.grad(fast, (rows, outside), allow_unused=True, retain_graph=True)
    torch.testing.assert_close(ours[0], torch.autograd.grad(slow / 3, rows)[0])
    assert ours[1] is None


def test_reconstruction_by_hand() -> None:
    structure = build_structure(6, TOY, NUM_RELATIONS)
    rows = random_rows(6, 3, 5)[0].requires_grad_()
    # Neighbours in the toy graph: 0 has 1; 1 has 0 and 2; 2 has 1 and 3; 3 has 2; 4 and 5 have none.
    means = [rows[1], (rows[0] + rows[2]) / 2, (rows[1] + rows[3]) / 2, rows[2]]
    expected = sum(((rows[node] - means[node]).square().sum() for node in range(4)), start=rows.new_zeros(())) / 6
    loss = reconstruction_loss(rows, structure, 0.0, torch.Generator())
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, rows)[0], torch.autograd.grad(expected, rows)[0])


def test_reconstruction_with_dropout_depends_on_the_generator_only() -> None:
    structure = build_structure(6, TOY, NUM_RELATIONS)
    rows = random_rows(6, 30, 5)[0]
    first, again, other = (
        reconstruction_loss(rows, structure, 0.3, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other


def test_dropout_keeps_the_mean_and_every_place_alike() -> None:
    rows = torch.ones(1001, 77, requires_grad=True)
    result = dropout(rows, 0.3, torch.Generator().manual_seed(0))
    hidden = round(0.3 * 256) / 256
    assert sorted(set(result.flatten().tolist())) == pytest.approx([0.0, 1 / (1 - hidden)])
    share = (result == 0).float()
    assert share.mean().item() == pytest.approx(hidden, abs=0.005)
    # No byte of the random words is weaker than the others.
    by_byte = share.flatten()[: 77_000 // 8 * 8].view(-1, 8).mean(dim=0)
    assert by_byte.tolist() == pytest.approx([hidden] * 8, abs=0.02)
    (grad,) = torch.autograd.grad(result.sum(), rows)
    assert torch.equal(grad, result.detach())
    assert dropout(rows, 0.0, torch.Generator()) is rows


def test_negatives_are_distinct_and_vary() -> None:
    generator = torch.Generator().manual_seed(0)
    draws = [sample_nodes(50, 20, generator) for _ in range(200)]
    assert all(len(set(draw.tolist())) == 20 for draw in draws)
    counts = torch.bincount(torch.cat(draws), minlength=50)
    assert counts.min() > 40
    assert counts.max() < 130
    assert sorted(sample_nodes(5, 20, generator).tolist()) == [0, 1, 2, 3, 4]


def test_a_batch_on_its_own_nodes_has_the_same_loss() -> None:
    outputs = random_rows(12, 4, 6)[0]
    negatives = torch.tensor([2, 8, 5])
    batch = batch_nodes(SEEDS, negatives)
    assert batch.nodes.tolist() == [0, 1, 2, 3, 5, 8, 9, 10, 11]
    assert torch.equal(batch.nodes[batch.seeds], SEEDS)
    assert torch.equal(batch.nodes[batch.negatives], negatives)
    few = alignment_loss(outputs[batch.nodes], batch.seeds, batch.negatives)
    torch.testing.assert_close(few, alignment_loss(outputs, SEEDS, negatives))


@pytest.mark.parametrize("chunk_bytes", [1, 10**6])
@pytest.mark.parametrize("factor", [1.0, 20.0])
def test_the_printed_cross_loss_equals_a_loop_and_so_does_its_gradient(chunk_bytes: int, factor: float) -> None:
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


def test_outside_rows_of_the_printed_loss_get_no_gradient() -> None:
    outside = torch.ones(2, 3, requires_grad=True)
    loss = printed_cross_loss(torch.ones(2, 3, requires_grad=True), outside)
    grads: tuple[torch.Tensor | None, ...] = torch.autograd.grad(loss, outside, allow_unused=True)
    assert grads == (None,)
