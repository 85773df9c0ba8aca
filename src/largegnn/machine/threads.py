"""Threads that behave beside other programs: they wait for each other asleep, not spinning.

The threads of a parallel loop meet at its end. OpenMP lets those that come early spin for some milliseconds, which
saves a wake-up on a quiet machine. On a busy one the thread that all wait for has been put aside by the system, and the
others burn the time it would need: seven times the seconds of a short spin, on two cores with nine processes waiting
for them. A short spin costs nothing on a quiet machine and little on a busy one.
The libraries read these settings when they are loaded, so this comes before PyTorch, Faiss and numba are imported.
What the user has set is left as it is.
"""

from __future__ import annotations

import os

__all__ = ["wait_asleep"]

_CHOSEN_BY_USER = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
# GCC's OpenMP spins so many times before it sleeps (300,000 by default), that of LLVM and Intel so many milliseconds
# (200 by default).
_SETTINGS = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "1"}


def wait_asleep() -> None:
    """Let threads that wait for others sleep soon, unless the environment says how they wait."""
    if not any(name in os.environ for name in _CHOSEN_BY_USER):
        os.environ.update(_SETTINGS)
