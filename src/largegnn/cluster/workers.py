"""Compute pieces of work by the workers of a Ray cluster.

In: a function that every machine can import, the arguments of each piece, and those that all pieces share. Out: the
results, in the order of the pieces. An array that is mapped from a file of the run folder is sent as the name of the
file, which all machines see; other shared values are sent to each machine once. A few pieces for each worker are under
way, and Ray gives the next one to an idle worker. A piece whose machine is lost is computed again by another.
"""

from __future__ import annotations

import dataclasses
import platform
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from largegnn.cluster.nodes import Node
from largegnn.errors import StorageError
from largegnn.machine.mapped_file import file_behind
from largegnn.settings import ClusterSettings

__all__ = ["MappedArray", "RayWorkers", "compute_piece", "pack", "unpack"]

_Result = TypeVar("_Result")
_PIECES_EACH = 4  # under way: one being computed, and some that bridge a slow one, as results are given in order
_RETRIES = 5


@dataclass(frozen=True)
class MappedArray:
    """Where an array lies: a file, the byte it begins at, its dtype and shape."""

    file: str
    offset: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _PackedFields:
    """A dataclass of which some fields are packed."""

    kind: type[Any]
    fields: dict[str, Any]


def pack(value: Any) -> Any:
    """A value as it is sent: arrays that are mapped from files, also those of a dataclass, as `MappedArray`."""
    if isinstance(value, np.ndarray):
        return _named(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type | MappedArray | _PackedFields):
        before = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        fields = {name: pack(field) for name, field in before.items()}
        return value if all(fields[name] is before[name] for name in fields) else _PackedFields(type(value), fields)
    return value


def unpack(value: Any) -> Any:
    """What was given to `pack`, with its files mapped."""
    if isinstance(value, MappedArray):
        return np.memmap(value.file, dtype=np.dtype(value.dtype), mode="r", offset=value.offset, shape=value.shape)
    if isinstance(value, _PackedFields):
        return value.kind(**{name: unpack(field) for name, field in value.fields.items()})
    return value


def _named(array: Any) -> Any:
    whole = file_behind(array) if array.size and array.flags.c_contiguous else None
    if whole is None:
        return array
    start = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return MappedArray(str(whole.filename), int(whole.offset + start), array.dtype.str, array.shape)


class RayWorkers:
    """The processors or GPUs of a cluster; `ray` is the connected module."""

    def __init__(self, ray: Any, settings: ClusterSettings, nodes: Sequence[Node], device: str) -> None:
        self.ray, self.settings, self.nodes = ray, settings, tuple(nodes)
        self._wants_gpus = device != "cpu"

    @property
    def device(self) -> str:
        """Cuda where the settings allow it and the cluster has a GPU, else cpu."""
        return "cuda" if self._wants_gpus and any(self._counts("GPU")) else "cpu"

    @property
    def num_workers(self) -> int:
        """Processors of all machines that are alive now, or GPUs."""
        return max(1, int(sum(self._counts("GPU" if self.device == "cuda" else "CPU"))))

    @property
    def num_nodes(self) -> int:
        """Machines that are alive now."""
        return len(self._counts("CPU"))

    @property
    def num_visitors(self) -> int:
        """Workers of the training: the number in the settings, or as many as can work at the same time."""
        wanted = self.settings.workers
        return self.num_workers if wanted == "auto" else wanted

    def on_processors(self) -> RayWorkers:
        """The same machines with one worker for each processor."""
        return self if self.device == "cpu" else type(self)(self.ray, self.settings, self.nodes, "cpu")

    def resources(self, num_sharing: int | None = None) -> dict[str, int]:
        """What Ray reserves for a worker; processors are divided among workers where there are more of them."""
        counts = [count for count in self._counts("CPU") if count >= 1]
        share = 1 if num_sharing is None or not counts else min(int(min(counts)), int(sum(counts)) // num_sharing)
        return {"num_cpus": max(1, share)} | ({"num_gpus": 1} if self.device == "cuda" else {})

    def map(
        self, function: Callable[..., _Result], pieces: Iterable[tuple[Any, ...]], shared: tuple[Any, ...]
    ) -> Iterator[_Result]:
        """The results for each piece, in their order; pieces that are not wanted any more are cancelled."""
        return self._compute(function, pieces, shared, self.resources(), lambda: _PIECES_EACH * self.num_workers)

    def visits(
        self, function: Callable[..., _Result], pieces: Iterable[tuple[Any, ...]], shared: tuple[Any, ...]
    ) -> Iterator[_Result]:
        """As `map`, but a piece may depend on the results that came before: few are under way at the same time."""
        resources = self.resources(self.num_visitors)
        shared = (*shared, self.device, resources["num_cpus"])
        return self._compute(function, pieces, shared, resources, self._most_visits)

    def _most_visits(self) -> int:
        """As many as the settings allow, or a quarter more than there are workers, to bridge a slow one."""
        bound = self.settings.staleness
        return self.num_visitors + self.num_visitors // 4 if bound == "auto" else bound + 1

    def _compute(
        self,
        function: Callable[..., _Result],
        pieces: Iterable[tuple[Any, ...]],
        shared: tuple[Any, ...],
        resources: dict[str, int],
        most: Callable[[], int],
    ) -> Iterator[_Result]:
        # Named after the function: that is what a list of processes shows.
        options = {"max_retries": _RETRIES, "name": function.__name__, **resources}
        task = self.ray.remote(compute_piece).options(**options)
        handles = [self.ray.put(pack(value)) for value in shared]  # to each machine once
        waiting, started = iter(pieces), deque[Any]()
        try:
            while True:
                while len(started) < most() and (piece := next(waiting, None)) is not None:
                    started.append(task.remote(function, *map(pack, piece), *handles))
                if not started:
                    return
                yield self._result(started.popleft())
        finally:
            for each in started:
                self.ray.cancel(each, force=True)

    def _result(self, started: Any) -> Any:
        errors = self.ray.exceptions
        try:
            return self.ray.get(started)
        except errors.RayTaskError as error:
            raise error.cause from None
        except errors.RayError as error:
            raise StorageError(
                f"the cluster lost a piece of work {_RETRIES + 1} times ({type(error).__name__}); what was finished "
                "before is intact, check the nodes with `largegnn cluster check` and run again with --resume"
            ) from error

    def _counts(self, resource: str) -> list[float]:
        """How many each machine has."""
        return [float(entry["Resources"].get(resource, 0)) for entry in self.ray.nodes() if entry["Alive"]]


def compute_piece(function: Callable[..., _Result], *arguments: object) -> _Result:
    """What `function` gives for packed arguments, in a worker; an error of its disk or files names the machine."""
    try:
        return function(*map(unpack, arguments))
    except (OSError, StorageError) as error:
        raise StorageError(_described(error)) from None


def _described(error: OSError | StorageError) -> str:
    from ray.util import get_node_ip_address

    node = f"{platform.node()} ({get_node_ip_address()})"  # type: ignore[no-untyped-call]
    if isinstance(error, StorageError):  # its message has a fix
        return f"on the node {node}: {error}"
    where = "" if error.filename is None else f" {error.filename}"
    return (
        f"on the node {node}:{where} {error.strerror or error}; what was finished before is intact: free some space "
        "there or check it with `largegnn cluster check`, and run again with --resume"
    )
