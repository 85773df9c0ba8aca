"""A batch in numbers: its names once each, and codes in their place.

In: a batch of names. Out: the same, several times smaller, to be joined with those of all other batches
(`vocabulary.code_batches`). A batch is coded by itself, so that it can be done wherever the batch was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from largegnn.artifacts import IntArray
from largegnn.data.batch import LiteralBatch, ReadCounts, TripleBatch

__all__ = ["CodedBatch", "CodedColumn", "CodedLiteralBatch", "lookup", "lookup_each"]

_BLOCK_ROWS = 100_000


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column of names: the distinct ones, and which of them each is."""

    names: pl.Series
    codes: IntArray

    @classmethod
    def of(cls, names: pl.Series) -> CodedColumn:
        """Code a column against its own names."""
        # One pass over the names, half the time of finding the distinct ones and joining with them.
        grouped = names.rename("name").to_frame().with_row_index("row").group_by("name").agg("row")
        codes = np.empty(len(names), dtype=np.int32)
        codes[grouped["row"].explode(empty_as_null=False).to_numpy()] = np.repeat(
            np.arange(len(grouped), dtype=np.int32), grouped["row"].list.len().to_numpy()
        )
        return cls(grouped["name"], codes)


@dataclass(frozen=True, eq=False)
class CodedLiteralBatch:
    """Literals: what repeats as codes, values as bytes end to end with their sizes."""

    columns: dict[str, CodedColumn]
    data: npt.NDArray[Any]
    sizes: IntArray

    @classmethod
    def of(cls, batch: LiteralBatch) -> CodedLiteralBatch:
        """Code a batch of literals."""
        columns = {
            name: CodedColumn.of(getattr(batch, name)) for name in ("heads", "predicates", "datatypes", "languages")
        }
        data = bytearray()
        for first in range(0, len(batch), _BLOCK_ROWS):
            data += batch.values[first : first + _BLOCK_ROWS].str.join("").item().encode("utf-8")
        sizes = batch.values.str.len_bytes().to_numpy().astype(np.int32)
        return cls(columns, np.frombuffer(data, dtype=np.uint8), sizes)


@dataclass(frozen=True, eq=False)
class CodedBatch:
    """Triples in codes: `ends` are the heads, then the tails.

    `literals` is None where they are not kept; `literal_heads` are the entities they belong to, and `listed` the
    entities that are there on their own account, each once, `num_listed` times in all.
    """

    ends: CodedColumn
    relations: CodedColumn
    literals: CodedLiteralBatch | None
    literal_heads: pl.Series
    num_literals: int
    listed: pl.Series
    num_listed: int
    counts: ReadCounts

    @classmethod
    def of(cls, batch: TripleBatch, keep_literals: bool) -> CodedBatch:
        """Code a batch."""
        keeps = keep_literals and len(batch.literals) > 0
        return cls(
            CodedColumn.of(pl.concat([batch.heads, batch.tails])),
            CodedColumn.of(batch.relations),
            CodedLiteralBatch.of(batch.literals) if keeps else None,
            batch.literals.heads.unique(),
            len(batch.literals),
            batch.entities.unique(),
            len(batch.entities),
            batch.counts,
        )


def lookup(names: pl.Series, among: pl.Series) -> IntArray:
    """The position of each name in a column of distinct names, int32; -1 where it is not there."""
    index = pl.DataFrame({"name": among, "code": pl.int_range(len(among), dtype=pl.Int32, eager=True)})
    found = names.rename("name").to_frame().join(index, on="name", how="left", maintain_order="left")["code"]
    return found.fill_null(-1).to_numpy()


def lookup_each(columns: Sequence[pl.Series], among: pl.Series) -> list[IntArray]:
    """`lookup` of several columns, all at once: most of the time goes into making an index of `among`."""
    if not columns:
        return []
    found = lookup(pl.concat([column.rename("name") for column in columns]), among)
    return np.split(found, np.cumsum([len(column) for column in columns])[:-1])
