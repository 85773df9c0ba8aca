from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from largegnn.embedding.dual_amn import DualAMN, mix_with_proxies
from largegnn.embedding.gcn import GCN
from largegnn.embedding.message_passing import gather_mean, reflected_sum
from largegnn.embedding.structure import build_structure
from tests.embedding.random_graphs import NUM_RELATIONS, TOY, random_rows, random_triples, rows_between, slow_dual_amn

DIM = 5


def double_encoder(seed: int, dim: int = DIM) -> DualAMN:
    torch.manual_seed(seed)
    encoder = DualAMN(dim, num_proxies=4).double()
    torch.nn.init.normal_(encoder.entity_block.gate.bias)
    return encoder


@pytest.mark.parametrize("seed", range(8))
def test_dual_amn_is_the_slow_loop(seed: int) -> None:
    triples = random_triples(14, 8 * seed, seed)
    structure = build_structure(14, triples, NUM_RELATIONS)
    encoder = double_encoder(seed)
    entities, relations = (rows.requires_grad_() for rows in random_rows(14, DIM, seed))
    inputs = [entities, relations, *encoder.parameters()]
    fast = encoder(entities, relations, structure)
    slow = slow_dual_amn(encoder, entities, relations, triples)
    torch.testing.assert_close(fast, slow)
    direction = torch.randn(fast.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    fast_grads = torch.autograd.grad((fast * direction).sum(), inputs, allow_unused=True, materialize_grads=True)
    slow_grads = torch.autograd.grad((slow * direction).sum(), inputs, allow_unused=True, materialize_grads=True)
    for ours, theirs in zip(fast_grads, slow_grads, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_gradients_of_the_whole_encoder() -> None:
    structure = build_structure(6, TOY, NUM_RELATIONS)
    encoder = double_encoder(0, dim=2)
    entities, relations = (rows.requires_grad_() for rows in random_rows(6, 2, 0))

    def outputs(*inputs: Tensor) -> Tensor:
        result: Tensor = torch.func.functional_call(
            encoder, dict(zip(names, inputs[2:], strict=True)), (inputs[0], inputs[1], structure)
        )
        return result

    names = [name for name, _ in encoder.named_parameters()]
    parameters = [value.detach().requires_grad_() for _, value in encoder.named_parameters()]
    assert torch.autograd.gradcheck(outputs, (entities, relations, *parameters), fast_mode=True)


def test_gradients_of_reflected_sums_and_means() -> None:
    structure = build_structure(9, random_triples(9, 20, 1), NUM_RELATIONS)
    rows, _ = random_rows(9, 3, 1)
    vectors = torch.randn(structure.num_sets, 3, dtype=torch.float64)
    logits = torch.randn(structure.num_sets, dtype=torch.float64)
    inputs = [value.requires_grad_() for value in (rows, vectors, logits)]
    assert torch.autograd.gradcheck(lambda h, r, v: reflected_sum(h, r, v, structure), inputs)
    pattern = (structure.pair_ptr, structure.neighbors)
    for with_self in (False, True):
        assert torch.autograd.gradcheck(
            lambda values, with_self=with_self: gather_mean(values, *pattern, *pattern, with_self=with_self), [rows]
        )
    relations = torch.randn(2 * NUM_RELATIONS, 3, dtype=torch.float64, requires_grad=True)
    across = (structure.incidence_ptr, structure.incidences, structure.touched_ptr, structure.touched)
    assert torch.autograd.gradcheck(lambda values: gather_mean(values, *across), [relations])


@pytest.mark.parametrize("rows_at_once", [2, 1024])
def test_gradients_of_mixing(rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largegnn.embedding.dual_amn._CPU_CHUNK_ROWS", rows_at_once)
    generator = torch.Generator().manual_seed(0)
    shapes = [(5, 4), (3, 4), (4, 4), (4,)]
    inputs = [torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes]
    assert torch.autograd.gradcheck(mix_with_proxies, inputs)


def test_attention_survives_extreme_logits() -> None:
    structure = build_structure(6, TOY, NUM_RELATIONS)
    rows, _ = random_rows(6, 3, 0, torch.float32)
    vectors = torch.nn.functional.normalize(torch.randn(structure.num_sets, 3), dim=1)
    logits = torch.linspace(-1e4, 1e4, structure.num_sets)
    assert torch.isfinite(reflected_sum(rows, vectors, logits, structure)).all()


def test_gcn_is_the_dense_formula() -> None:
    triples = random_triples(12, 30, 5)
    encoder = GCN(DIM).double()
    entities, relations = random_rows(12, DIM, 5)
    adjacency = torch.eye(12, dtype=torch.float64)
    for receiver, neighbor in rows_between(triples):
        adjacency[receiver, neighbor] = 1.0
    scale = adjacency.sum(dim=1).rsqrt()
    normalised = scale[:, None] * adjacency * scale[None]
    hidden = torch.relu(normalised @ entities @ encoder.first.weight.t())
    expected = normalised @ hidden @ encoder.second.weight.t()
    outputs = encoder(entities, relations, build_structure(12, triples, NUM_RELATIONS))
    torch.testing.assert_close(outputs, expected)


def test_the_folder_imports_where_little_is_installed() -> None:
    blocked = ["polars", "pydantic", "pyoxigraph", "pymetis", "click", "rich", "zstandard", "numba", "altair"]
    program = f"import sys; sys.modules.update(dict.fromkeys({blocked})); import largegnn.embedding.trainer"
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_the_folder_itself_imports_nothing() -> None:
    program = "import sys, largegnn.embedding; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
