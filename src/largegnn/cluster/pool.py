"""Pieces of work on a Ray cluster: as many under way as there are processors, and some more, the rest waits here.

In: a function that every machine can import, the arguments of each piece. Out: results as they come.
The idea: whoever is free takes the next piece, so a slow machine gets fewer. A piece whose machine is lost is made
again elsewhere. Arguments are made when their piece is next, so that those of a few pieces are in memory, not of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from largegnn.cluster.mapped import parcel
from largegnn.cluster.nodes import Node
from largegnn.cluster.piece import make_piece
from largegnn.errors import StorageError
from largegnn.settings import ClusterSettings

__all__ = ["RayPool"]

_Result = TypeVar("_Result")
_AHEAD = 2  # pieces for each worker: one under way, one to go on with
_RETRIES = 5


class RayPool:
    """The processors of a cluster; `ray` is the connected module."""

    def __init__(self, ray: Any, cluster: ClusterSettings, nodes: Sequence[Node], device: str) -> None:
        self.ray, self.cluster, self.nodes = ray, cluster, tuple(nodes)
        self._wants_gpus = device != "cpu"

    @property
    def device(self) -> str:
        """A GPU where the settings allow it and the cluster has any."""
        return "cuda" if self._wants_gpus and self._count("GPU") else "cpu"

    @property
    def num_workers(self) -> int:
        """Processors of all machines that are there now, or GPUs."""
        return max(1, int(self._count("GPU" if self.device == "cuda" else "CPU")))

    @property
    def num_visitors(self) -> int:
        """Workers of the training: as many as the settings say, or as can work at the same time."""
        asked = self.cluster.workers
        return self.num_workers if asked == "auto" else asked

    def on_processors(self) -> RayPool:
        """The same machines, a worker for each processor."""
        return self if self.device == "cpu" else type(self)(self.ray, self.cluster, self.nodes, "cpu")

    def resources(self, num_sharing: int | None = None) -> dict[str, int]:
        """What a worker asks Ray for; processors are shared out where there are more than workers."""
        counts = [count for count in self._counts("CPU") if count >= 1]
        share = 1 if num_sharing is None or not counts else min(int(min(counts)), int(sum(counts)) // num_sharing)
        return {"num_cpus": max(1, share)} | ({"num_gpus": 1} if self.device == "cuda" else {})

    def share(self, value: object) -> Any:
        """A reference; each machine that works on a piece with it fetches the value once, or maps it from its file."""
        return self.ray.put(parcel(value))

    def run(self, function: Callable[..., _Result], pieces: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, _Result]]:
        """The number of each piece and its result, in the order they are done."""
        # Named after the function: that is what a list of processes shows.
        how = {"max_retries": _RETRIES, "name": function.__name__, **self.resources()}
        task = self.ray.remote(make_piece).options(**how)
        waiting: dict[Any, int] = {}
        numbered = enumerate(pieces)
        try:
            while True:
                while len(waiting) < _AHEAD * self.num_workers and (following := next(numbered, None)) is not None:
                    waiting[task.remote(function, *following[1])] = following[0]
                if not waiting:
                    return
                for done in self.ray.wait(list(waiting), num_returns=1)[0]:
                    yield waiting.pop(done), self._result(done)
        finally:
            for left in waiting:
                self.ray.cancel(left, force=True)

    def _result(self, done: Any) -> Any:
        errors = self.ray.exceptions
        try:
            return self.ray.get(done)
        except errors.RayTaskError as error:
            raise error.cause from None
        except errors.RayError as error:
            raise StorageError(
                f"the cluster lost a piece of work {_RETRIES + 1} times ({type(error).__name__}); what was finished "
                "before is intact, look at the nodes with `largegnn cluster check` and run again with --resume"
            ) from error

    def _count(self, resource: str) -> float:
        return sum(self._counts(resource))

    def _counts(self, resource: str) -> list[float]:
        """How many each machine has."""
        return [float(entry["Resources"].get(resource, 0)) for entry in self.ray.nodes() if entry["Alive"]]
