from __future__ import annotations

from pathlib import Path

import pytest
import torch

from largegnn.embedding.entity_table import new_table, table_home
from largegnn.embedding.row_optimizer import RowRMSprop
from largegnn.errors import InputError
from largegnn.machine.devices import MemoryBudget
from tests.embedding.small_runs import CPU, small_options

GPU = torch.device("cuda")


def table(home: str, folder: Path | None = None) -> RowRMSprop:
    generator = torch.Generator().manual_seed(3)
    return new_table(50, small_options(tables=home), CPU, generator, folder, alpha=0.9, eps=1e-7)


def test_the_same_rows_are_drawn_wherever_they_lie(tmp_path: Path) -> None:
    tables = [table("auto"), table("host"), table("file", tmp_path / "tables")]
    assert all(torch.equal(each.values, tables[0].values) for each in tables)
    assert all(not each.square_average.any() for each in tables)
    ids = torch.tensor([4, 9])
    tables[2].put(ids, torch.ones(2, 8), torch.full((2, 8), 2.0))
    rows, squares = tables[2].take(ids)
    assert rows.eq(1).all()
    assert squares.eq(2).all()
    assert (tmp_path / "tables" / "rows.bin").stat().st_size == 50 * 8 * 4


def test_a_file_needs_a_folder() -> None:
    with pytest.raises(InputError, match="no folder"):
        table("file")


def test_the_first_place_with_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largegnn.embedding.entity_table.memory_budget", lambda device: MemoryBudget(4096.0, "us"))
    options = small_options(dim=64, max_memory_gb=4.0)
    # Two tables of 64 numbers are 512 bytes an entity: 2 GB are 4 million of them.
    assert table_home(4_000_000, options, GPU, True) == "device"
    assert table_home(4_300_000, options, GPU, False) == "host"
    assert table_home(4_300_000, options, GPU, True) == "file"
    assert table_home(4_000_000, options, CPU, True) == "device"
    assert table_home(4_300_000, options, CPU, True) == "file"
    assert table_home(4_300_000, options, CPU, False) == "device"
    assert table_home(10, small_options(tables="host"), GPU, True) == "host"
