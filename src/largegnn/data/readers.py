"""Read files of triples, links, names or entities in any format of the table `READERS`, given or recognised.

In: a path. Out: batches of checked names and literals, or the same batches in codes; for codes, the blocks of large
files are parsed in parallel (`map_pieces`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import quote

import polars as pl

from largegnn.data.batch import Block, LinkBatch, LiteralBatch, ReadCounts, TripleBatch, no_names
from largegnn.data.coding import CodedBatch
from largegnn.data.columns import without_brackets
from largegnn.data.compression import compression_of
from largegnn.data.iri import PACKED
from largegnn.data.lines import LineBlock, LineEnds, line_blocks, table_line_ends, with_line_feeds
from largegnn.data.literal_syntax import parse_literals, tidied
from largegnn.data.recognise import looks_like_triples, plain_name, recognise, recognise_table
from largegnn.errors import InputError
from largegnn.machine.pieces import map_pieces
from largegnn.parts import READERS

__all__ = [
    "NAME_PREDICATE",
    "code_block",
    "coded_attributes",
    "coded_triples",
    "read_attributes",
    "read_links",
    "read_names",
    "read_rows",
    "read_triples",
]

NAME_PREDICATE = "urn:largegnn:name"
# Written packed, because all names are decoded later and this name looks like a packed one.
_PACKED_PREDICATE = PACKED + quote(NAME_PREDICATE, safe="/")
_WORTH_SENDING = 1 << 27  # bytes, a few seconds of work for a processor; the start of a worker takes one or two
_TYPICAL_EXPANSION = 8  # decompressed bytes per compressed byte


def read_triples(path: Path, form: str = "auto") -> Iterator[TripleBatch]:
    """Read the triples and literals of a file in any format of the table."""
    chosen = recognise(path, num_columns=3) if form == "auto" else form
    with _suggesting_turtle(path, form, chosen):
        yield from map(tidied_batch, READERS[chosen].triples(path))


def coded_triples(path: Path, form: str, keep_literals: bool) -> Iterator[CodedBatch]:
    """Read the triples and literals of a file in codes."""
    chosen = recognise(path, num_columns=3) if form == "auto" else form
    blocks = READERS[chosen].blocks
    with _suggesting_turtle(path, form, chosen):
        if blocks is None:
            yield from (CodedBatch.of(batch, keep_literals) for batch in read_triples(path, chosen))
        else:
            yield from _coded(path, blocks(path), keep_literals)


def _coded(path: Path, blocks: Iterator[Block], keep_literals: bool) -> Iterator[CodedBatch]:
    size = path.stat().st_size * (1 if compression_of(path) is None else _TYPICAL_EXPANSION)
    pieces = ((block,) for block in blocks)
    for batches in map_pieces(code_block, pieces, keep_literals, send=size >= _WORTH_SENDING):
        if isinstance(batches, InputError):
            raise batches
        yield from batches


def code_block(block: Block, keep_literals: bool) -> list[CodedBatch] | InputError:
    """Parse a block into coded batches, or return its error: the caller raises the error of the first block."""
    try:
        return [CodedBatch.of(tidied_batch(batch), keep_literals) for batch in block()]
    except InputError as error:
        return error


@contextmanager
def _suggesting_turtle(path: Path, form: str, chosen: str) -> Iterator[None]:
    """Suggest `--format ttl` if a Turtle file that begins like N-Triples was read as N-Triples."""
    try:
        yield
    except InputError as error:
        if (form, chosen, plain_name(path).suffix.lower()) != ("auto", "nt", ".ttl"):
            raise
        raise InputError(
            error.problem,
            where=error.where,
            expected=error.expected,
            found=error.found,
            fix="if it is Turtle further down, read it with --format ttl",
        ) from None


def read_rows(path: Path, key: str, form: str = "auto") -> Iterator[TripleBatch]:
    """Read the rows of a table as entities and literals, in any format that has rows; `key` names the key column."""
    form = recognise_table(path) if form == "auto" else form
    rows = READERS[form].rows
    if rows is None:
        able = ", ".join(name for name in ("tsv", "csv", "parquet") if name in READERS)
        raise InputError(
            f"a key column needs a table, and this file is {form}",
            where=str(path),
            expected=f"one of {able}",
            fix="leave the key out, or name the format with --format",
        )
    yield from map(tidied_batch, rows(path, key))


def tidied_batch(batch: TripleBatch) -> TripleBatch:
    """Normalise the literals of a batch, and add the counts of what was changed."""
    if not len(batch.literals):
        return batch
    literals, counts = tidied(batch.literals)
    return replace(batch, literals=literals, counts=ReadCounts.total([batch.counts, counts]))


def read_links(path: Path) -> LinkBatch:
    """Read all links of a file in any format of the table; a file without links is refused."""
    form = recognise(path, num_columns=2)
    batches = list(READERS[form].links(path))
    counts = ReadCounts.total([ReadCounts(), *(batch.counts for batch in batches)])
    links = LinkBatch(
        pl.concat([no_names(), *(batch.sources for batch in batches)]),
        pl.concat([no_names(), *(batch.targets for batch in batches)]),
        counts,
    )
    if not len(links.sources):
        raise InputError(
            "the file holds no links",
            where=str(path),
            expected="owl:sameAs or skos:exactMatch statements"
            if counts.other_statements or form in ("nt", "nq", "ttl")
            else "two columns: source, target",
            found=f"{counts.other_statements:,} statements of other kinds" if counts.other_statements else None,
        )
    return links


def read_names(path: Path) -> Iterator[TripleBatch]:
    """Read the names of entities in a file, as literals with the predicate `NAME_PREDICATE`.

    The file has two columns, entity and name, or is RDF, in which every literal counts as a name. An entity may have
    several names; a row without a name is dropped and counted.
    """
    form = recognise(path, num_columns=2)
    reader = READERS[form]
    for batch in _names_from_links(path, form) if reader.names is None else reader.names(path):
        has_name = batch.literals.values.str.contains(r"\S")
        named = pl.DataFrame(vars(batch.literals)).filter(has_name)
        predicates = pl.repeat(_PACKED_PREDICATE, len(named), dtype=pl.String, eager=True)
        literals, counts = tidied(LiteralBatch(*named.with_columns(predicates=predicates)))
        dropped = ReadCounts(dropped_literals=len(has_name) - len(named))
        yield TripleBatch(literals=literals, counts=ReadCounts.total([counts, dropped]))


def _names_from_links(path: Path, form: str) -> Iterator[TripleBatch]:
    """Read the two columns of a format whose reader has no `names`."""
    for links in READERS[form].links(path):
        yield TripleBatch(literals=LiteralBatch(links.sources, links.sources, links.targets))


def read_attributes(path: Path) -> Iterator[TripleBatch]:
    """Read the literals of an attribute file of OpenEA: entity, attribute and value, separated by tabs.

    All text after the second tab is the value; a value in RDF syntax ("..."^^<type>) loses its quotes.
    A line without a value is dropped and counted. Files that are N-Triples are read as such.
    """
    for block in _attribute_blocks(path):
        yield from map(tidied_batch, block())


def coded_attributes(path: Path, keep_literals: bool) -> Iterator[CodedBatch]:
    """Read the literals of an attribute file in codes."""
    return _coded(path, _attribute_blocks(path), keep_literals)


def _attribute_blocks(path: Path) -> Iterator[Block]:
    if looks_like_triples(path):
        blocks = READERS["nt"].blocks
        assert blocks is not None
        yield from (partial(_literals_alone, block) for block in blocks(path))
    else:
        ends = table_line_ends(path)
        yield from (partial(_attributes_of, block, ends) for block in line_blocks(path, ends))


def _literals_alone(block: Block) -> Iterable[TripleBatch]:
    """Keep only the literals of a block of N-Triples; blank and comment lines of attribute files are not counted."""
    for batch in block():
        counts = ReadCounts(
            broken_languages=batch.counts.broken_languages, dropped_literals=batch.counts.dropped_literals
        )
        yield TripleBatch(literals=batch.literals, counts=counts)


def _attributes_of(block: LineBlock, ends: LineEnds) -> list[TripleBatch]:
    text = with_line_feeds(block.text, ends).decode("utf-8")
    lines = pl.Series([text]).str.split("\n").explode()
    columns = lines.filter(lines.str.len_bytes() > 0).str.splitn("\t", 3).struct.unnest()
    complete = columns.filter(pl.all_horizontal(pl.all().is_not_null()))
    names, parsed = without_brackets(complete.select("field_0", "field_1")), parse_literals(complete["field_2"])
    literals = LiteralBatch(names["field_0"], names["field_1"], parsed["value"], parsed["datatype"], parsed["language"])
    return [TripleBatch(literals=literals, counts=ReadCounts(dropped_literals=len(columns) - len(complete)))]
