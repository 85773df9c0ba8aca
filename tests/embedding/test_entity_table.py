from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from largegnn.embedding import entity_table
from largegnn.embedding.entity_table import EntityTable, choose_location, fill_uniform, new_table
from largegnn.errors import InputError
from largegnn.machine.devices import MemoryBudget
from tests.embedding.small_runs import CPU, small_options

NUM_ROWS, DIM = 12, 5
STEPS = st.lists(st.sets(st.integers(0, NUM_ROWS - 1)).map(sorted), min_size=1, max_size=6)
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def drawn(
    num_rows: int, dim: int, generator: torch.Generator, *, table_device: str = "cpu", device: str | None = None
) -> EntityTable:
    """A new table of random rows."""
    values = torch.empty(num_rows, dim, device=table_device)
    fill_uniform(values, generator)
    return EntityTable(values, device=device)


def test_one_step_by_hand() -> None:
    """Mean square .9 * 0 + .1 * 2^2 = .4, step .1 * 2 / sqrt(.4); the other row keeps its value and state."""
    optimizer = EntityTable(torch.tensor([[1.0], [7.0]]))
    optimizer.update(torch.tensor([0]), torch.tensor([[2.0]]), 0.1)
    assert optimizer.values.flatten().tolist() == pytest.approx([1 - 0.2 / 0.4**0.5, 7.0])
    assert optimizer.square_average.flatten().tolist() == pytest.approx([0.4, 0.0])


@given(steps=STEPS, seed=st.integers(0, 9))
def test_touched_rows_move_as_under_torch(steps: list[list[int]], seed: int) -> None:
    """Each row has a `torch.optim.RMSprop` of its own, stepped when the row is touched."""
    optimizer = drawn(NUM_ROWS, DIM, seeded(seed))
    parameters = [torch.nn.Parameter(row.clone()) for row in optimizer.values]
    references = [torch.optim.RMSprop([parameter], alpha=0.9, eps=1e-7) for parameter in parameters]
    generator = seeded(seed + 1)
    for number, touched in enumerate(steps):
        lr = 0.005 / (number + 1)
        ids = torch.tensor(touched, dtype=torch.int64)
        gradient = torch.randn(len(touched), DIM, generator=generator)
        optimizer.update(ids, gradient, lr)
        for row, row_gradient in zip(touched, gradient, strict=True):
            parameters[row].grad = row_gradient
            references[row].param_groups[0]["lr"] = lr
            references[row].step()
    assert torch.equal(optimizer.values, torch.stack([parameter.detach() for parameter in parameters]))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("table_device", DEVICES)
def test_a_loss_falls(table_device: str, device: str) -> None:
    """Only half the rows take part; the gradient goes through the rows that were taken."""
    optimizer = drawn(NUM_ROWS, DIM, seeded(), table_device=table_device, device=device)
    before = optimizer.values.cpu().clone()
    ids = torch.arange(0, NUM_ROWS, 2)
    losses = []
    for _ in range(50):
        rows = optimizer.leaf_rows(ids)
        assert rows.is_leaf
        assert rows.device.type == device
        loss = (rows - 1).square().mean()
        optimizer.update(ids, torch.autograd.grad(loss, rows)[0], 0.05)
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.01 < losses[0]
    assert torch.equal(optimizer.values.cpu()[1::2], before[1::2])


def test_a_gathered_row_is_a_copy() -> None:
    optimizer = drawn(NUM_ROWS, DIM, seeded())
    before = optimizer.values.clone()
    with torch.no_grad():
        optimizer.leaf_rows(torch.tensor([3, 1], dtype=torch.int32)).zero_()
    assert torch.equal(optimizer.values, before)
    assert torch.equal(optimizer.leaf_rows(torch.tensor([3, 1])), before[[3, 1]])


def test_no_rows_at_all() -> None:
    optimizer = drawn(NUM_ROWS, DIM, seeded())
    none = torch.empty(0, dtype=torch.int64)
    assert optimizer.leaf_rows(none).shape == (0, DIM)
    optimizer.update(none, torch.empty(0, DIM), 0.1)


def test_a_table_in_a_file_is_updated_there(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("values", "square_average")]
    arrays = [np.memmap(file, np.float32, "w+", shape=(NUM_ROWS, DIM)) for file in files]
    mapped = EntityTable(torch.from_numpy(arrays[0]), torch.from_numpy(arrays[1]))
    fill_uniform(mapped.values, seeded())
    plain = drawn(NUM_ROWS, DIM, seeded())
    for optimizer in (mapped, plain):
        optimizer.update(torch.tensor([2, 9]), torch.ones(2, DIM), 0.01)
    for array in arrays:
        array.flush()
    for file, tensor in zip(files, plain.state_arrays().values(), strict=True):
        assert np.array_equal(np.fromfile(file, np.float32).reshape(NUM_ROWS, DIM), tensor.numpy())


def test_interrupted_is_uninterrupted() -> None:
    straight = drawn(NUM_ROWS, DIM, seeded())
    gradients = [torch.randn(3, DIM, generator=seeded(step)) for step in range(6)]
    resumed = drawn(NUM_ROWS, DIM, seeded(99))
    for step, gradient in enumerate(gradients):
        if step == 3:
            resumed.load_state_arrays({name: tensor.clone() for name, tensor in straight.state_arrays().items()})
        for optimizer in (straight, resumed):
            optimizer.update(torch.tensor([step, 7, 11]), gradient, 0.01)
    for name, tensor in straight.state_arrays().items():
        assert torch.equal(tensor, resumed.state_arrays()[name])


def test_drawing_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = drawn(1000, 16, seeded()).values
    monkeypatch.setattr(entity_table, "_FILL_ROWS", 7)
    assert torch.equal(drawn(1000, 16, seeded()).values, whole)
    assert whole.abs().max() <= 0.05
    assert abs(float(whole.mean())) < 0.001
    assert float(whole.std()) == pytest.approx(0.05 / 3**0.5, rel=0.02)
    assert drawn(0, 16, seeded()).values.shape == (0, 16)


GPU = torch.device("cuda")


def table(home: str, folder: Path | None = None) -> EntityTable:
    generator = torch.Generator().manual_seed(3)
    return new_table(50, small_options(tables=home), CPU, generator, folder)


def test_the_same_rows_are_drawn_wherever_they_are(tmp_path: Path) -> None:
    tables = [table("auto"), table("host"), table("file", tmp_path / "tables")]
    assert all(torch.equal(each.values, tables[0].values) for each in tables)
    assert all(not each.square_average.any() for each in tables)
    ids = torch.tensor([4, 9])
    tables[2].write(ids, torch.ones(2, 8), torch.full((2, 8), 2.0))
    rows, squares = tables[2].rows_and_state(ids)
    assert rows.eq(1).all()
    assert squares.eq(2).all()
    assert (tmp_path / "tables" / "rows.bin").stat().st_size == 50 * 8 * 4


def test_a_file_needs_a_folder() -> None:
    with pytest.raises(InputError, match="no folder"):
        table("file")


def test_location_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largegnn.embedding.entity_table.memory_budget", lambda device: MemoryBudget(4096.0, "us"))
    options = small_options(dim=64, max_memory_gb=4.0)
    # Two tables of 64 numbers are 512 bytes an entity: 2 GB are 4 million of them.
    assert choose_location(4_000_000, options, GPU, True) == "device"
    assert choose_location(4_300_000, options, GPU, False) == "host"
    assert choose_location(4_300_000, options, GPU, True) == "file"
    assert choose_location(4_000_000, options, CPU, True) == "device"
    assert choose_location(4_300_000, options, CPU, True) == "file"
    assert choose_location(4_300_000, options, CPU, False) == "device"
    assert choose_location(10, small_options(tables="host"), GPU, True) == "host"
