"""Hold the entity table and the state of its optimiser: on the device, in main memory, or in a mapped file.

In: the number of entities and the setting `train.tables`; then, per step, the ids of k rows and their gradients.
Out: the table with only these rows changed, as `torch.optim.RMSprop` without momentum would change a table of k rows.
A row that a step does not touch keeps its value and its mean square, which is not decayed meanwhile.
The idea: a step needs only the rows of one subgraph on the device, so the table may be as large as main memory or the
disk. The table is updated where it is stored, so a step copies k rows to the device and k gradients from it. The
initial values do not depend on the location.
Cost: O(k d) per step in time and memory, whatever the size of the table; table and state hold 2 num_rows d numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import torch

from largegnn.errors import InputError
from largegnn.machine.devices import memory_budget

if TYPE_CHECKING:
    from largegnn.settings import TrainSettings

__all__ = ["ALPHA", "EPS", "EntityTable", "choose_location", "fill_uniform", "new_table"]

ALPHA = 0.9  # RMSprop: decay of the mean squares
EPS = 1e-7  # RMSprop: added to the root of a mean square
TableLocation = Literal["device", "host", "file"]

_BOUND = 0.05  # initial values are uniform between minus and plus this
_FILL_ROWS = 1 << 16


class EntityTable:
    """Rows of parameters with their RMSprop state; only the rows that a step touches are updated."""

    def __init__(
        self,
        values: torch.Tensor,
        square_average: torch.Tensor | None = None,
        *,
        device: torch.device | str | None = None,
    ) -> None:
        """Use `values` (num_rows, d) and their mean squares (zeros if not given); rows are copied to `device`.

        Both tensors are updated in place and never moved: they may be in pinned memory or in a writable `np.memmap`.
        """
        square_average = torch.zeros_like(values) if square_average is None else square_average
        self.values = values.detach()
        self.square_average = square_average.detach()
        # Read from a tensor, since "cuda" and "cuda:0" mean the same device but do not compare equal.
        self.device = values.device if device is None else torch.empty(0, device=device).device

    def leaf_rows(self, ids: torch.Tensor) -> torch.Tensor:
        """A copy of the rows of `ids` (k,) on the device, (k, d), as a leaf tensor that collects a gradient."""
        return self.rows(ids).requires_grad_()

    def rows(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of `ids` (k,) on the device, (k, d), without a gradient."""
        return self._staged(self.values, self._indices(ids))

    def rows_and_state(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of `ids` (k,) and their mean squares, both (k, d), on the device; `write` writes them back."""
        indices = self._indices(ids)
        return self._staged(self.values, indices), self._staged(self.square_average, indices)

    @torch.no_grad()
    def write(self, ids: torch.Tensor, rows: torch.Tensor, square_average: torch.Tensor) -> None:
        """Write rows and mean squares (k, d) of distinct `ids` (k,) into the table."""
        indices = self._indices(ids)
        if self.values.device != self.device:
            # Copies into pinned memory run at the full speed of the bus, and both need only one synchronisation.
            pinned = self.device.type == "cuda"
            staged = [self.values.new_empty(part.shape, pin_memory=pinned) for part in (rows, square_average)]
            for target, source in zip(staged, (rows, square_average), strict=True):
                target.copy_(source, non_blocking=True)
            if pinned:
                torch.cuda.synchronize(self.device)
            rows, square_average = staged
        self.values.index_copy_(0, indices, rows)
        self.square_average.index_copy_(0, indices, square_average)

    @torch.no_grad()
    def update(self, ids: torch.Tensor, gradient: torch.Tensor, lr: float) -> None:
        """Take one RMSprop step with `gradient` (k, d) on the rows of distinct `ids` (k,)."""
        indices = self._indices(ids)
        gradient = gradient.to(self.values)
        square_average = self.square_average.index_select(0, indices)
        square_average.mul_(ALPHA).addcmul_(gradient, gradient, value=1 - ALPHA)
        self.square_average.index_copy_(0, indices, square_average)
        rows = self.values.index_select(0, indices)
        rows.addcdiv_(gradient, square_average.sqrt_().add_(EPS), value=-lr)
        self.values.index_copy_(0, indices, rows)

    def state_arrays(self) -> dict[str, torch.Tensor]:
        """Table and state for a checkpoint: the tensors themselves, not copies."""
        return {"values": self.values, "square_average": self.square_average}

    def load_state_arrays(self, arrays: Mapping[str, torch.Tensor]) -> None:
        """Copy arrays that `state_arrays` returned into table and state."""
        for name, tensor in self.state_arrays().items():
            tensor.copy_(arrays[name])

    def _staged(self, table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        """A copy on the device of some rows of a table."""
        if table.device == self.device:
            return table.index_select(0, indices)
        # A copy from pinned memory to a GPU runs in the background; the allocator keeps the memory until it is done.
        staged = table.new_empty((len(indices), table.shape[1]), pin_memory=self.device.type == "cuda")
        torch.index_select(table, 0, indices, out=staged)
        return staged.to(self.device, non_blocking=True)

    def _indices(self, ids: torch.Tensor) -> torch.Tensor:
        """The row of each id (k,), int64, on the table's device; a subclass may map ids to rows."""
        return ids.to(self.values.device, torch.int64)


def fill_uniform(table: torch.Tensor, generator: torch.Generator) -> None:
    """Fill a table (num_rows, d) with values uniform in ±0.05.

    They are drawn in chunks on the generator's device, so they do not depend on the table's device.
    """
    chunk = torch.empty(min(_FILL_ROWS, len(table)), table.shape[1], device=generator.device)
    for start in range(0, len(table), _FILL_ROWS):
        rows = chunk[: len(table) - start]
        table[start : start + len(rows)] = rows.uniform_(-_BOUND, _BOUND, generator=generator)


def choose_location(num_entities: int, options: TrainSettings, device: torch.device, has_folder: bool) -> TableLocation:
    """Choose where the table is stored: as `train.tables` says, or with `auto` by size.

    On the GPU if the table and its state take at most half of `max_memory_gb`; otherwise in main memory if they take at
    most half of the memory that a run may use, or if there is no folder; otherwise in a file. Without a GPU, `device`
    and `host` are both main memory.
    """
    if options.tables != "auto":
        return options.tables
    num_bytes = 2 * 4 * num_entities * options.dim
    if device.type != "cpu" and num_bytes <= options.max_memory_gb * 2**30 / 2:
        return "device"
    budget_mb = memory_budget("cpu").mb
    if has_folder and budget_mb is not None and num_bytes > budget_mb * 2**20 / 2:
        return "file"
    return "host" if device.type != "cpu" else "device"


def new_table(
    num_entities: int,
    options: TrainSettings,
    device: torch.device,
    generator: torch.Generator,
    folder: Path | None,
) -> EntityTable:
    """Make a table (num_entities, dim) of random rows with a state of zeros; a file is written into `folder`."""
    location = choose_location(num_entities, options, device, folder is not None)
    shape = (num_entities, options.dim)
    if location == "file":
        if folder is None:
            raise InputError(
                "train.tables is file, but there is no folder to write it to",
                expected="a run with a folder",
                fix="name a folder for the run, or set train.tables to host",
            )
        folder.mkdir(parents=True, exist_ok=True)
        values, squares = (_mapped(folder / f"{name}.bin", shape) for name in ("rows", "squares"))
    else:
        storage = device if location == "device" else torch.device("cpu")
        values, squares = torch.empty(shape, device=storage), torch.zeros(shape, device=storage)
    fill_uniform(values, generator)
    return EntityTable(values, squares, device=device)


def _mapped(path: Path, shape: tuple[int, int]) -> torch.Tensor:
    """A tensor of zeros over a new file, mapped into memory."""
    if not shape[0]:
        return torch.zeros(shape)
    array = np.memmap(path, dtype=np.float32, mode="w+", shape=shape)
    return torch.from_numpy(cast("np.ndarray[tuple[int, int], np.dtype[np.float32]]", array))
