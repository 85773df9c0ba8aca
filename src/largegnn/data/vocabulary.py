"""Number names: find the distinct names of columns, give them ids, and store them as tables of strings.

In: columns of names. Out: names in the order of their ids, positions of names, `StringTable`s. Ids follow a fixed
shuffle of the sorted names, with another salt for each side: they depend on the set of names alone, not on the order of
lines or files, and equal names on the two sides do not get similar ids. More names than 32-bit ids are refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from largegnn.artifacts import IntArray, StringTable
from largegnn.data.batch import no_names
from largegnn.data.iri import decode_names
from largegnn.errors import InputError

__all__ = [
    "CodedColumn",
    "distinct",
    "join_columns",
    "lookup",
    "lookup_each",
    "name_column",
    "number_names",
    "refuse_too_many",
    "scramble",
    "sorted_distinct",
    "to_strings",
]

_LIMIT = 2**31 - 1
# Each triple is stored in both directions, and each relation has an inverse: both directions take a number.
_NUMBERS_PER_ITEM = {"entities": 1, "relations": 2, "triples": 2}
_NAMES_PER_CHUNK = 250_000
_SEPARATOR = 0


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column of names as its distinct `names`, and the `codes` (n,): the position of each row's name in `names`."""

    names: pl.Series
    codes: IntArray

    @classmethod
    def of(cls, names: pl.Series) -> CodedColumn:
        """Code a column against its own distinct names."""
        # Grouping takes one pass over the names, half the time of finding the distinct names and joining with them.
        grouped = names.rename("name").to_frame().with_row_index("row").group_by("name").agg("row")
        codes = np.empty(len(names), dtype=np.int32)
        codes[grouped["row"].explode(empty_as_null=False).to_numpy()] = np.repeat(
            np.arange(len(grouped), dtype=np.int32), grouped["row"].list.len().to_numpy()
        )
        return cls(grouped["name"], codes)


def join_columns(columns: Sequence[CodedColumn]) -> tuple[pl.Series, list[IntArray]]:
    """Join the vocabularies of columns, packed names decoded; returns the distinct names and each column's codes."""
    decoded = [decode_names(column.names) for column in columns]
    joined_column = CodedColumn.of(pl.concat([no_names(), *decoded]))
    code_of = np.split(joined_column.codes, np.cumsum([len(names) for names in decoded])[:-1]) if decoded else []
    return joined_column.names, [code[column.codes] for code, column in zip(code_of, columns, strict=True)]


def lookup(names: pl.Series, among: pl.Series) -> IntArray:
    """Find the position of each name in a column of distinct names, int32; -1 for a missing name."""
    index = pl.DataFrame({"name": among, "code": pl.int_range(len(among), dtype=pl.Int32, eager=True)})
    found = names.rename("name").to_frame().join(index, on="name", how="left", maintain_order="left")["code"]
    return found.fill_null(-1).to_numpy()


def lookup_each(columns: Sequence[pl.Series], among: pl.Series) -> list[IntArray]:
    """Apply `lookup` to several columns at once: most of its time goes into making an index of `among`."""
    if not columns:
        return []
    found = lookup(pl.concat([column.rename("name") for column in columns]), among)
    return np.split(found, np.cumsum([len(column) for column in columns])[:-1])


def distinct(columns: Iterable[pl.Series]) -> pl.Series:
    """Return the distinct names of several columns."""
    return pl.concat([no_names(), *columns]).unique()


def number_names(names: pl.Series, salt: int) -> pl.Series:
    """Return the names in the order of their ids: sorted, then shuffled by a fixed rule that depends on `salt`."""
    return names.sort().gather(scramble(len(names), salt))


def scramble(size: int, salt: int) -> IntArray:
    """Permute 0 .. size - 1 pseudo-randomly: the result is the same on every machine and with every library version."""
    with np.errstate(over="ignore"):
        # The finaliser of SplitMix64 (Steele, Lea & Flood 2014): a bijection, so there are no ties.
        mixed = (np.arange(1, size + 1, dtype=np.uint64) + np.uint64(salt << 40)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.argsort(mixed ^ (mixed >> np.uint64(31)), kind="stable")


def sorted_distinct(rows: IntArray, limits: tuple[int, ...]) -> IntArray:
    """Return the distinct rows of an integer matrix in lexicographic order; column c holds 0 .. limits[c] - 1."""
    if math.prod(limits) < 2**63:
        # Rows packed to one number each are sorted several times as fast as the rows themselves.
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
    return np.unique(rows, axis=0)


def to_strings(names: pl.Series) -> StringTable:
    """Convert a column of names to a string table, part by part, so that the names are not all copied at once."""
    ptr = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum(names.str.len_bytes().to_numpy(), out=ptr[1:])
    data = np.empty(int(ptr[-1]), dtype=np.uint8)
    for first in range(0, len(names), _NAMES_PER_CHUNK):
        last = min(first + _NAMES_PER_CHUNK, len(names))
        joined: str = names[first:last].str.join("").item()
        data[ptr[first] : ptr[last]] = np.frombuffer(joined.encode("utf-8"), dtype=np.uint8)
    return StringTable(data, ptr)


def name_column(table: StringTable) -> pl.Series:
    """Convert a table of strings to a polars column, in order."""
    if bool((table.data == _SEPARATOR).any()):
        # A name contains NUL itself, so that the strings cannot be joined and split at NUL.
        return pl.Series(list(table), dtype=pl.String)
    ptr = table.data_ptr
    parts = [pl.Series([], dtype=pl.String)]
    for first in range(0, len(table), _NAMES_PER_CHUNK):
        last = min(first + _NAMES_PER_CHUNK, len(table))
        joined = np.insert(table.data[ptr[first] : ptr[last]], ptr[first + 1 : last] - ptr[first], _SEPARATOR)
        parts.append(pl.Series([joined.tobytes().decode("utf-8")]).str.split(chr(_SEPARATOR)).explode())
    return pl.concat(parts)


def refuse_too_many(**counts: int) -> None:
    """Refuse a pair of graphs with more entities, relations or triples than can be numbered."""
    for what, count in counts.items():
        maximum = _LIMIT // _NUMBERS_PER_ITEM[what]
        if count > maximum:
            raise InputError(
                f"there are more {what} than 32-bit ids can number",
                expected=f"at most {maximum:,} {what} in both graphs together",
                found=f"{count:,}",
                fix="leave out what need not be aligned, or align the graphs piece by piece",
            )
