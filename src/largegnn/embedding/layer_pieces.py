"""An encoder's layers over a graph by the workers of a cluster: ranges of nodes, layer by layer (section 5).

In: a pool of workers, the structure of the graph, a folder that all machines see. Out: each layer as `LayerFiles`, and
the unit vectors in an array of the caller's. The result is that of `layerwise`, to the bit on the same processors.
The idea: a layer reads the rows of the layer before, which lie in files; each worker maps what it needs and writes its
own range. What is sent with a piece is where things lie. The chunks of nodes are those of one machine, a piece is a run
of them; a worker that is lost costs its piece.
Cost: that of `layerwise` shared out, and the structure and each layer written once. Disk: 48 d bytes a node besides
the result, and the structure.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from torch import Tensor, nn

from largegnn.artifacts import FloatArray, IntArray
from largegnn.embedding.layer_files import LayerFiles, StructureFiles
from largegnn.embedding.layer_work import along_piece, neighborhood_piece, output_piece, reflected_piece, relation_piece
from largegnn.embedding.layerwise import Finish, node_chunks, row_chunks
from largegnn.embedding.structure import GraphStructure
from largegnn.machine.progress import progress
from largegnn.machine.worker_pool import WorkerPool

__all__ = ["LayerPieces", "PiecewiseEncoder"]

_PIECES = 4  # of a layer for each worker: enough that nobody waits long for the last one
_MOST_FILES = 1024  # of a layer: every worker opens most of them


class LayerPieces:
    """Makes layers on the workers of a pool; `folder` is emptied first and goes with `close`."""

    def __init__(self, pool: WorkerPool, structure: GraphStructure, folder: Path, chunk_bytes: int) -> None:
        shutil.rmtree(folder, ignore_errors=True)  # what a killed run left is of no known state
        # The whole path: workers were started elsewhere.
        self._pool, self._folder, self._chunk_bytes = pool, folder.resolve(), chunk_bytes
        self._files = StructureFiles.write(structure, self._folder / "structure")
        self.structure = self._files.open()

    def close(self) -> None:
        """Give the space back."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def neighborhood_means(self, rows: LayerFiles | FloatArray, name: str, finish: Finish) -> LayerFiles:
        """Mean of the rows (n, d) of each node and its neighbours, finished."""
        width = rows.width if isinstance(rows, LayerFiles) else rows.shape[1]
        chunks = node_chunks(self.structure.pair_ptr.numpy(), 4 * width, self._chunk_bytes)
        return self._make(name, width, chunks, neighborhood_piece, self._shared(rows), self._files, finish)

    def relation_means(self, relation_rows: Tensor, name: str, finish: Finish) -> LayerFiles:
        """Mean of the distinct relation rows (2R, d) at each node, finished."""
        width = relation_rows.shape[1]
        chunks = node_chunks(self.structure.incidence_ptr.numpy(), 4 * width, self._chunk_bytes)
        shared = self._shared(relation_rows.cpu().numpy())
        return self._make(name, width, chunks, relation_piece, shared, self._files, finish)

    def reflected_sums(
        self, rows: LayerFiles, relations: Tensor, logits: Tensor, name: str, finish: Finish
    ) -> LayerFiles:
        """What `propagation.reflected_sum` gives for rows (n, d), finished."""
        slot_ptr = self.structure.slot_ptr.numpy()
        vectors = self._shared(relations.cpu().numpy())
        chunks = node_chunks(slot_ptr, 4 * rows.width, self._chunk_bytes)
        along = self._make(f"{name}-along", 1, chunks, along_piece, rows, vectors, self._files, ptr=slot_ptr)
        chunks = node_chunks(self.structure.pair_ptr.numpy(), 4 * rows.width, self._chunk_bytes)
        how = (rows, vectors, logits.cpu().numpy(), along, self._files, finish)
        made = self._make(name, rows.width, chunks, reflected_piece, *how)
        along.remove()
        return made

    def write_outputs(self, layers: Sequence[LayerFiles], mixer: nn.Module, outputs: FloatArray) -> None:
        """Unit vectors of what `mixer` makes of all layers, into `outputs` (n, D)."""
        # As wide as the rows that one machine mixes at once, half of all layers each.
        width = sum(files.width for files in layers) // 2

        def take(files: LayerFiles, number: int) -> None:
            outputs[files.bounds[number] : files.bounds[number + 1]] = files.read(number)
            files.path(number).unlink()

        chunks = row_chunks(self.structure.num_nodes, width, self._chunk_bytes)
        self._make("outputs", outputs.shape[1], chunks, output_piece, tuple(layers), mixer, take=take)

    def _shared(self, rows: LayerFiles | FloatArray) -> Any:
        """Rows in memory or in a file of the run go to each machine once; those of a layer need not."""
        if isinstance(rows, LayerFiles) or rows.flags.c_contiguous:
            return rows if isinstance(rows, LayerFiles) else self._pool.share(rows)
        # A member of an ensemble: its rows lie apart, and would be sent.
        files = LayerFiles(str(self._folder / "input"), np.array([0, len(rows)]), rows.shape[1])
        files.write(0, (rows[part] for part in row_chunks(len(rows), rows.shape[1], self._chunk_bytes)))
        return files

    def _make(
        self,
        name: str,
        width: int,
        chunks: Iterable[slice],
        work: Callable[..., int],
        *how: Any,
        ptr: IntArray | None = None,
        take: Callable[[LayerFiles, int], None] = lambda files, number: None,
    ) -> LayerFiles:
        """Have the workers make the rows of all chunks; with `ptr` (n + 1) those of the entries of each node.

        `take` is called with each file that is finished.
        """
        every = [(nodes.start, nodes.stop) for nodes in chunks]
        most = min(_PIECES * self._pool.num_workers, _MOST_FILES)
        size = max(1, -(-len(every) // most))
        pieces = [every[first : first + size] for first in range(0, len(every), size)]
        bounds = np.array([0, *(piece[-1][1] for piece in pieces)], dtype=np.int64)
        files = LayerFiles(str(self._folder / name), bounds if ptr is None else ptr[bounds].astype(np.int64), width)
        arguments = ((*how, self._pool.device, files, number, piece) for number, piece in enumerate(pieces))
        with progress(name.replace("-", " "), int(bounds[-1]), "nodes") as done:
            for number, count in self._pool.run(work, arguments):
                take(files, number)
                done.advance(count)
        return files


@runtime_checkable
class PiecewiseEncoder(Protocol):
    """An encoder whose layers the workers of a cluster can make; any other encodes on one machine."""

    def encode_in_pieces(
        self, entity_rows: FloatArray, relation_rows: Tensor, pieces: LayerPieces, outputs: FloatArray
    ) -> None:
        """Write the unit vectors of all nodes into `outputs` (n, output_dim)."""
        ...
