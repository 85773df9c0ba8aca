"""Rows of a layer in files that several machines see, one file for each range of nodes; and the structure of a graph.

In: rows made for a range of nodes. Out: the rows of any nodes, mapped from the files. The idea: every file is written
by one process, beside its place and then renamed, and read by others only after that: no two machines ever write into
one page of a file, and a range that is made twice, as its first worker was lost, is simply there once.
Cost: 4 d bytes a node on disk for each layer, 120 bytes a triple for the structure.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from largegnn.artifacts import FloatArray, IntArray
from largegnn.embedding.structure import GraphStructure
from largegnn.machine.atomic import ByteSink, write_files
from largegnn.machine.read_only import read_only_tensor

__all__ = ["FREE_SPACE", "LayerFiles", "LayerRows", "StructureFiles"]

FREE_SPACE = "free some space and run again with --resume"


@dataclass(frozen=True, eq=False)
class LayerFiles:
    """Rows of `width` numbers in files: those from `bounds[i]` to `bounds[i + 1]` are in file i of `folder`."""

    folder: str
    bounds: IntArray
    width: int

    def path(self, number: int) -> Path:
        """The file of a range."""
        return Path(self.folder) / f"{number:05d}.f32"

    def write(self, number: int, chunks: Iterable[FloatArray]) -> None:
        """Write the rows of a range, which come a chunk at a time."""

        def fill(sink: ByteSink) -> None:
            for rows in chunks:
                sink.write(np.ascontiguousarray(rows, dtype=np.float32).data)

        write_files({self.path(number): fill}, fix=FREE_SPACE)

    def read(self, number: int) -> FloatArray:
        """All rows of a range, in memory."""
        return np.fromfile(self.path(number), dtype=np.float32).reshape(-1, self.width)

    def remove(self) -> None:
        """Give the space back."""
        shutil.rmtree(self.folder, ignore_errors=True)


class LayerRows:
    """Reads rows from files, which are mapped when they are first asked for."""

    def __init__(self, files: LayerFiles) -> None:
        self._files = files
        self._maps: dict[int, FloatArray] = {}

    def take(self, ids: IntArray) -> FloatArray:
        """The rows (k, width) of ids (k,), which are ascending."""
        bounds = self._files.bounds
        rows = np.empty((len(ids), self._files.width), dtype=np.float32)
        cuts = np.searchsorted(ids, bounds)
        for number in np.flatnonzero(np.diff(cuts)).tolist():
            here = slice(cuts[number], cuts[number + 1])
            rows[here] = self._map(number)[ids[here] - bounds[number]]
        return rows

    def part(self, start: int, stop: int) -> FloatArray:
        """The rows of a range of ids."""
        bounds = self._files.bounds
        first, last = np.searchsorted(bounds, start, side="right") - 1, np.searchsorted(bounds, stop)
        parts = [
            self._map(number)[max(start - bounds[number], 0) : stop - bounds[number]] for number in range(first, last)
        ]
        return np.concatenate([np.empty((0, self._files.width), dtype=np.float32), *parts])

    def _map(self, number: int) -> FloatArray:
        if number not in self._maps:
            shape = (int(self._files.bounds[number + 1] - self._files.bounds[number]), self._files.width)
            is_empty = not shape[0]  # there is no map of an empty file
            mapped = None if is_empty else np.memmap(self._files.path(number), np.float32, "r", shape=shape)
            self._maps[number] = np.empty(shape, dtype=np.float32) if mapped is None else mapped
        return self._maps[number]


@dataclass(frozen=True)
class StructureFiles:
    """A `GraphStructure` in files of a folder, one for each of its tensors, whose lengths are known."""

    folder: str
    num_nodes: int
    num_relations: int
    lengths: tuple[tuple[str, int], ...]

    @staticmethod
    def write(structure: GraphStructure, folder: Path) -> StructureFiles:
        """Write a structure that is in main memory."""
        tensors = {field.name: getattr(structure, field.name) for field in fields(structure)}
        arrays = {name: value.numpy() for name, value in tensors.items() if torch.is_tensor(value)}
        for name, array in arrays.items():
            write_files({folder / f"{name}.i32": partial(_put, array)}, fix=FREE_SPACE)
        lengths = tuple((name, len(array)) for name, array in arrays.items())
        return StructureFiles(str(folder), structure.num_nodes, structure.num_relations, lengths)

    def open(self) -> GraphStructure:
        """The structure, mapped: what nobody looks at takes no memory."""
        tensors = {name: self._map(name, length) for name, length in self.lengths}
        return GraphStructure(num_nodes=self.num_nodes, num_relations=self.num_relations, **tensors)

    def _map(self, name: str, length: int) -> Tensor:
        if not length:  # there is no map of an empty file
            return torch.empty(0, dtype=torch.int32)
        return read_only_tensor(np.memmap(Path(self.folder) / f"{name}.i32", np.int32, "r", shape=(length,)))


def _put(array: IntArray, sink: ByteSink) -> None:
    sink.write(array.data)
