"""Hold the entity table and the state of its optimiser: on the device, in main memory, or in a mapped file.

In: the number of entities and the setting `train.tables`; then, per step, the ids of some rows and their gradient.
Out: the same table, only those rows changed, as `torch.optim.RMSprop` without momentum would change a table of just
these rows. A row that is not touched keeps its value and its mean square: no decay for the steps in between.
The idea: a step needs the rows of one subgraph on the device, so the table may be as large as the machine's memory or
its disk. It is updated where it is, so that a step moves k rows to the device and k gradients back. The values drawn
are the same wherever it is.
Cost: O(k d) per step in time and memory, whatever the size of the table; the table and its state are 2 num_rows d.
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

__all__ = ["ALPHA", "EPS", "RowRMSprop", "fill_uniform", "new_table", "table_home"]

ALPHA, EPS = 0.9, 1e-7  # of RMSprop: the decay of the mean squares, and what is added to their roots
Home = Literal["device", "host", "file"]

_BOUND = 0.05
_FILL_ROWS = 1 << 16


class RowRMSprop:
    """A table of parameters with the state of its optimiser, RMSprop without momentum."""

    def __init__(
        self,
        values: torch.Tensor,
        square_average: torch.Tensor | None = None,
        *,
        device: torch.device | str | None = None,
    ) -> None:
        """Use `values` (num_rows, d) and their mean squares (zeros if not given); `device` is where rows are needed.

        Both are used in place, so tensors over pinned memory or over a writable `np.memmap` stay what they are.
        """
        square_average = torch.zeros_like(values) if square_average is None else square_average
        self.values = values.detach()
        self.square_average = square_average.detach()
        # Through a tensor, since "cuda" and "cuda:0" are one device but not equal.
        self.device = values.device if device is None else torch.empty(0, device=device).device

    def gather(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of `ids` (k,) on the device, (k, d): a copy that collects its own gradient."""
        return self.rows_of(ids).requires_grad_()

    def rows_of(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of `ids` (k,) on the device, (k, d), without a gradient."""
        return self._staged(self.values, self._indices(ids))

    def take(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of `ids` (k,) and their mean squares, (k, d) each, on the device; `put` writes them back."""
        indices = self._indices(ids)
        return self._staged(self.values, indices), self._staged(self.square_average, indices)

    @torch.no_grad()
    def put(self, ids: torch.Tensor, rows: torch.Tensor, square_average: torch.Tensor) -> None:
        """Write rows and mean squares (k, d) of distinct `ids` (k,) into the table."""
        indices = self._indices(ids)
        if self.values.device != self.device:
            # Into pinned memory both copies run at the full speed of the bus, and one wait is enough.
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
        """Take one step against `gradient` (k, d) on the rows of `ids` (k,), which are distinct."""
        indices = self._indices(ids)
        gradient = gradient.to(self.values)
        square_average = self.square_average.index_select(0, indices)
        square_average.mul_(ALPHA).addcmul_(gradient, gradient, value=1 - ALPHA)
        self.square_average.index_copy_(0, indices, square_average)
        rows = self.values.index_select(0, indices)
        rows.addcdiv_(gradient, square_average.sqrt_().add_(EPS), value=-lr)
        self.values.index_copy_(0, indices, rows)

    def state_arrays(self) -> dict[str, torch.Tensor]:
        """The table and its state for a checkpoint: the tensors themselves, not copies."""
        return {"values": self.values, "square_average": self.square_average}

    def load_state_arrays(self, arrays: Mapping[str, torch.Tensor]) -> None:
        """Copy what `state_arrays` gave back into place."""
        for name, tensor in self.state_arrays().items():
            tensor.copy_(arrays[name])

    def _staged(self, table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        """Rows of a table on the device."""
        if table.device == self.device:
            return table.index_select(0, indices)
        # From pinned memory the copy to a GPU runs in the background; the allocator keeps the memory until it is done.
        staged = table.new_empty((len(indices), table.shape[1]), pin_memory=self.device.type == "cuda")
        torch.index_select(table, 0, indices, out=staged)
        return staged.to(self.device, non_blocking=True)

    def _indices(self, ids: torch.Tensor) -> torch.Tensor:
        """The ids (k,) on the table's device, in the type that indexing takes."""
        return ids.to(self.values.device, torch.int64)


def fill_uniform(table: torch.Tensor, generator: torch.Generator) -> None:
    """Draw a table (num_rows, d) uniform in ±0.05, in chunks on the generator's device: the same on any device."""
    chunk = torch.empty(min(_FILL_ROWS, len(table)), table.shape[1], device=generator.device)
    for start in range(0, len(table), _FILL_ROWS):
        rows = chunk[: len(table) - start]
        table[start : start + len(rows)] = rows.uniform_(-_BOUND, _BOUND, generator=generator)


def table_home(num_entities: int, options: TrainSettings, device: torch.device, has_folder: bool) -> Home:
    """Where the tables are: as the setting says, or the first place with room.

    A GPU has room for tables of half of `max_memory_gb`, so that its memory does not grow with the number of entities;
    main memory for those that take half of what a run may plan with.
    """
    if options.tables != "auto":
        return options.tables
    num_bytes = 2 * 4 * num_entities * options.dim
    if device.type != "cpu" and num_bytes <= options.max_memory_gb * 2**30 / 2:
        return "device"
    planned_mb = memory_budget("cpu").mb
    if has_folder and planned_mb is not None and num_bytes > planned_mb * 2**20 / 2:
        return "file"
    return "host" if device.type != "cpu" else "device"


def new_table(
    num_entities: int,
    options: TrainSettings,
    device: torch.device,
    generator: torch.Generator,
    folder: Path | None,
) -> RowRMSprop:
    """A table (num_entities, dim) of random rows with a state of zeros; files go into `folder`."""
    home = table_home(num_entities, options, device, folder is not None)
    shape = (num_entities, options.dim)
    if home == "file":
        if folder is None:
            raise InputError(
                "train.tables is file, but there is no folder to write it to",
                expected="a run with a folder",
                fix="name a folder for the run, or set train.tables to host",
            )
        folder.mkdir(parents=True, exist_ok=True)
        values, squares = (_mapped(folder / f"{name}.bin", shape) for name in ("rows", "squares"))
    else:
        where = device if home == "device" else torch.device("cpu")
        values, squares = torch.empty(shape, device=where), torch.zeros(shape, device=where)
    fill_uniform(values, generator)
    return RowRMSprop(values, squares, device=device)


def _mapped(path: Path, shape: tuple[int, int]) -> torch.Tensor:
    """Zeros in a file, mapped into memory."""
    if not shape[0]:
        return torch.zeros(shape)
    array = np.memmap(path, dtype=np.float32, mode="w+", shape=shape)
    return torch.from_numpy(cast("np.ndarray[tuple[int, int], np.dtype[np.float32]]", array))
