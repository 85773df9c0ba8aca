"""Choose the device to compute on, and find the processors and the memory of this machine."""

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

# What may be planned with: a GPU is ours alone, the machine's memory is shared with everything else on it.
_GPU_SHARE, _MACHINE_SHARE = 0.8, 0.5
_GPU_NODES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
_MB = 1024 * 1024
_SPIN_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


@dataclass(frozen=True)
class MemoryBudget:
    """Memory to plan with, and what it is a share of; None where it is unknown."""

    mb: float | None
    owner: str


def memory_budget(device: str = "auto") -> MemoryBudget:
    """The memory a run may use on a device; it follows from the machine, not from what happens to be free."""
    gpu_mb = None if device == "cpu" else _gpu_memory_mb()
    if gpu_mb is not None:
        return MemoryBudget(_GPU_SHARE * gpu_mb, f"{_GPU_SHARE:.0%} of the GPU's {gpu_mb:,.0f} MB")
    if device == "cuda":
        raise InputError(
            "there is no GPU that can be used",
            expected="a CUDA device and a PyTorch built for it",
            fix="leave --device out, or name cpu",
        )
    machine_mb = machine_memory_mb()
    if machine_mb is None:
        return MemoryBudget(None, "memory unknown")
    return MemoryBudget(_MACHINE_SHARE * machine_mb, f"{_MACHINE_SHARE:.0%} of the machine's {machine_mb:,.0f} MB")


def _gpu_memory_mb() -> float | None:
    # PyTorch takes seconds to import: look for the driver first where that is cheap.
    if sys.platform == "linux" and not any(Path(node).exists() for node in _GPU_NODES):
        return None
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    return float(torch.cuda.get_device_properties(0).total_memory / _MB)


def machine_memory_mb() -> float | None:
    """The memory of this machine, or None where it is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _MB
    except (AttributeError, OSError, ValueError):  # Windows
        return None


def choose_device(name: str) -> torch.device:
    """The device of a setting; `auto` is a GPU if there is one."""
    import torch

    # Read when PyTorch first takes memory of a GPU. Stages hold arrays of other sizes: with segments of fixed sizes
    # much of what one has freed is of no use to the next, and at a million entities a third of the memory was idle.
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("there is no GPU that can be used", fix="leave --device out, or name cpu")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def num_processors() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spin_variables() -> dict[str, str]:
    """Variables by which threads that wait for others sleep soon, or those that the environment has for it.

    OpenMP lets threads that reach the end of a parallel loop early spin for some milliseconds, which saves a wake-up.
    On a busy machine they burn the time that the last thread needs: seven times the seconds of a short spin, on two
    cores with nine processes waiting for them. A short spin costs nothing on a quiet machine.
    """
    # GCC's OpenMP spins so many times before it sleeps (300,000 by default), that of LLVM and Intel so many
    # milliseconds (200 by default).
    chosen = {name: os.environ[name] for name in _SPIN_VARIABLES if name in os.environ}
    return chosen or {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "1"}


def set_short_spins() -> None:
    """Set `spin_variables` for this process; for programs of our own, before PyTorch, Faiss or numba is loaded."""
    os.environ.update(spin_variables())
