"""N-Triples and N-Quads: plain lines through regular expressions, all others through the parser.

In: a path. Out: names, block by block. Nearly all lines of a real dump are plain: the expressions take them several
times as fast as a parser that makes Python objects. Every other line (escapes in names, comments, odd labels) goes to
pyoxigraph, which is thus the judge of what is valid; each must give one statement, so that a literal without its
closing quote cannot take in the lines that follow. CR ends a line here as LF does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import polars as pl

from largegnn.data.batch import LiteralBatch, ReadCounts, TripleBatch, check_names
from largegnn.data.blocks import BlockForm
from largegnn.data.lines import LineBlock, location
from largegnn.data.literal_syntax import tags_as_written, unescaped
from largegnn.data.nesting import DEEPEST, Depth, too_deep
from largegnn.data.quads import batches, check_closed, parse
from largegnn.errors import InputError

__all__ = ["LINE_FORMS"]

_LineForm = Literal["nt", "nq"]

_IRI = r'<([^\x00-\x20<>"{}|^`\\]+)>'
_LABEL = r"(_:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?)"
_ESCAPE = r"\\(?:[tbnrf\"'\\]|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})"
# What follows an @ need be no language tag: dumps have @en_US, and their values are still good.
_LITERAL = rf'"((?:[^"\\\r\n]|{_ESCAPE})*)"(?:@([^\s<>":]*)|\^\^{_IRI})?'
_GAP = r"[ \t]*"
_ENDS = rf"(?:{_IRI}|{_LABEL})"
# Tried in this order, each on the lines the one before did not match. The first has no alternatives, which lets the
# expression engine work three times as fast; it takes most lines of most files.
_PATTERNS = {
    "nt": (
        rf"^{_GAP}{_IRI}{_GAP}{_IRI}{_GAP}{_IRI}{_GAP}\.{_GAP}$",
        rf"^{_GAP}{_ENDS}{_GAP}{_IRI}{_GAP}(?:{_IRI}|{_LABEL}|{_LITERAL}){_GAP}\.{_GAP}$",
    ),
    "nq": (
        rf"^{_GAP}{_IRI}{_GAP}{_IRI}{_GAP}{_IRI}{_GAP}(?:{_IRI}{_GAP})?\.{_GAP}$",
        rf"^{_GAP}{_ENDS}{_GAP}{_IRI}{_GAP}(?:{_IRI}|{_LABEL}|{_LITERAL}){_GAP}(?:{_ENDS}{_GAP})?\.{_GAP}$",
    ),
}


@dataclass(frozen=True)
class _Groups:
    """Which groups of a pattern hold what; `literal` are those of the value, the language and the datatype."""

    heads: tuple[str, ...]
    relation: str
    tails: tuple[str, ...]
    graphs: tuple[str, ...]
    literal: tuple[str, str, str] | None = None


_GROUPS = (
    _Groups(("1",), "2", ("3",), ("4",)),
    _Groups(("1", "2"), "3", ("4", "5"), ("9", "10"), ("6", "7", "8")),
)


def _block_batches(path: Path, block: LineBlock, _: None, kind: _LineForm) -> Iterator[TripleBatch]:
    """The triples of a block of lines."""
    # Without the last line break, which would give one empty line too many.
    text = pl.Series("line", [block.text[:-1].decode("utf-8")]).str.split("\n").explode()
    lines = pl.DataFrame({"line": text, "number": pl.int_range(len(text), eager=True) + block.first_line})
    for pattern, groups in zip(_PATTERNS[kind], _GROUPS, strict=True):
        found = lines.select(pl.col("line").str.extract_groups(pattern).struct.unnest())
        matched = found[groups.relation].is_not_null()
        batch = _batch_of_groups(found.filter(matched), groups)
        check_names({"head": batch.heads, "relation": batch.relations, "tail": batch.tails}, lambda _: str(path))
        yield batch
        lines = lines.filter(~matched)
        if not len(lines):
            break
    blank, comment = lines["line"].str.contains(r"^[ \t]*$"), lines["line"].str.contains(r"^[ \t]*#")
    left_out = ReadCounts(block.num_marks, blank_lines=int(blank.sum()), comment_lines=int(comment.sum()))
    yield TripleBatch(counts=left_out)
    yield from _parsed(path, lines.filter(~(blank | comment)), kind)


def _batch_of_groups(found: pl.DataFrame, groups: _Groups) -> TripleBatch:
    names = found.select(
        head=pl.coalesce(groups.heads), relation=pl.col(groups.relation), tail=pl.coalesce(groups.tails)
    )
    structural = names["tail"].is_not_null()
    triples = names.filter(structural)
    named = [found[graph].is_not_null().sum() for graph in groups.graphs if graph in found.columns]
    literals = LiteralBatch()
    if groups.literal is not None:
        owners = names.filter(~structural)
        value, language, datatype = found.filter(~structural).select(groups.literal)
        literals = LiteralBatch(
            owners["head"], owners["relation"], unescaped(value), datatype.fill_null(""), tags_as_written(language)
        )
    return TripleBatch(
        heads=triples["head"],
        relations=triples["relation"],
        tails=triples["tail"],
        literals=literals,
        counts=ReadCounts(graph_names=int(sum(named))),
    )


def _parsed(path: Path, odd: pl.DataFrame, kind: _LineForm) -> Iterator[TripleBatch]:
    """The statements of lines that are not plain, `line` and `number`."""
    if not len(odd):
        return
    for line, number in odd.filter(pl.col("line").str.count_matches("<<", literal=True) > DEEPEST).rows():
        if Depth().is_too_deep(line.encode("utf-8")):
            raise too_deep(location(path, number))
    quads = parse(path, "\n".join(odd["line"]).encode("utf-8"), kind, odd["number"].to_list())
    found = list(batches(path, quads))
    if sum(len(batch.heads) + len(batch.literals) + batch.counts.triple_terms for batch in found) != len(odd):
        for line, number in odd.rows():
            list(parse(path, line.encode("utf-8"), kind, [number]))
        raise InputError("a statement does not end on its line", where=str(path), expected="one statement a line")
    for batch in found:
        check_closed(path, batch)
        yield batch


LINE_FORMS = {
    "nt": BlockForm(partial(_block_batches, kind="nt"), ends="any"),
    "nq": BlockForm(partial(_block_batches, kind="nq"), ends="any"),
}
