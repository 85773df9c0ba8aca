"""The fused sums against the plain path. With Triton installed its kernels are interpreted; without, PyTorch's sums."""

from __future__ import annotations

import importlib.util
import os

import pytest
import torch
from torch import Tensor

if importlib.util.find_spec("triton") and not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

from largegnn.embedding.dual_amn import DualAMN, relation_mean, set_vectors
from largegnn.embedding.fused import Places, _kernels_work, hide, powers_of, reflected_sums, rmsprop_, sums_of_rows
from largegnn.embedding.fused_encoder import hidden_layers, outputs_of
from largegnn.embedding.message_passing import reflected_sum
from largegnn.embedding.pair_graph import PairGraph, build_pair_graph
from largegnn.embedding.structure import GraphStructure, build_structure
from tests.embedding.random_graphs import NUM_RELATIONS, random_triples

CPU = torch.device("cpu")
DIM = 5
NOISE = torch.tensor([7])


def padded(num_nodes: int, num_triples: int) -> tuple[PairGraph, GraphStructure]:
    """A random graph with hubs, in padded arrays; and its structure."""
    triples = random_triples(num_nodes, num_triples, 1)
    graph = build_pair_graph(num_nodes, torch.from_numpy(triples), NUM_RELATIONS)
    arrays = PairGraph.empty(graph.capacity.rounded_up(), CPU)
    arrays.put(graph)
    return arrays, build_structure(num_nodes, triples, NUM_RELATIONS)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def with_padding(rows: Tensor, graph: PairGraph) -> Tensor:
    """Rows (b, n, d) with zeros for the nodes that are padding."""
    return torch.cat([rows, rows.new_zeros(len(rows), graph.capacity.nodes - rows.shape[1], rows.shape[2])], dim=1)


@pytest.mark.parametrize(("num_nodes", "num_triples"), [(14, 60), (260, 4000)])
@pytest.mark.parametrize("some", [False, True])
def test_reflected_sums_are_the_plain_ones(num_nodes: int, num_triples: int, some: bool) -> None:
    graph, structure = padded(num_nodes, num_triples)
    rows, table, vectors = drawn(2, num_nodes, DIM), drawn(2 * NUM_RELATIONS, DIM, seed=1), drawn(2, DIM, seed=2)
    nodes = torch.arange(0, num_nodes, 3) if some else torch.arange(num_nodes)
    direction = drawn(2, len(nodes), DIM, seed=3)

    ours = [rows.clone().requires_grad_(), table.clone().requires_grad_(), vectors.clone().requires_grad_()]
    units = unit_vectors(ours[1], graph)
    logits = ours[2] @ units.t()
    places = Places.of(torch.cat([nodes, nodes[:1]]), graph.capacity.nodes) if some else None
    found = reflected_sums(with_padding(ours[0], graph), units, logits, powers_of(logits, graph), graph, places)
    found = found[:, nodes] if places is None else found[:, places.of_node[nodes].long()]

    plain = [rows.clone().requires_grad_(), table.clone().requires_grad_(), vectors.clone().requires_grad_()]
    sets = set_vectors(plain[1], structure)
    expected = torch.stack(
        [
            reflected_sum(block, sets, sets @ vector, structure)[nodes]
            for block, vector in zip(plain[0], plain[2], strict=True)
        ]
    )
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    grads = torch.autograd.grad((found * direction).sum(), ours)
    for our, other in zip(grads, torch.autograd.grad((expected * direction).sum(), plain), strict=True):
        torch.testing.assert_close(our, other, rtol=1e-3, atol=1e-4)


def unit_vectors(table: Tensor, graph: PairGraph) -> Tensor:
    sums = table.new_zeros(graph.capacity.sets, DIM).index_add(0, graph.set_of_member, table[graph.members])
    return torch.nn.functional.normalize(sums / graph.set_sizes.clamp_min(1.0)[:, None], dim=1)


def test_sums_of_relation_rows_are_the_plain_means() -> None:
    graph, structure = padded(260, 4000)
    ours, plain = (drawn(2 * NUM_RELATIONS, DIM, seed=1).requires_grad_() for _ in range(2))
    pattern = (graph.incidences, graph.incidence_pieces, graph.touched, graph.row_pieces)
    means = sums_of_rows(ours, *pattern, graph.capacity.nodes) / graph.num_incident.clamp_min(1.0)[:, None]
    expected = relation_mean(plain, structure)
    torch.testing.assert_close(means[:260], expected)
    direction = drawn(260, DIM, seed=3)
    (our,) = torch.autograd.grad((means[:260] * direction).sum(), ours)
    (other,) = torch.autograd.grad((expected * direction).sum(), plain)
    torch.testing.assert_close(our, other, rtol=1e-4, atol=1e-4)


def test_outputs_are_those_of_the_encoder_where_nodes_repeat() -> None:
    graph, structure = padded(40, 300)
    torch.manual_seed(0)
    encoder = DualAMN(DIM, num_proxies=4)
    rows, table = drawn(40, DIM), drawn(2 * NUM_RELATIONS, DIM, seed=1)
    nodes = torch.tensor([3, 7, 3, 39, 0])
    with torch.no_grad():
        layers, _ = hidden_layers(encoder, with_padding(rows[None], graph)[0], table, graph, 0.0, NOISE)
        found = outputs_of(encoder, layers, graph, nodes)
        torch.testing.assert_close(found, encoder(rows, table, structure, nodes), rtol=1e-4, atol=1e-5)


def test_dropout_follows_from_the_number_alone_and_keeps_the_mean() -> None:
    values = torch.ones(400, 50, requires_grad=True)
    first, again, other = hide(values, 0.3, NOISE), hide(values, 0.3, NOISE), hide(values, 0.3, NOISE + 5)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert float(first.detach().mean()) == pytest.approx(1.0, abs=0.02)
    assert float((first.detach() == 0).float().mean()) == pytest.approx(0.3, abs=0.02)
    (grad,) = torch.autograd.grad(first.sum(), values)
    assert torch.equal(grad, first.detach())
    assert torch.equal(hide(values, 0.0, NOISE), values)


def test_rmsprop_is_that_of_torch() -> None:
    rows, grads = drawn(30, DIM), [drawn(30, DIM, seed=seed) for seed in (1, 2)]
    ours, squares = rows.clone(), torch.zeros_like(rows)
    other = rows.clone().requires_grad_()
    optimizer = torch.optim.RMSprop([other], lr=0.01, alpha=0.9, eps=1e-7)
    for grad in grads:
        rmsprop_(ours, squares, grad, torch.tensor([0.01]), 0.9, 1e-7)
        other.grad = grad.clone()
        optimizer.step()
    torch.testing.assert_close(ours, other.detach())


def test_kernels_that_do_not_compile_are_logged_and_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_compiler(*arguments: object) -> Tensor:
        raise RuntimeError("Failed to find C compiler")

    monkeypatch.setattr("largegnn.embedding.fused._sum_rows", no_compiler)
    _kernels_work.cache_clear()
    assert not _kernels_work(CPU)
    assert "Failed to find C compiler" in caplog.text
    _kernels_work.cache_clear()
