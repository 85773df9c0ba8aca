"""Choose the device to compute on, and find out the number of processors and the memory of this machine."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from largegnn.errors import InputError

if TYPE_CHECKING:
    import torch

__all__ = [
    "MemoryBudget",
    "choose_device",
    "machine_memory_mb",
    "memory_budget",
    "num_processors",
    "set_short_spins",
    "spin_variables",
]

# Shares of memory to plan with: a GPU is used by this program alone, the memory of the machine by others, too.
_GPU_SHARE, _MACHINE_SHARE = 0.8, 0.5
_GPU_DEVICE_FILES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
_MB = 1024 * 1024
_SPIN_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


@dataclass(frozen=True)
class MemoryBudget:
    """Memory to plan with (None if unknown), and in words which share of which memory it is."""

    mb: float | None
    owner: str


def memory_budget(device: str = "auto") -> MemoryBudget:
    """The memory that a run may use on a device; a share of all its memory, whatever is free at the moment."""
    gpu_mb = None if device == "cpu" else _gpu_memory_mb()
    if gpu_mb is not None:
        return MemoryBudget(_GPU_SHARE * gpu_mb, f"{_GPU_SHARE:.0%} of the GPU's {gpu_mb:,.0f} MB")
    if device == "cuda":
        raise InputError(
            "there is no usable GPU",
            expected="a CUDA device and a PyTorch built for it",
            fix="omit --device, or use --device cpu",
        )
    machine_mb = machine_memory_mb()
    if machine_mb is None:
        return MemoryBudget(None, "memory unknown")
    return MemoryBudget(_MACHINE_SHARE * machine_mb, f"{_MACHINE_SHARE:.0%} of the machine's {machine_mb:,.0f} MB")


def _gpu_memory_mb() -> float | None:
    # PyTorch takes seconds to import, so the device files of the driver are looked for first.
    if sys.platform == "linux" and not any(Path(file).exists() for file in _GPU_DEVICE_FILES):
        return None
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    return float(torch.cuda.get_device_properties(0).total_memory / _MB)


def machine_memory_mb() -> float | None:
    """The memory of this machine; None if it is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _MB
    except (AttributeError, OSError, ValueError):  # Windows
        return None


def choose_device(name: str) -> torch.device:
    """The device for a value of the setting `device`; `auto` is a GPU if there is one."""
    import torch

    # PyTorch reads this variable when it first allocates GPU memory. The stages need arrays of different sizes: with
    # segments of fixed size the next stage cannot reuse much of the freed memory, a third at a million entities.
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("there is no usable GPU", fix="omit --device, or use --device cpu")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def num_processors() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spin_variables() -> dict[str, str]:
    """Environment variables that let waiting OpenMP threads sleep soon; those that the user has set are kept.

    At the end of a parallel loop OpenMP threads spin for some milliseconds while they wait for the last one, to save a
    wake-up. On a busy machine they take the processor time that the last thread needs: with nine processes on two cores
    the work took seven times as long as with short spins. On an idle machine short spins cost nothing.
    """
    # GOMP_SPINCOUNT (GCC) is a number of spins, 300,000 by default; KMP_BLOCKTIME (LLVM, Intel) is in milliseconds, 200
    # by default.
    chosen = {name: os.environ[name] for name in _SPIN_VARIABLES if name in os.environ}
    return chosen or {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "1"}


def set_short_spins() -> None:
    """Set `spin_variables` in this process; to be called by our programs before PyTorch, Faiss or numba is imported."""
    os.environ.update(spin_variables())
