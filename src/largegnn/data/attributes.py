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
from largegnn.data.blocks import BlockForm, read_blocks
from largegnn.data.lines import LineBlock
from largegnn.data.literal_syntax import parse_literals
from largegnn.data.ntriples import LINE_FORMS
from largegnn.data.readers import tidied_batch
from largegnn.data.recognise import looks_like_triples
from largegnn.data.tables import without_brackets

__all__ = ["attribute_blocks", "read_attributes"]


def read_attributes(path: Path) -> Iterator[TripleBatch]:
    """The literals of an attribute file."""
    return map(tidied_batch, read_blocks(path, attribute_blocks(path)))


def attribute_blocks(path: Path) -> BlockForm:
    """How an attribute file is read block by block."""
    return _LINES if looks_like_triples(path) else _TABS


def _literals_of_lines(path: Path, block: LineBlock, known: None) -> Iterator[TripleBatch]:
    """The literals of a block of N-Triples."""
    for batch in LINE_FORMS["nt"].parse(path, block, known):
        yield TripleBatch(literals=batch.literals, counts=_about_literals(batch.counts))


def _literals_of_rows(path: Path, block: LineBlock, _: None) -> Iterator[TripleBatch]:
    """The literals of a block of three columns."""
    lines = pl.Series([block.text.decode("utf-8")]).str.split("\n").explode()
    columns = lines.filter(lines.str.len_bytes() > 0).str.splitn("\t", 3).struct.unnest()
    whole = columns.filter(pl.all_horizontal(pl.all().is_not_null()))
    names, parsed = without_brackets(whole.select("field_0", "field_1")), parse_literals(whole["field_2"])
    yield TripleBatch(
        literals=LiteralBatch(
            names["field_0"], names["field_1"], parsed["value"], parsed["datatype"], parsed["language"]
        ),
        counts=ReadCounts(dropped_literals=len(columns) - len(whole)),
    )


def _about_literals(counts: ReadCounts) -> ReadCounts:
    """The counts without those of lines, which are the graph's own."""
    return replace(
        ReadCounts(),
        cut_values=counts.cut_values,
        broken_languages=counts.broken_languages,
        dropped_literals=counts.dropped_literals,
    )


_TABS = BlockForm(_literals_of_rows)
_LINES = BlockForm(_literals_of_lines, ends="any")
