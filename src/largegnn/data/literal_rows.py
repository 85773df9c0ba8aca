"""Join coded literals into one artifact, sorted and distinct.

In: coded batches of literals. Out: `Literals`, distinct and sorted by entity, predicate, datatype, language
and value, so that the order of lines does not matter. What repeats (entities, predicates, datatypes, languages) is kept
as numbers, values as their bytes end to end; the text of the file is never in memory as a whole.
Memory: the bytes of the values twice and some 60 bytes a literal. Values are compared only where all else is equal, and
taken out for that a hundred thousand at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from largegnn.artifacts import IntArray, Mask, StringTable
from largegnn.artifacts.literals import Literals
from largegnn.data.batch import no_names
from largegnn.data.vocabulary import CodedLiteralBatch, Vocabulary, distinct, lookup, to_strings

__all__ = ["CodedLiterals", "LiteralCoder", "LiteralRows", "join_literals"]

_BLOCK_ROWS = 100_000
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, eq=False)
class LiteralRows:
    """Literals, columns of one length; `predicates`, `datatypes`, `languages` index into their names.

    An entity below 0 is unknown.
    """

    entities: IntArray
    predicates: IntArray
    datatypes: IntArray
    languages: IntArray
    values: StringTable
    predicate_names: pl.Series
    datatype_names: pl.Series
    language_names: pl.Series

    @classmethod
    def of(cls, literals: Literals, entity_of_old: IntArray) -> LiteralRows:
        """The literals of an artifact whose entities have got new ids."""
        names = (literals.predicate_names, literals.datatype_names, literals.language_names)
        return cls(
            entity_of_old[literals.entities],
            literals.predicates,
            literals.datatypes,
            literals.languages,
            literals.values,
            *(pl.Series(list(table), dtype=pl.String) for table in names),
        )

    def shifted(self, offset: int) -> LiteralRows:
        """The same with the ids of all known entities higher by `offset`."""
        return replace(self, entities=np.where(self.entities < 0, self.entities, self.entities + np.int32(offset)))


@dataclass(frozen=True, eq=False)
class CodedLiterals:
    """Literals as read: until they have ids, the entities of `rows` are numbers into `head_names`."""

    head_names: pl.Series
    rows: LiteralRows

    def with_ids(self, ids: IntArray) -> LiteralRows:
        """The literals of entities that have ids; `ids` (n,) are those of `head_names`, -1 for none."""
        return replace(self.rows, entities=ids[self.rows.entities])


class LiteralCoder:
    """Collects coded literals, batch after batch."""

    def __init__(self) -> None:
        self._columns = {name: Vocabulary() for name in ("heads", "predicates", "datatypes", "languages")}
        self._data = bytearray()
        self._sizes: list[IntArray] = []

    def add(self, batch: CodedLiteralBatch) -> None:
        """Add one more batch."""
        for name, vocabulary in self._columns.items():
            vocabulary.add(batch.columns[name])
        self._sizes.append(batch.sizes)
        self._data += batch.data.data

    def finish(self) -> CodedLiterals:
        """All literals added; nothing can be added any more."""
        names, codes = {}, {}
        for name, vocabulary in self._columns.items():
            names[name], parts = vocabulary.finish()
            codes[name] = np.concatenate([np.empty(0, dtype=np.int32), *parts])
        ptr = np.zeros(len(codes["heads"]) + 1, dtype=np.int64)
        np.cumsum(np.concatenate([np.empty(0, dtype=np.int32), *self._sizes]), out=ptr[1:])
        values = StringTable(np.frombuffer(self._data, dtype=np.uint8), ptr)
        rows = LiteralRows(
            codes["heads"],
            codes["predicates"],
            codes["datatypes"],
            codes["languages"],
            values,
            names["predicates"],
            names["datatypes"],
            names["languages"],
        )
        return CodedLiterals(names["heads"], rows)


def join_literals(parts: Sequence[LiteralRows]) -> Literals:
    """The literals of several parts as one artifact, distinct and in order, those of unknown entities left out."""
    parts = [part for part in parts if bool((part.entities >= 0).any())]
    if not parts:
        return Literals.empty()
    entities = np.concatenate([part.entities for part in parts])
    predicates, predicate_names = _united([(part.predicates, part.predicate_names) for part in parts])
    datatypes, datatype_names = _united([(part.datatypes, part.datatype_names) for part in parts])
    languages, language_names = _united([(part.languages, part.language_names) for part in parts])
    known = np.flatnonzero(entities >= 0)
    columns = (entities, predicates, datatypes, languages)
    order, is_tied = _ordered(columns if len(known) == len(entities) else tuple(column[known] for column in columns))
    order = order if len(known) == len(entities) else known[order]
    order = _settle_ties(order, is_tied, [part.values for part in parts])
    sizes = np.concatenate([np.diff(part.values.data_ptr) for part in parts])
    ptr = np.zeros(len(order) + 1, dtype=np.int64)
    np.cumsum(sizes[order], out=ptr[1:])
    starts = np.full(len(entities), -1, dtype=np.int64)
    starts[order] = ptr[:-1]
    data, first = np.empty(int(ptr[-1]), dtype=np.uint8), 0
    for part in parts:
        _scatter(part.values, starts[first : first + len(part.entities)], data)
        first += len(part.entities)
    return Literals(
        entities[order],
        predicates[order],
        StringTable(data, ptr),
        datatypes[order],
        languages[order],
        to_strings(predicate_names),
        to_strings(datatype_names),
        to_strings(language_names),
    )


def _united(columns: Sequence[tuple[IntArray, pl.Series]]) -> tuple[IntArray, pl.Series]:
    """Codes of several columns, each with names of its own, as codes of the sorted names of all that are used."""
    used = [names.gather(np.unique(codes)) for codes, names in columns]
    every = distinct(used).sort()
    return np.concatenate([lookup(names, every)[codes] for codes, names in columns]), every


def _ordered(columns: tuple[IntArray, ...]) -> tuple[IntArray, Mask]:
    """The order of rows by several columns, (m,), and whether a row there equals the one before it, (m,)."""
    limits = [int(column.max()) + 1 for column in columns]
    if math.prod(limits) < 2**63:
        keys = np.zeros(len(columns[0]), dtype=np.int64)
        for column, limit in zip(columns, limits, strict=True):
            keys *= limit
            keys += column
        order = np.argsort(keys, kind="stable")
        equal = np.diff(keys[order]) == 0
    else:
        order = np.lexsort(columns[::-1])
        equal = np.logical_and.reduce([np.diff(column[order]) == 0 for column in columns])
    return order, np.concatenate([[False], equal])


def _settle_ties(order: IntArray, is_tied: Mask, values: Sequence[StringTable]) -> IntArray:
    """The order with tied rows sorted by their values, and without those whose value is a repeat."""
    if not bool(is_tied.any()):
        return order
    starts = np.flatnonzero(~is_tied)
    has_ties = np.diff(np.append(starts, len(order))) > 1
    in_group = np.repeat(has_ties, np.diff(np.append(starts, len(order))))
    rows = np.flatnonzero(in_group)
    group = np.cumsum(~is_tied)[rows]
    order, dropped = order.copy(), []
    for first, last in _whole_groups(group):
        places = rows[first:last]
        texts = pl.concat([no_names(), *_texts(order[places], values)])
        frame = pl.DataFrame({"group": group[first:last], "value": texts, "row": order[places]})
        frame = frame.sort("group", "value", maintain_order=True)
        again = (frame["group"] == frame["group"].shift(1)) & (frame["value"] == frame["value"].shift(1))
        order[places] = frame["row"].to_numpy()
        dropped.append(places[again.fill_null(False).to_numpy()])
    return np.delete(order, np.concatenate(dropped))


def _whole_groups(group: IntArray) -> Iterator[tuple[int, int]]:
    """Stretches of about a block, (first, last), that end where a group ends."""
    first = 0
    while first < len(group):
        at = min(first + _BLOCK_ROWS, len(group)) - 1
        last = int(np.searchsorted(group, group[at], side="right"))
        yield first, last
        first = last


def _texts(rows: IntArray, values: Sequence[StringTable]) -> Iterator[pl.Series]:
    """The values of rows, numbered through all tables."""
    offsets = np.cumsum([0, *map(len, values)])
    for first in range(0, len(rows), _BLOCK_ROWS):
        part = rows[first : first + _BLOCK_ROWS]
        table_of = np.searchsorted(offsets, part, side="right") - 1
        texts = np.empty(len(part), dtype=object)
        for number in np.unique(table_of).tolist():
            chosen = table_of == number
            texts[chosen] = values[number].take(part[chosen] - offsets[number])
        yield pl.Series(texts.tolist(), dtype=pl.String)


def _scatter(values: StringTable, starts: IntArray, data: IntArray) -> None:
    """Write each value to `data` where it starts, (m,); those that start at -1 are left out."""
    ptr, first = values.data_ptr, 0
    while first < len(starts):
        last = max(first + 1, int(np.searchsorted(ptr, ptr[first] + _BLOCK_BYTES, side="right")) - 1)
        sizes = np.diff(ptr[first : last + 1])
        to = np.repeat(starts[first:last] - (ptr[first:last] - ptr[first]), sizes)
        to += np.arange(len(to))
        block = values.data[ptr[first] : ptr[last]]
        if bool((starts[first:last] < 0).any()):
            kept = np.repeat(starts[first:last] >= 0, sizes)
            to, block = to[kept], block[kept]
        data[to] = block
        first = last
