"""Number names: triples batch by batch, then the whole graph at once.

In: batches of names. Out: sorted distinct triples of int32 ids, and the names in the order of their ids. Each batch is
coded against its own distinct names, wherever it was read, so that the strings of a file are never all in memory; the
vocabularies of all batches are joined at the end. Ids follow a fixed shuffle of the sorted names, salted by side: they
depend on the set of names alone, not on the order of lines or files, and equal names on the two sides do not get near
ids. More names than 32-bit ids are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from largegnn.artifacts import IntArray, StringTable
from largegnn.data.batch import LiteralBatch, ReadCounts, TripleBatch, no_names
from largegnn.data.iri import decode_names
from largegnn.errors import InputError
from largegnn.machine.progress import progress

__all__ = [
    "CodedBatch",
    "CodedColumn",
    "CodedGraph",
    "CodedLiteralBatch",
    "Vocabulary",
    "code_batches",
    "distinct",
    "lookup",
    "lookup_each",
    "name_column",
    "number_names",
    "number_triples",
    "refuse_too_many",
    "scramble",
    "sorted_distinct",
    "to_strings",
]

_BLOCK_ROWS = 100_000
_LIMIT = 2**31 - 1
# A triple joins its two entities in both directions, and both are numbered; a relation has an inverse.
_NUMBERS_OF_ONE = {"entities": 1, "relations": 2, "triples": 2}
_NAMES_AT_ONCE = 250_000
_SEPARATOR = 0


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

    `literals` is None where they are not kept; `literal_heads` are the entities they belong to; `listed` are the
    entities that are kept without triples, each once, `num_listed` times in all.
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


@dataclass(frozen=True)
class CodedGraph:
    """One graph with provisional codes: `triples` (m, 3) index into the two name columns; nothing is sorted yet.

    `attribute_entities` have literals; `listed_entities` are kept without triples, `num_listed` times in all.
    """

    entity_names: pl.Series
    relation_names: pl.Series
    triples: IntArray
    attribute_entities: pl.Series
    num_attribute_triples: int
    listed_entities: pl.Series
    num_listed: int
    counts: ReadCounts


def code_batches(
    batches: Iterable[TripleBatch | CodedBatch], keep: Callable[[CodedLiteralBatch], None] | None = None
) -> CodedGraph:
    """Code every batch, then join their vocabularies; literals are counted, and passed to `keep` if given."""
    entities, relations = Vocabulary(), Vocabulary()
    attribute_entities, num_attributes, counts = no_names(), 0, ReadCounts()
    listed_entities, num_listed = no_names(), 0
    with progress("reading", None, "triples") as work:
        for batch in batches:
            coded = batch if isinstance(batch, CodedBatch) else CodedBatch.of(batch, keep is not None)
            entities.add(coded.ends)
            relations.add(coded.relations)
            num_attributes, num_listed = num_attributes + coded.num_literals, num_listed + coded.num_listed
            counts = ReadCounts.total([counts, coded.counts])
            if coded.num_literals:
                attribute_entities = pl.concat([attribute_entities, coded.literal_heads]).unique()
                if keep is not None and coded.literals is not None:
                    keep(coded.literals)
            if coded.num_listed:
                listed_entities = pl.concat([listed_entities, coded.listed]).unique()
            work.advance(len(coded.relations.codes) + coded.num_literals)
    entity_names, entity_codes = entities.finish()
    relation_names, relation_codes = relations.finish()
    refuse_too_many(entities=len(entity_names), relations=len(relation_names), triples=sum(map(len, relation_codes)))
    # Each batch's entity codes are its heads, then its tails.
    triples = np.empty((sum(map(len, relation_codes)), 3), dtype=np.int32)
    end = 0
    for ends, middle in zip(entity_codes, relation_codes, strict=True):
        block = triples[end : end + len(middle)]
        block[:, 0], block[:, 1], block[:, 2] = ends[: len(middle)], middle, ends[len(middle) :]
        end += len(middle)
    return CodedGraph(
        entity_names,
        relation_names,
        triples,
        decode_names(attribute_entities),
        num_attributes,
        decode_names(listed_entities),
        num_listed,
        counts,
    )


class Vocabulary:
    """Columns of names, each coded against its own distinct names until all are read."""

    def __init__(self) -> None:
        self._names: list[pl.Series] = []
        self._codes: list[IntArray] = []

    def add(self, column: CodedColumn) -> None:
        """Add one more column."""
        self._names.append(column.names)
        self._codes.append(column.codes)

    def finish(self) -> tuple[pl.Series, list[IntArray]]:
        """The distinct names of all columns, and the code of each name of each column."""
        own = [decode_names(names) for names in self._names]
        every = CodedColumn.of(pl.concat([no_names(), *own]))
        code_of = np.split(every.codes, np.cumsum([len(names) for names in own])[:-1]) if own else []
        return every.names, [code[codes] for code, codes in zip(code_of, self._codes, strict=True)]


def lookup(names: pl.Series, among: pl.Series) -> IntArray:
    """The position of each name in a column of distinct names, int32; -1 if it is missing."""
    index = pl.DataFrame({"name": among, "code": pl.int_range(len(among), dtype=pl.Int32, eager=True)})
    found = names.rename("name").to_frame().join(index, on="name", how="left", maintain_order="left")["code"]
    return found.fill_null(-1).to_numpy()


def lookup_each(columns: Sequence[pl.Series], among: pl.Series) -> list[IntArray]:
    """`lookup` of several columns, all at once: most of the time goes into making an index of `among`."""
    if not columns:
        return []
    found = lookup(pl.concat([column.rename("name") for column in columns]), among)
    return np.split(found, np.cumsum([len(column) for column in columns])[:-1])


def distinct(columns: Iterable[pl.Series]) -> pl.Series:
    """The distinct names of several columns."""
    return pl.concat([no_names(), *columns]).unique()


def number_names(names: pl.Series, salt: int) -> pl.Series:
    """The names in the order of their ids: sorted, then shuffled by a fixed rule."""
    return names.sort().gather(scramble(len(names), salt))


def scramble(size: int, salt: int) -> IntArray:
    """A fixed permutation of 0 .. size - 1 that looks random, the same on every machine and library version."""
    with np.errstate(over="ignore"):
        # The finaliser of SplitMix64 (Steele, Lea & Flood 2014): a bijection, so there are no ties.
        mixed = (np.arange(1, size + 1, dtype=np.uint64) + np.uint64(salt << 40)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.argsort(mixed ^ (mixed >> np.uint64(31)), kind="stable")


def number_triples(graph: CodedGraph, entities: pl.Series, relations: pl.Series) -> IntArray:
    """The distinct triples of a graph in final ids, sorted by head, relation and tail, (m, 3) int32."""
    entity_ids = lookup(graph.entity_names, entities)
    relation_ids = lookup(graph.relation_names, relations)
    triples = np.empty_like(graph.triples)
    triples[:, 0], triples[:, 2] = entity_ids[graph.triples[:, 0]], entity_ids[graph.triples[:, 2]]
    triples[:, 1] = relation_ids[graph.triples[:, 1]]
    return sorted_distinct(triples, (len(entities), len(relations), len(entities)))


def sorted_distinct(rows: IntArray, limits: tuple[int, ...]) -> IntArray:
    """The distinct rows of an integer matrix in lexicographic order; column c holds 0 .. limits[c] - 1."""
    if math.prod(limits) < 2**63:
        # One number a row sorts several times as fast as the rows themselves.
        keys = np.zeros(len(rows), dtype=np.int64)
        for column, limit in enumerate(limits):
            keys *= limit
            keys += rows[:, column]
        keys.sort()
        keys = keys[np.diff(keys, prepend=-1) > 0]
        result = np.empty((len(keys), len(limits)), dtype=rows.dtype)
        for column in reversed(range(len(limits))):
            keys, result[:, column] = np.divmod(keys, limits[column])
        return result
    order = np.lexsort(rows.T[::-1])
    rows = rows[order]
    is_new = np.ones(len(rows), dtype=np.bool_)
    is_new[1:] = np.any(rows[1:] != rows[:-1], axis=1)
    return np.compress(is_new, rows, axis=0)


def to_strings(names: pl.Series) -> StringTable:
    """A column of names as a string table; besides it only a part of the names is in memory."""
    ptr = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum(names.str.len_bytes().to_numpy(), out=ptr[1:])
    data = np.empty(int(ptr[-1]), dtype=np.uint8)
    for first in range(0, len(names), _NAMES_AT_ONCE):
        last = min(first + _NAMES_AT_ONCE, len(names))
        joined: str = names[first:last].str.join("").item()
        data[ptr[first] : ptr[last]] = np.frombuffer(joined.encode("utf-8"), dtype=np.uint8)
    return StringTable(data, ptr)


def name_column(table: StringTable) -> pl.Series:
    """All strings of a table as a polars column, in order."""
    if bool((table.data == _SEPARATOR).any()):
        # A NUL in a name: no character is left to split at.
        return pl.Series(list(table), dtype=pl.String)
    ptr, parts = table.data_ptr, [pl.Series([], dtype=pl.String)]
    for first in range(0, len(table), _NAMES_AT_ONCE):
        last = min(first + _NAMES_AT_ONCE, len(table))
        joined = np.insert(table.data[ptr[first] : ptr[last]], ptr[first + 1 : last] - ptr[first], _SEPARATOR)
        parts.append(pl.Series([joined.tobytes().decode("utf-8")]).str.split(chr(_SEPARATOR)).explode())
    return pl.concat(parts)


def refuse_too_many(**counts: int) -> None:
    """Refuse a pair of graphs with more entities, relations or triples than can be numbered."""
    for what, count in counts.items():
        most = _LIMIT // _NUMBERS_OF_ONE[what]
        if count > most:
            raise InputError(
                f"there are more {what} than 32-bit ids can number",
                expected=f"at most {most:,} {what} in both graphs together",
                found=f"{count:,}",
                fix="leave out what need not be aligned, or align the graphs piece by piece",
            )
