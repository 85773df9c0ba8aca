"""Compute pieces of work on the workers of a Ray cluster.

In: a function that every machine can import, the arguments of each piece, and the arguments that all pieces share. Out:
the results, in the order of the pieces. An array that is mapped from a file of the run folder is sent as a reference to
the file, which all machines can read; other shared values are sent to each machine once. A few pieces per worker are
submitted ahead, and Ray assigns the next piece to an idle worker. A piece whose machine is lost is computed again on
another machine.
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
_PIECES_PER_WORKER = 4  # submitted ahead, so that workers stay busy while a slow piece delays the ordered results
_MAX_RETRIES = 5


@dataclass(frozen=True)
class MappedArray:
    """A reference to an array in a file: path, offset in bytes, dtype and shape."""

    file: str
    offset: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _PackedFields:
    """A dataclass with some packed fields: its class, and all fields by name."""

    kind: type[Any]
    fields: dict[str, Any]


def pack(value: Any) -> Any:
    """Prepare a value for sending: arrays mapped from files, also in dataclasses, are replaced by `MappedArray`."""
    if isinstance(value, np.ndarray):
        return _reference(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type | MappedArray | _PackedFields):
        before = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        fields = {name: pack(field) for name, field in before.items()}
        return value if all(fields[name] is before[name] for name in fields) else _PackedFields(type(value), fields)
    return value


def unpack(value: Any) -> Any:
    """Restore a value that `pack` returned, and map its files."""
    if isinstance(value, MappedArray):
        return np.memmap(value.file, dtype=np.dtype(value.dtype), mode="r", offset=value.offset, shape=value.shape)
    if isinstance(value, _PackedFields):
        return value.kind(**{name: unpack(field) for name, field in value.fields.items()})
    return value


def _reference(array: Any) -> Any:
    """A `MappedArray` if a contiguous array is mapped from a file, otherwise the array itself."""
    mapped = file_behind(array) if array.size and array.flags.c_contiguous else None
    if mapped is None:
        return array
    start = array.__array_interface__["data"][0] - mapped.__array_interface__["data"][0]
    return MappedArray(str(mapped.filename), int(mapped.offset + start), array.dtype.str, array.shape)


class RayWorkers:
    """The processors or GPUs of a cluster as workers; `ray` is the connected module."""

    def __init__(self, ray: Any, settings: ClusterSettings, nodes: Sequence[Node], device: str) -> None:
        self.ray, self.settings, self.nodes = ray, settings, tuple(nodes)
        self._wants_gpus = device != "cpu"

    @property
    def device(self) -> str:
        """`cuda` if the settings allow it and the cluster has a GPU, otherwise `cpu`."""
        return "cuda" if self._wants_gpus and any(self._counts("GPU")) else "cpu"

    @property
    def num_workers(self) -> int:
        """Number of processors, or of GPUs, on all machines that are alive now."""
        return max(1, int(sum(self._counts("GPU" if self.device == "cuda" else "CPU"))))

    @property
    def num_nodes(self) -> int:
        """Number of machines that are alive now."""
        return len(self._counts("CPU"))

    @property
    def num_visitors(self) -> int:
        """Number of workers of the training: the setting `cluster.workers`, or with `auto` all workers."""
        setting = self.settings.workers
        return self.num_workers if setting == "auto" else setting

    def on_processors(self) -> RayWorkers:
        """Workers on the same machines, with one worker per processor and without GPUs."""
        return self if self.device == "cpu" else type(self)(self.ray, self.settings, self.nodes, "cpu")

    def resources(self, num_sharing: int | None = None) -> dict[str, int]:
        """The resources that Ray reserves for a worker; `num_sharing` workers share the processors evenly."""
        counts = [count for count in self._counts("CPU") if count >= 1]
        share = 1 if num_sharing is None or not counts else min(int(min(counts)), int(sum(counts)) // num_sharing)
        return {"num_cpus": max(1, share)} | ({"num_gpus": 1} if self.device == "cuda" else {})

    def map(
        self, function: Callable[..., _Result], pieces: Iterable[tuple[Any, ...]], shared: tuple[Any, ...]
    ) -> Iterator[_Result]:
        """Compute the results of all pieces, in order; if the caller stops early, remaining pieces are cancelled."""
        return self._compute(function, pieces, shared, self.resources(), lambda: _PIECES_PER_WORKER * self.num_workers)

    def visits(
        self, function: Callable[..., _Result], pieces: Iterable[tuple[Any, ...]], shared: tuple[Any, ...]
    ) -> Iterator[_Result]:
        """As `map`, but few pieces are submitted ahead, since a piece may depend on the results before it."""
        resources = self.resources(self.num_visitors)
        shared = (*shared, self.device, resources["num_cpus"])
        return self._compute(function, pieces, shared, resources, self._max_visits)

    def _max_visits(self) -> int:
        """Maximum number of visits under way: by the setting `cluster.staleness`, or with `auto` workers + 25 %.

        The surplus keeps workers busy while a slow visit delays the results, which are returned in order.
        """
        staleness = self.settings.staleness
        return self.num_visitors + self.num_visitors // 4 if staleness == "auto" else staleness + 1

    def _compute(
        self,
        function: Callable[..., _Result],
        pieces: Iterable[tuple[Any, ...]],
        shared: tuple[Any, ...],
        resources: dict[str, int],
        max_started: Callable[[], int],
    ) -> Iterator[_Result]:
        # Tasks have the name of the function, which a list of processes shows.
        options = {"max_retries": _MAX_RETRIES, "name": function.__name__, **resources}
        task = self.ray.remote(compute_piece).options(**options)
        handles = [self.ray.put(pack(value)) for value in shared]  # sent to each machine once
        waiting, started = iter(pieces), deque[Any]()
        try:
            while True:
                while len(started) < max_started() and (piece := next(waiting, None)) is not None:
                    started.append(task.remote(function, *map(pack, piece), *handles))
                if not started:
                    return
                yield self._result(started.popleft())
        finally:
            for pending in started:
                self.ray.cancel(pending, force=True)

    def _result(self, started: Any) -> Any:
        errors = self.ray.exceptions
        try:
            return self.ray.get(started)
        except errors.RayTaskError as error:
            raise error.cause from None
        except errors.RayError as error:
            raise StorageError(
                f"the cluster lost a piece of work {_MAX_RETRIES + 1} times ({type(error).__name__}); what was "
                "finished before is intact, check the nodes with `largegnn cluster check` and run again with --resume"
            ) from error

    def _counts(self, resource: str) -> list[float]:
        """The amount of a Ray resource on each machine that is alive."""
        return [float(entry["Resources"].get(resource, 0)) for entry in self.ray.nodes() if entry["Alive"]]


def compute_piece(function: Callable[..., _Result], *arguments: object) -> _Result:
    """Call `function` with packed arguments, on a worker; an error of disk or files gets the machine's name."""
    try:
        return function(*map(unpack, arguments))
    except (OSError, StorageError) as error:
        raise StorageError(_describe(error)) from None


def _describe(error: OSError | StorageError) -> str:
    """The message of an error with the name of this machine."""
    from ray.util import get_node_ip_address

    node = f"{platform.node()} ({get_node_ip_address()})"  # type: ignore[no-untyped-call]
    if isinstance(error, StorageError):  # its message has a fix
        return f"on the node {node}: {error}"
    where = "" if error.filename is None else f" {error.filename}"
    return (
        f"on the node {node}:{where} {error.strerror or error}; what was finished before is intact: free some space "
        "there or check it with `largegnn cluster check`, and run again with --resume"
    )
