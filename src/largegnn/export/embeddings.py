"""Write the vectors of all entities as one array, with a list of the entities.

In: embeddings and names. Out: a safetensors or .npy file of all n rows, and `entities.tsv` in the same folder with the
columns id, side, name and covered; line i (after the header) describes row i. An entity that no subgraph covers has no
vector: its row is zeros, `covered` is false, and the log holds the number of such rows. The safetensors file holds
`vectors` (n, d) and `covered` (n,). Names are written as in `largegnn.export.tabular`.
Cost: vectors are written some megabytes at a time, so a memory-mapped file is never in memory as a whole.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from largegnn.artifacts import EntityEmbeddings, TaskNames
from largegnn.data.vocabulary import name_column
from largegnn.errors import ArtifactError, InputError
from largegnn.export.tabular import plain_names, write_tsv_rows
from largegnn.machine.atomic import ByteSink, write_files

__all__ = ["EMBEDDING_FORMS", "ENTITY_LIST", "EmbeddingForm", "export_embeddings"]

ENTITY_LIST = "entities.tsv"
_CHUNK_BYTES = 1 << 24
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EmbeddingForm:
    """A form in which vectors can be written: the default name of the file, and the function that writes it."""

    file_name: str
    write: Callable[[EntityEmbeddings, int, ByteSink], None]


def export_embeddings(
    embeddings: EntityEmbeddings, names: TaskNames, num_source_entities: int, path: Path, form: str
) -> int:
    """Write the vectors to `path` in a form of `EMBEDDING_FORMS`, with the entity list; returns the number of rows."""
    if form not in EMBEDDING_FORMS:
        raise InputError(
            f"no form of embeddings is called {form!r}", expected=f"one of {', '.join(EMBEDDING_FORMS)}", found=form
        )
    num_entities = len(embeddings.vectors)
    if len(names.entities) != num_entities or not 0 <= num_source_entities <= num_entities:
        raise ArtifactError(
            f"{num_entities} vectors do not fit {len(names.entities)} names, {num_source_entities} of the source"
        )
    if path.name == ENTITY_LIST:
        raise InputError("the vectors would overwrite their entity list", found=path.name, fix="choose another name")
    num_uncovered = num_entities - int(embeddings.covered.sum())
    if num_uncovered:
        counts = f"{num_uncovered:,} of {num_entities:,}"
        _log.warning("%s entities have no vector: their rows are zeros, and %s marks them", counts, ENTITY_LIST)
    entities = _entity_list(embeddings, names, num_source_entities)
    write_files(
        {
            path.parent / ENTITY_LIST: lambda sink: write_tsv_rows(entities, sink),
            path: lambda sink: EMBEDDING_FORMS[form].write(embeddings, num_source_entities, sink),
        }
    )
    return num_entities


def _entity_list(embeddings: EntityEmbeddings, names: TaskNames, num_source_entities: int) -> pl.DataFrame:
    ids = pl.int_range(len(embeddings.vectors), eager=True)
    return pl.DataFrame({"id": ids}).select(
        pl.col("id"),
        pl.when(pl.col("id") < num_source_entities).then(pl.lit("source")).otherwise(pl.lit("target")).alias("side"),
        plain_names(name_column(names.entities)).alias("name"),
        pl.Series("covered", embeddings.covered, dtype=pl.Boolean),
    )


def _write_npy(embeddings: EntityEmbeddings, num_source_entities: int, sink: ByteSink) -> None:
    header: dict[str, Any] = {"descr": "<f4", "fortran_order": False, "shape": embeddings.vectors.shape}
    np.lib.format.write_array_header_1_0(sink, header)
    for chunk in _chunks(embeddings):
        sink.write(chunk.data)


def _write_safetensors(embeddings: EntityEmbeddings, num_source_entities: int, sink: ByteSink) -> None:
    """Write the format by hand (length, JSON header, bytes): the library would need all vectors in memory."""
    shape = embeddings.vectors.shape
    num_bytes = 4 * shape[0] * shape[1]
    header = {
        "__metadata__": {"entities": ENTITY_LIST, "num_source_entities": str(num_source_entities)},
        "vectors": {"dtype": "F32", "shape": list(shape), "data_offsets": [0, num_bytes]},
        "covered": {"dtype": "BOOL", "shape": [shape[0]], "data_offsets": [num_bytes, num_bytes + shape[0]]},
    }
    text = json.dumps(header).encode("utf-8")
    text += b" " * (-len(text) % 8)
    sink.write(len(text).to_bytes(8, "little") + text)
    for chunk in _chunks(embeddings):
        sink.write(chunk.data)
    sink.write(embeddings.covered.astype(np.uint8).data)


def _chunks(embeddings: EntityEmbeddings) -> Iterator[npt.NDArray[np.float32]]:
    """Give the rows some megabytes at a time, little-endian, with zeros for entities without a vector."""
    vectors, covered = embeddings.vectors, embeddings.covered
    if not vectors.size:
        return
    rows_per_chunk = max(1, _CHUNK_BYTES // (4 * vectors.shape[1]))
    for first in range(0, len(vectors), rows_per_chunk):
        chunk = vectors[first : first + rows_per_chunk].astype("<f4")
        chunk[~covered[first : first + rows_per_chunk]] = 0
        yield chunk


EMBEDDING_FORMS = {
    "embeddings-safetensors": EmbeddingForm("embeddings.safetensors", _write_safetensors),
    "embeddings-npy": EmbeddingForm("embeddings.npy", _write_npy),
}
