"""Measure the seconds and the peak memory of a stage, on the machine and on the GPU, and release unused memory.

On Linux the kernel's peak of resident memory (VmHWM) is reset at the start, so that the peak is that of the stage alone
(`exact` is True). On other systems it is the peak since the process began, an upper bound.
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
    """The time and peak memory of a stage."""

    seconds: float
    peak_memory_mb: float
    exact: bool
    peak_gpu_mb: float | None = None


class Meter:
    """Measures time and peak memory from its creation."""

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
    """Release memory that libraries keep for reuse: the next stage needs other sizes, and other programs need memory.

    PyTorch keeps freed GPU memory, and memory of the machine that is pinned for copies. The C library keeps freed
    arrays, some 100 MB after a stage with 15,000 entities on each side, and more with many threads.
    """
    _release_gpu_memory()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:  # a function of glibc; other C libraries release memory by themselves
        trim(0)


def _release_gpu_memory() -> None:
    gpu = _gpu()
    if gpu is None:
        return
    gpu.empty_cache()
    torch = sys.modules["torch"]
    for name in ("_accelerator_emptyHostCache", "_host_emptyCache"):  # the name depends on the version of PyTorch
        if torch.cuda.is_available() and hasattr(torch._C, name):
            getattr(torch._C, name)()
            break


def available_memory_mb() -> float | None:
    """The memory of this machine that is available for use; None if it is unknown."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) / 1024
    except OSError:
        return None
    return None


def _gpu() -> Any | None:
    """The module `torch.cuda` if this process uses a GPU; PyTorch is never imported for this."""
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
