"""Measure seconds and peak memory of a stretch of work, also of the GPU where one is in use.

On Linux the kernel's high-water mark of resident memory is reset at the start, so the peak is that of the stretch
alone. Elsewhere it is the peak since the process began, an upper bound; `exact` is True for the former.
"""

from __future__ import annotations

import ctypes
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Meter", "Usage", "available_memory_mb", "release_memory"]

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Usage:
    """What a stretch of work cost."""

    seconds: float
    peak_memory_mb: float
    exact: bool
    peak_gpu_mb: float | None = None


class Meter:
    """Measures from when it is made."""

    def __init__(self) -> None:
        self._exact = _reset_peak()
        gpu = _gpu()
        if gpu is not None:
            gpu.reset_peak_memory_stats()
        self._start = time.perf_counter()

    def read(self) -> Usage:
        """Seconds and peak memory since the start."""
        gpu = _gpu()
        peak_gpu = None if gpu is None else gpu.max_memory_allocated() / (1024 * 1024)
        return Usage(time.perf_counter() - self._start, _peak_mb(), self._exact, peak_gpu)


def release_memory() -> None:
    """Release memory that libraries keep for later: the next stage has other sizes, and others may use the machine.

    On a GPU that is what PyTorch keeps, and memory of the machine that is pinned for copies; on the machine what the C
    library keeps of freed arrays, some 100 MB after a stage of 15,000 entities a side, more with many threads.
    """
    _release_gpu_memory()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:  # of glibc; others release memory by themselves
        trim(0)


def _release_gpu_memory() -> None:
    gpu = _gpu()
    if gpu is None:
        return
    gpu.empty_cache()
    torch = sys.modules["torch"]
    for name in ("_accelerator_emptyHostCache", "_host_emptyCache"):  # by the version of PyTorch
        if torch.cuda.is_available() and hasattr(torch._C, name):
            getattr(torch._C, name)()
            break


def available_memory_mb() -> float | None:
    """Memory of this machine that is free for use, or None where it is unknown."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) / 1024
    except OSError:
        return None
    return None


def _gpu() -> Any | None:
    """PyTorch's CUDA module if this process uses a GPU; this never loads PyTorch."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None


def _reset_peak() -> bool:
    try:
        _CLEAR.write_text("5")
    except OSError:
        return False
    return True


def _peak_mb() -> float:
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)
