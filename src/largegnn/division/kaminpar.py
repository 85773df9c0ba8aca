"""Divide a graph with KaMinPar; no other module imports the `kaminpar` wheel.

In: a `MergedGraph`. Out: the part of each node, or a `Partition` of the entities.
The idea: as METIS, KaMinPar minimises the weight of edges between parts of about equally many entities. It clusters by
label propagation, which suits graphs with hubs, and can use many threads. The wheel can only read graphs from files, so
the graph is written in ParHIP's binary format, to shared memory if there is enough, and the file is removed after
reading.
Cost: about linear in the edges. The file has 16 bytes for each edge end and each node.
With one thread, the same seed gives the same parts; with several threads, the parts differ a little from run to run.

# Departs: the paper divides with METIS, which `lab/configs` names.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from largegnn.artifacts import IntArray, MergedGraph, Partition
from largegnn.division.metis import check_num_parts, without_empty_parts
from largegnn.errors import StorageError

__all__ = ["Effort", "is_installed", "merged_kaminpar", "partition_graph"]

Effort = Literal["fast", "default", "eco", "strong"]  # KaMinPar's own names, from quick to thorough

_SHARED_MEMORY = Path("/dev/shm")
_IMBALANCE = 0.03  # the default of METIS
_WORD = 8
_CHUNK = 1 << 20


def is_installed() -> bool:
    """Whether KaMinPar's wheel can be imported; some platforms have none."""
    return importlib.util.find_spec("kaminpar") is not None


def merged_kaminpar(
    graph: MergedGraph, num_parts: int, seed: int, *, effort: Effort = "default", num_threads: int = 1
) -> Partition:
    """Divide the entities by dividing the nodes of the merged graph."""
    part_of_node = partition_graph(graph, num_parts, seed, effort=effort, num_threads=num_threads)
    return Partition.from_labels(part_of_node[graph.node_of_entity], num_parts)


def partition_graph(
    graph: MergedGraph, num_parts: int, seed: int, *, effort: Effort = "default", num_threads: int = 1
) -> IntArray:
    """Compute the part of each node, (num_nodes,) int32; no part is empty."""
    import kaminpar

    check_num_parts(num_parts, graph.num_nodes)
    if num_parts == 1:
        return np.zeros(graph.num_nodes, dtype=np.int32)
    loaded = _load_graph(kaminpar, graph)
    kaminpar.reseed(seed % (2**31 - 1))
    solver = kaminpar.KaMinPar(num_threads, kaminpar.context_by_name(effort))
    part_of_node = np.fromiter(
        solver.compute_partition(loaded, num_parts, _IMBALANCE), dtype=np.int32, count=graph.num_nodes
    )
    return without_empty_parts(part_of_node, num_parts)


def _load_graph(kaminpar: Any, graph: MergedGraph) -> Any:
    """Convert the graph to KaMinPar's own type by way of a temporary file."""
    size = _WORD * (4 + 2 * graph.num_nodes + 2 * len(graph.neighbors))
    with tempfile.NamedTemporaryFile(dir=_choose_folder(size), prefix="largegnn-", suffix=".parhip") as file:
        try:
            _write_parhip(file, graph)
            file.flush()
        except OSError as error:
            raise StorageError(
                f"the graph cannot be passed to KaMinPar: {error.strerror or error} ({file.name}, {size:,} bytes); "
                "name a folder with more space in TMPDIR, or set division.partitioner=metis"
            ) from None
        return kaminpar.load_graph(file.name, kaminpar.GraphFileFormat.PARHIP)


def _write_parhip(file: IO[bytes], graph: MergedGraph) -> None:
    """Write header, byte offsets, neighbours, node weights and edge weights, all as words of eight bytes."""
    num_nodes, num_slots = graph.num_nodes, len(graph.neighbors)
    first = _WORD * (3 + num_nodes + 1)
    # The first word is a set of flags; zero means words of 64 bits, node weights and edge weights.
    file.write(np.array([0, num_nodes, num_slots], dtype=np.uint64).tobytes())
    _write_words(file, graph.neighbor_ptr, scale=_WORD, shift=first)
    _write_words(file, graph.neighbors)
    _write_words(file, graph.node_weights)
    _write_words(file, graph.edge_weights)


def _write_words(file: IO[bytes], values: IntArray, scale: int = 1, shift: int = 0) -> None:
    """Append `values * scale + shift` as 64-bit integers, a chunk at a time."""
    for start in range(0, len(values), _CHUNK):
        words = values[start : start + _CHUNK].astype(np.int64)
        file.write((words * scale + shift).tobytes())


def _choose_folder(size: int) -> str:
    """Choose the folder of a temporary file of `size` bytes: shared memory if it fits twice, else the default."""
    # Containers often have only 64 MB of shared memory.
    is_writable = _SHARED_MEMORY.is_dir() and os.access(_SHARED_MEMORY, os.W_OK)
    if is_writable and shutil.disk_usage(_SHARED_MEMORY).free > 2 * size:
        return str(_SHARED_MEMORY)
    return tempfile.gettempdir()
