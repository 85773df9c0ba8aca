"""Where to compute, and how much memory there is to plan with."""

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

__all__ = ["MemoryBudget", "choose_device", "machine_memory_mb", "memory_budget", "num_processors"]

# What may be planned with: a GPU is ours alone, the machine's memory is shared with everything else on it.
_GPU_SHARE, _MACHINE_SHARE = 0.8, 0.5
_GPU_NODES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
_MB = 1024 * 1024


@dataclass(frozen=True)
class MemoryBudget:
    """Memory to plan with, and whose it is; None where it cannot be told."""

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
    """The memory of this machine, or None where it cannot be told."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _MB
    except (AttributeError, OSError, ValueError):  # Windows
        return None


def choose_device(name: str) -> torch.device:
    """The device a setting names; auto is a GPU if there is one."""
    import torch

    # Read when PyTorch first takes memory of a GPU. Stages differ in what they hold: in segments of fixed sizes much of
    # what one gave back is of no use to the next, and at a million entities a third of the memory lay idle.
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("there is no GPU that can be used", fix="leave --device out, or name cpu")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def num_processors() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
