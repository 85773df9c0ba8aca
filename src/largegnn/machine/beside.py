"""Work beside other work: for long stretches that one processor does alone, where there are several.

In: what is to be done. Out: a function that waits for it. Where processors are few, nothing is gained by doing two
things at once, and the memory of both would be held: then it is done when it is asked for.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from largegnn.machine.devices import num_processors

__all__ = ["beside"]

_MANY = 8  # processors

_Result = TypeVar("_Result")


def beside(work: Callable[[], _Result]) -> Callable[[], _Result]:
    """Start `work`, or leave it for later: what is returned gives its result, or raises what it raised, once."""
    if num_processors() < _MANY:
        return work
    thread = ThreadPoolExecutor(1)
    started = thread.submit(contextvars.copy_context().run, work)
    thread.shutdown(wait=False)
    return started.result
