"""What a worker of a cluster does for a layer: the rows of a range of nodes, from files and into a file.

In: where structure and rows of the layer before lie, the chunks of nodes to make. Out: a file with their rows.
The idea: each chunk is made by the function that one machine makes it by (`layerwise`), of the same nodes, so that the
result is the same to the bit on the same kind of processor. Numbers of slots are made for the slots of a chunk alone.
Cost: as on one machine. Memory: one chunk, and what the system keeps of the mapped files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from largegnn.artifacts import FloatArray
from largegnn.embedding import layerwise
from largegnn.embedding.layer_files import LayerFiles, LayerRows, StructureFiles
from largegnn.embedding.propagation import slot_attention, slot_sums
from largegnn.embedding.structure import GraphStructure
from largegnn.machine.read_only import read_only_tensor

__all__ = ["along_piece", "neighborhood_piece", "output_piece", "reflected_piece", "relation_piece"]

Chunks = Sequence[tuple[int, int]]
InputRows = LayerFiles | FloatArray


class FileSource:
    """Rows that lie in files, fetched as needed."""

    def __init__(self, files: LayerFiles, device: torch.device) -> None:
        self._rows = LayerRows(files)
        self.device, self.row_bytes = device, 4 * files.width

    def take(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Rows that hold those of `ids` (k,), and where in them each is, both on the device."""
        distinct, indices = torch.unique(ids, return_inverse=True)
        fetched = torch.from_numpy(self._rows.take(distinct.numpy()))
        return fetched.to(self.device), indices.to(self.device, torch.int32)

    def part(self, nodes: slice) -> Tensor:
        """The rows of a range of nodes, on the device."""
        return torch.from_numpy(self._rows.part(nodes.start, nodes.stop)).to(self.device)


@torch.no_grad()
def neighborhood_piece(
    rows: InputRows,
    files: StructureFiles,
    finish: layerwise.Finish,
    device: str,
    out: LayerFiles,
    number: int,
    chunks: Chunks,
) -> int:
    """Means of the rows of nodes and their neighbours, finished; how many nodes, as from all pieces here."""
    source, structure = _source(rows, torch.device(device)), files.open()
    return _write(
        out, number, chunks, lambda nodes: finish(layerwise.neighborhood_means(source, structure, nodes), nodes)
    )


@torch.no_grad()
def relation_piece(
    relation_rows: FloatArray,
    files: StructureFiles,
    finish: layerwise.Finish,
    device: str,
    out: LayerFiles,
    number: int,
    chunks: Chunks,
) -> int:
    """Means of the relation rows (2R, d) at nodes, finished."""
    table, structure = read_only_tensor(relation_rows).to(device), files.open()
    return _write(out, number, chunks, lambda nodes: finish(layerwise.relation_means(table, structure, nodes), nodes))


@torch.no_grad()
def along_piece(
    rows: InputRows,
    relations: FloatArray,
    files: StructureFiles,
    device: str,
    out: LayerFiles,
    number: int,
    chunks: Chunks,
) -> int:
    """A number for each slot of these nodes: the product of row and the unit vector (S, d) of the set it sends by."""
    source, structure = _source(rows, torch.device(device)), files.open()
    vectors = read_only_tensor(relations).to(device)
    return _write(out, number, chunks, lambda nodes: layerwise.along_slots(source, vectors, structure, nodes))


@torch.no_grad()
def reflected_piece(
    rows: InputRows,
    relations: FloatArray,
    logits: FloatArray,
    along: LayerFiles,
    files: StructureFiles,
    finish: layerwise.Finish,
    device: str,
    out: LayerFiles,
    number: int,
    chunks: Chunks,
) -> int:
    """Sums of the neighbours' rows, reflected at `relations` (S, d) and weighted by `logits` (S,), finished."""
    source, structure = _source(rows, torch.device(device)), files.open()
    vectors, of_sets, products = read_only_tensor(relations).to(device), read_only_tensor(logits), LayerRows(along)

    def make(nodes: slice) -> Tensor:
        weights, received = _of_slots(structure, nodes, of_sets, products)
        pairs = slice(int(structure.pair_ptr[nodes.start]), int(structure.pair_ptr[nodes.stop]))
        first = int(structure.slot_ptr[nodes.start])
        of_pairs = weights.index_select(0, structure.slot_of_pair[pairs] - first)
        sums = layerwise.reflected_sums(source, vectors, structure, nodes, of_pairs, received.mul_(weights))
        return finish(sums, nodes)

    return _write(out, number, chunks, make)


@torch.no_grad()
def output_piece(
    layers: Sequence[LayerFiles], mixer: nn.Module, device: str, out: LayerFiles, number: int, chunks: Chunks
) -> int:
    """Unit vectors of nodes: what `mixer` makes of their rows in all layers."""
    sources = [FileSource(files, torch.device(device)) for files in layers]
    mixer = mixer.to(device)

    def make(nodes: slice) -> Tensor:
        vectors: Tensor = functional.normalize(mixer([source.part(nodes) for source in sources]), dim=1)
        return vectors

    return _write(out, number, chunks, make)


def _of_slots(structure: GraphStructure, nodes: slice, logits: Tensor, along: LayerRows) -> tuple[Tensor, Tensor]:
    """What a pair of each slot of these nodes weighs, and the sum over the slots of its pairs' reverses."""
    ptr, slots = layerwise.csr_slice(structure.slot_ptr, nodes, logits.device)
    pair_ptr = structure.slot_pair_ptr[slots.start : slots.stop + 1]
    pairs = slice(int(pair_ptr[0]), int(pair_ptr[-1]))
    pair_ptr = pair_ptr - pairs.start
    weights = slot_attention(
        logits, structure.slot_sets[slots], ptr, structure.slot_nodes[slots] - nodes.start, pair_ptr
    )
    distinct, indices = torch.unique(structure.slot_of_reverse[pairs], return_inverse=True)
    products = torch.from_numpy(along.take(distinct.numpy())[:, 0])
    return weights, slot_sums(pair_ptr, indices.to(torch.int32), products)


def _source(rows: InputRows, device: torch.device) -> layerwise.Source:
    if isinstance(rows, LayerFiles):
        return FileSource(rows, device)
    return layerwise.RowSource(read_only_tensor(rows), device, chunk_bytes=0)


def _write(out: LayerFiles, number: int, chunks: Chunks, make: Callable[[slice], Tensor]) -> int:
    def rows() -> Iterator[FloatArray]:
        for start, stop in chunks:
            yield np.asarray(make(slice(start, stop)).cpu().numpy())

    out.write(number, rows())
    return chunks[-1][1] - chunks[0][0]
