"""RMSprop for a big table of which a step touches only some rows.

In: a table (num_rows, d), or a generator to draw one; then, per step, the ids of some rows and their gradient.
Out: the same table, only those rows changed, as `torch.optim.RMSprop` without momentum would change a table of
just these rows. A row that is not touched keeps its value and its mean square: no decay for steps it sat out.
The idea: the table and its state may be larger than the device. They lie anywhere (host memory, a file mapped into
it, the device itself) and are updated where they lie, so that a step moves k rows to the device and k gradients back.

Cost: O(k d) per step in time and memory, whatever the size of the table; the table and its state are 2 num_rows d.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from largegnn.errors import ArtifactError

__all__ = ["RowRMSprop", "fill_uniform"]

_FILL_ROWS = 1 << 16


class RowRMSprop:
    """A table of parameters and the optimiser that owns it."""

    def __init__(
        self,
        values: torch.Tensor,
        square_average: torch.Tensor | None = None,
        *,
        device: torch.device | str | None = None,
        alpha: float = 0.9,
        eps: float = 1e-7,
    ) -> None:
        """Own `values` (num_rows, d) and their mean squares (zeros if not given); rows are handed out on `device`.

        Both are used in place, so tensors over pinned memory or over a writable `np.memmap` stay what they are.
        """
        square_average = torch.zeros_like(values) if square_average is None else square_average
        if values.ndim != 2 or square_average.shape != values.shape:
            raise ArtifactError(f"a table {tuple(values.shape)} with a state {tuple(square_average.shape)}")
        if square_average.device != values.device or square_average.dtype != values.dtype:
            raise ArtifactError("a table and its state must be of one type and on one device")
        self.values = values.detach()
        self.square_average = square_average.detach()
        # Through a tensor, since "cuda" and "cuda:0" are one device but not equal.
        self.device = values.device if device is None else torch.empty(0, device=device).device
        self.alpha, self.eps = alpha, eps

    @classmethod
    def drawn(
        cls,
        num_rows: int,
        dim: int,
        generator: torch.Generator,
        *,
        table_device: torch.device | str = "cpu",
        device: torch.device | str | None = None,
        alpha: float = 0.9,
        eps: float = 1e-7,
    ) -> RowRMSprop:
        """A new table (num_rows, dim), uniform in ±0.05, kept on `table_device`."""
        values = torch.empty(num_rows, dim, device=table_device)
        fill_uniform(values, generator)
        return cls(values, device=device, alpha=alpha, eps=eps)

    def gather(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of `ids` (k,) on the device, (k, d): a copy that collects its own gradient."""
        return self._staged(self.values, self._indices(ids)).requires_grad_()

    def rows_of(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of `ids` (k,) on the device, (k, d), without a gradient."""
        return self._staged(self.values, self._indices(ids))

    def take(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of `ids` (k,) and their mean squares, (k, d) each, on the device, to be given back by `put`."""
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
    def update(self, ids: torch.Tensor, gradient: torch.Tensor, lr: float, *, trusted: bool = False) -> None:
        """Take one step against `gradient` (k, d) on the rows of `ids` (k,), which must be distinct.

        That is checked unless the ids are `trusted`: the check sorts them, and on a GPU waits for all that went before.
        """
        indices = self._indices(ids)
        if gradient.shape != (len(indices), self.values.shape[1]):
            raise ArtifactError(f"a gradient {tuple(gradient.shape)} for {len(indices)} rows")
        if not trusted:
            ascending = indices.sort().values
            if bool((ascending[1:] == ascending[:-1]).any()):
                raise ArtifactError("a row is updated twice in one step; add up its gradients first")
        gradient = gradient.to(self.values)
        square_average = self.square_average.index_select(0, indices)
        square_average.mul_(self.alpha).addcmul_(gradient, gradient, value=1 - self.alpha)
        self.square_average.index_copy_(0, indices, square_average)
        rows = self.values.index_select(0, indices)
        rows.addcdiv_(gradient, square_average.sqrt_().add_(self.eps), value=-lr)
        self.values.index_copy_(0, indices, rows)

    def state_arrays(self) -> dict[str, torch.Tensor]:
        """The table and its state for a checkpoint: the tensors themselves, not copies."""
        return {"values": self.values, "square_average": self.square_average}

    def load_state_arrays(self, arrays: Mapping[str, torch.Tensor]) -> None:
        """Copy what `state_arrays` gave back into place; nothing is changed if a shape differs."""
        own = self.state_arrays()
        for name, tensor in own.items():
            found = tuple(arrays[name].shape) if name in arrays else None
            if found != tuple(tensor.shape):
                raise ArtifactError(f"the saved {name} are {found}, the table's {tuple(tensor.shape)}")
        for name, tensor in own.items():
            tensor.copy_(arrays[name])

    def _staged(self, table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        """Rows of a table on the device."""
        if table.device == self.device:
            return table.index_select(0, indices)
        # From pinned memory the copy to a GPU runs beside the host's work; the allocator keeps it until that is done.
        staged = table.new_empty((len(indices), table.shape[1]), pin_memory=self.device.type == "cuda")
        torch.index_select(table, 0, indices, out=staged)
        return staged.to(self.device, non_blocking=True)

    def _indices(self, ids: torch.Tensor) -> torch.Tensor:
        """The ids (k,) on the table's device, in the type that indexing takes."""
        return ids.to(self.values.device, torch.int64)


def fill_uniform(table: torch.Tensor, generator: torch.Generator, bound: float = 0.05) -> None:
    """Draw a table (num_rows, d) uniform in ±bound, in chunks on the generator's device: the same on any device."""
    chunk = torch.empty(min(_FILL_ROWS, len(table)), table.shape[1], device=generator.device)
    for start in range(0, len(table), _FILL_ROWS):
        rows = chunk[: len(table) - start]
        table[start : start + len(rows)] = rows.uniform_(-bound, bound, generator=generator)
