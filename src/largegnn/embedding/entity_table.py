"""Where the entity table and the state of its optimiser lie: on the device, in main memory, or in a mapped file.

In: how many entities of how many numbers, the setting `train.tables`, the memory allowed. Out: a new `RowRMSprop`.
The idea: a visit needs the rows of one subgraph on the device (`captured`), so the tables may be as large as the
machine's memory or its disk. The values drawn are the same wherever they lie.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, cast

import numpy as np
import torch

from largegnn.embedding.options import TrainOptions
from largegnn.embedding.row_optimizer import RowRMSprop, fill_uniform
from largegnn.errors import InputError
from largegnn.machine.devices import memory_budget

__all__ = ["new_table", "table_home"]

Home = Literal["device", "host", "file"]


def table_home(num_entities: int, options: TrainOptions, device: torch.device, has_folder: bool) -> Home:
    """Where the tables go: as the setting says, or the first place with room.

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
    options: TrainOptions,
    device: torch.device,
    generator: torch.Generator,
    folder: Path | None,
    *,
    alpha: float,
    eps: float,
) -> RowRMSprop:
    """A table (num_entities, dim) of random rows with a state of zeros; files go into `folder`."""
    home = table_home(num_entities, options, device, folder is not None)
    shape = (num_entities, options.dim)
    if home == "file":
        if folder is None:
            raise InputError(
                "train.tables is file, but there is no folder to put it in",
                expected="a run with a folder",
                fix="name a folder for the run, or set train.tables to host",
            )
        folder.mkdir(parents=True, exist_ok=True)
        values, squares = (_mapped(folder / f"{name}.bin", shape) for name in ("rows", "squares"))
    else:
        where = device if home == "device" else torch.device("cpu")
        values, squares = torch.empty(shape, device=where), torch.zeros(shape, device=where)
    fill_uniform(values, generator)
    return RowRMSprop(values, squares, device=device, alpha=alpha, eps=eps)


def _mapped(path: Path, shape: tuple[int, int]) -> torch.Tensor:
    """Zeros in a file, mapped into memory."""
    if not shape[0]:
        return torch.zeros(shape)
    array = np.memmap(path, dtype=np.float32, mode="w+", shape=shape)
    return torch.from_numpy(cast("np.ndarray[tuple[int, int], np.dtype[np.float32]]", array))
