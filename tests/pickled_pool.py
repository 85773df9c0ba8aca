"""Workers of a cluster as those see them who cut work into pieces, without any: what is sent is pickled and read."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

__all__ = ["PickledPool"]


class PickledPool:
    """Makes pieces here, the last of some first; counts how many of which kind. Shared arrays cannot be written to."""

    device = "cpu"

    def __init__(self, num_workers: int = 2) -> None:
        self.num_workers = num_workers
        self.made = Counter[str]()

    def on_processors(self) -> PickledPool:
        """It has no others."""
        return self

    def map(
        self, function: Callable[..., Any], pieces: Iterable[tuple[Any, ...]], shared: tuple[Any, ...]
    ) -> Iterator[Any]:
        """Results in the order of the pieces."""
        handles = [self.share(value) for value in shared]
        found = dict(self.run(function, ((*piece, *handles) for piece in pieces)))
        return (found[number] for number in range(len(found)))

    num_nodes = 1

    @property
    def num_visitors(self) -> int:
        """All train."""
        return self.num_workers

    def visits(
        self, function: Callable[..., Any], pieces: Iterable[tuple[Any, ...]], shared: tuple[Any, ...]
    ) -> Iterator[Any]:
        """As many at the same time as there are workers, each computed when its result is wanted."""
        started = deque[tuple[Any, ...]]()
        for piece in pieces:
            started.append(pickle.loads(pickle.dumps((*piece, *shared, self.device, 1))))
            if len(started) == self.num_workers:
                yield function(*started.popleft())
        while started:
            yield function(*started.popleft())

    def share(self, value: object) -> Any:
        """A copy, as another machine would have it."""
        return _Shared(pickle.dumps(value, protocol=5))

    def run(self, function: Callable[..., Any], pieces: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        """Results in another order than that of the pieces."""
        numbered = enumerate(pieces)
        while some := list(itertools.islice(numbered, 2 * self.num_workers)):
            for number, arguments in reversed(some):
                self.made[function.__name__] += 1
                sent = [pickle.loads(pickle.dumps(argument)) for argument in arguments]
                yield number, function(*(_locked(_open(each)) for each in sent))


class _Shared:
    def __init__(self, data: bytes) -> None:
        self.data = data


def _open(value: Any) -> Any:
    return pickle.loads(value.data) if isinstance(value, _Shared) else value


def _locked(value: Any) -> Any:
    """Arrays that came from another machine are read-only."""
    for array in value if isinstance(value, tuple) else (value,):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return value
