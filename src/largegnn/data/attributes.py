"""OpenEA's `attr_triples_1/2`: entity, attribute and value, separated by tabs.

In: a path. Out: literals, block by block. What comes after the second tab is the value, whatever it holds; one in RDF
syntax ("..."^^<type>) loses its quotes. A line without a value is dropped and counted. Some sets have N-Triples under
the same name, which are read as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl

from largegnn.data.batch import LiteralBatch, ReadCounts, TripleBatch
from largegnn.data.lines import LineBlock, line_blocks
from largegnn.data.literal_syntax import parse_literals, tidied
from largegnn.data.readers import read_triples
from largegnn.data.recognise import looks_like_triples
from largegnn.data.tables import without_brackets

__all__ = ["read_attributes"]


def read_attributes(path: Path) -> Iterator[TripleBatch]:
    """The literals of an attribute file."""
    if looks_like_triples(path):
        for batch in read_triples(path, "nt"):
            yield TripleBatch(literals=batch.literals, counts=_about_literals(batch.counts))
        return
    for block in line_blocks(path):
        yield _batch_of(block)


def _batch_of(block: LineBlock) -> TripleBatch:
    lines = pl.Series([block.text.decode("utf-8")]).str.split("\n").explode()
    columns = lines.filter(lines.str.len_bytes() > 0).str.splitn("\t", 3).struct.unnest()
    whole = columns.filter(pl.all_horizontal(pl.all().is_not_null()))
    names, parsed = without_brackets(whole.select("field_0", "field_1")), parse_literals(whole["field_2"])
    literals, counts = tidied(
        LiteralBatch(names["field_0"], names["field_1"], parsed["value"], parsed["datatype"], parsed["language"])
    )
    dropped = ReadCounts(dropped_literals=len(columns) - len(whole))
    return TripleBatch(literals=literals, counts=ReadCounts.total([counts, dropped]))


def _about_literals(counts: ReadCounts) -> ReadCounts:
    """The counts without those of lines, which are the graph's own."""
    return replace(
        ReadCounts(),
        cut_values=counts.cut_values,
        broken_languages=counts.broken_languages,
        dropped_literals=counts.dropped_literals,
    )
