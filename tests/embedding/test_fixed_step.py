from __future__ import annotations

import torch

from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.feeding import PairFeed, ReadyPairs, SubgraphFeed
from largegnn.embedding.fixed_step import Draws, can_be_fixed, fixed_loss
from largegnn.embedding.gcn import GCN
from largegnn.embedding.losses import HardNegatives, alignment_loss, cross_negative_loss, reconstruction_loss
from largegnn.embedding.pair_graph import PairGraph
from tests.embedding.small_runs import CPU, NUM_RELATIONS, random_subgraphs, small_model, small_options


def padded(ready: ReadyPairs) -> PairGraph:
    arrays = PairGraph.empty(ready.graph.capacity.rounded_up(), CPU)
    arrays.put(ready.graph)
    return arrays


def test_the_loss_of_padded_arrays_is_the_plain_one_and_so_is_its_gradient() -> None:
    options, subgraphs = small_options(dropout=0.0, reconstruction_dropout=0.0), random_subgraphs(2)
    model = small_model(subgraphs, options)
    assert isinstance(model.encoder, DualAMN)
    (plain,) = SubgraphFeed(subgraphs, NUM_RELATIONS, CPU, 0).in_order([0])
    ready = PairFeed(subgraphs, NUM_RELATIONS, CPU, 0).ready(0)
    graph, count = padded(ready), len(ready.entities)
    generator = torch.Generator().manual_seed(1)
    seeds, negatives = plain.seeds[:5], torch.randperm(count, generator=generator)[:20]
    # Two seeds are among the negatives.
    negatives[:2] = seeds[0]
    negatives = torch.unique(negatives)
    own = torch.randn(count, 8, generator=generator)
    outside = torch.randn(14, 8, generator=generator)
    kept = torch.tensor([1.0, 0.0] * 7)

    rows = torch.cat([own, torch.zeros(graph.capacity.nodes - count, 8)]).requires_grad_()
    draws = Draws(
        seeds=torch.cat([seeds, torch.zeros(3, 2, dtype=torch.int64)]),
        shares=torch.tensor([0.2] * 5 + [0.0] * 3),
        negatives=negatives,
        outside=outside,
        kept=kept,
        noise=torch.tensor([3]),
    )
    ours = fixed_loss(model.encoder, rows, model.relations, graph, draws, options)

    other = own.clone().requires_grad_()
    outputs = model.encoder(other, model.relations, plain.structure)
    weights = options.losses
    expected = alignment_loss(outputs, seeds, negatives)
    expected = expected + weights["reconstruction"] * reconstruction_loss(other, plain.structure, 0.0, generator)
    seed_rows = other[seeds.flatten()].view(-1, 2, 8)
    pushed = cross_negative_loss(seed_rows, outside[kept > 0], HardNegatives(options.cross_gamma))
    expected = expected + weights["cross_subgraph"] * pushed

    torch.testing.assert_close(ours, expected)
    (grad, *dense) = torch.autograd.grad(ours, [rows, *model.dense])
    (other_grad, *other_dense) = torch.autograd.grad(expected, [other, *model.dense])
    torch.testing.assert_close(grad[:count], other_grad, rtol=1e-4, atol=1e-4)
    assert not grad[count:].any()
    for one, another in zip(dense, other_dense, strict=True):
        torch.testing.assert_close(one, another, rtol=1e-3, atol=1e-4)


def test_what_is_not_written_for_it_takes_the_plain_path() -> None:
    encoder = DualAMN(8)
    assert can_be_fixed(encoder, small_options())
    assert can_be_fixed(encoder, small_options(losses={"alignment": 1.0, "mine": 0.0}))
    assert not can_be_fixed(GCN(8), small_options())
    assert not can_be_fixed(encoder, small_options(losses={"alignment": 1.0, "mine": 0.5}))
    assert not can_be_fixed(encoder, small_options(losses={"reconstruction": 1.0}))
    assert not can_be_fixed(encoder, small_options(negatives=0))
