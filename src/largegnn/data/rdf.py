"""N-Triples, N-Quads and Turtle, through pyoxigraph; plain lines of the first two through regular expressions.

In: a path. Out: names, block by block; IRIs without brackets, blank nodes as `_:label`. Literals (and triples about
triples) count as attributes. Nearly all lines of a real dump are plain: the expressions take them several times as
fast as a parser that makes Python objects. Every other line (escapes, comments, odd labels) goes to pyoxigraph, which
is thus the judge of what is valid. IRIs are not validated: real dumps hold many that are not.
Turtle's nameless blank nodes are numbered in order of appearance, since the parser draws random labels for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pyoxigraph

from largegnn.data.batch import Reader, TripleBatch, check_names
from largegnn.data.compression import open_stream
from largegnn.data.lines import LineBlock, line_blocks, location
from largegnn.errors import InputError

__all__ = ["NQ", "NT", "SAME_AS", "TURTLE"]

SAME_AS = ("http://www.w3.org/2002/07/owl#sameAs", "http://www.w3.org/2004/02/skos/core#exactMatch")
_LineFormat = Literal["nt", "nq"]
_BATCH = 250_000

_IRI = r'<([^\x00-\x20<>"{}|^`\\]+)>'
_LABEL = r"(_:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?)"
_ESCAPE = r"\\(?:[tbnrf\"'\\]|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})"
_LITERAL = rf'"(?:[^"\\\r\n]|{_ESCAPE})*"(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*|\^\^<[^\x00-\x20<>"{{}}|^`\\]+>)?'
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
# Which groups of the patterns hold the head, the relation, the tail and the graph name.
_Groups = tuple[tuple[str, ...], str, tuple[str, ...], tuple[str, ...]]
_GROUPS: tuple[_Groups, _Groups] = (
    (("1",), "2", ("3",), ("4",)),
    (("1", "2"), "3", ("4", "5"), ("6", "7")),
)
_NAMELESS = re.compile(r"^[0-9a-f]{20,32}$")


def read_line_triples(path: Path, kind: _LineFormat) -> Iterator[TripleBatch]:
    """Triples of an N-Triples or N-Quads file."""
    for block in line_blocks(path):
        yield from _block_batches(path, block, kind)


def read_line_links(path: Path, kind: _LineFormat) -> Iterator[pl.DataFrame]:
    """The owl:sameAs (or skos:exactMatch) statements of an N-Triples or N-Quads file."""
    yield from _links(read_line_triples(path, kind))


def read_turtle_triples(path: Path) -> Iterator[TripleBatch]:
    """Triples of a Turtle file."""
    with open_stream(path) as stream:
        nameless: dict[str, str] = {}
        quads = _parse(path, stream, pyoxigraph.RdfFormat.TURTLE)
        while rows := list(islice(quads, _BATCH)):
            yield _batch_of_quads(path, rows, nameless)


def read_turtle_links(path: Path) -> Iterator[pl.DataFrame]:
    """The owl:sameAs (or skos:exactMatch) statements of a Turtle file."""
    yield from _links(read_turtle_triples(path))


def _links(batches: Iterable[TripleBatch]) -> Iterator[pl.DataFrame]:
    for batch in batches:
        chosen = batch.relations.is_in(SAME_AS)
        yield pl.DataFrame({"source": batch.heads.filter(chosen), "target": batch.tails.filter(chosen)})


def _block_batches(path: Path, block: LineBlock, kind: _LineFormat) -> Iterator[TripleBatch]:
    text = pl.Series("line", [block.text.decode("utf-8")]).str.split("\n").explode()
    lines = pl.DataFrame({"line": text, "number": pl.int_range(len(text), eager=True) + block.first_line})
    for pattern, groups in zip(_PATTERNS[kind], _GROUPS, strict=True):
        found = lines.select(pl.col("line").str.extract_groups(pattern).struct.unnest())
        matched = found[groups[1]].is_not_null()
        yield _checked(path, _batch_of_groups(found.filter(matched), groups))
        lines = lines.filter(~matched)
        if not len(lines):
            return
    odd = lines.filter(~pl.col("line").str.contains(r"^\s*(#.*)?$"))
    if len(odd):
        form = pyoxigraph.RdfFormat.N_QUADS if kind == "nq" else pyoxigraph.RdfFormat.N_TRIPLES
        source = "\n".join(odd["line"]).encode("utf-8")
        yield _batch_of_quads(path, list(_parse(path, source, form, odd["number"].to_list())), {})


def _batch_of_groups(found: pl.DataFrame, groups: _Groups) -> TripleBatch:
    heads, relation, tails, graphs = groups
    names = found.select(head=pl.coalesce(heads), relation=pl.col(relation), tail=pl.coalesce(tails))
    structural = names["tail"].is_not_null()
    triples = names.filter(structural)
    named = [found[graph].is_not_null().sum() for graph in graphs if graph in found.columns]
    return TripleBatch(
        heads=triples["head"],
        relations=triples["relation"],
        tails=triples["tail"],
        attribute_heads=names.filter(~structural)["head"],
        num_named_graphs=int(sum(named)),
    )


def _parse(path: Path, source: Any, form: Any, line_numbers: list[int] | None = None) -> Iterator[Any]:
    try:
        yield from pyoxigraph.parse(input=source, format=form, lenient=True)
    except SyntaxError as error:
        line = error.lineno or 1
        if line_numbers is not None:
            line = line_numbers[min(line, len(line_numbers)) - 1]
        raise InputError(
            f"the file is not valid {form.name}",
            where=location(path, line),
            found=re.sub(r"^Parser error at line \d+ (between columns|column) [\d and]+: ", "", str(error.msg)),
            fix="mend the line, or name the right format with --format",
        ) from None
    except (ValueError, OSError) as error:
        raise InputError(f"the file is not valid {form.name}", where=str(path), found=str(error)) from None


def _batch_of_quads(path: Path, quads: list[Any], nameless: dict[str, str]) -> TripleBatch:
    heads, relations, tails, attribute_heads, num_named = [], [], [], [], 0
    for head, relation, tail, graph in quads:
        num_named += not isinstance(graph, pyoxigraph.DefaultGraph)
        if isinstance(tail, (pyoxigraph.Literal, pyoxigraph.Triple)):
            attribute_heads.append(_name(head, nameless))
        else:
            heads.append(_name(head, nameless))
            relations.append(relation.value)
            tails.append(_name(tail, nameless))
    return _checked(
        path,
        TripleBatch(
            heads=pl.Series(heads, dtype=pl.String),
            relations=pl.Series(relations, dtype=pl.String),
            tails=pl.Series(tails, dtype=pl.String),
            attribute_heads=pl.Series(attribute_heads, dtype=pl.String),
            num_named_graphs=num_named,
        ),
    )


def _name(term: Any, nameless: dict[str, str]) -> str:
    label: str = term.value
    if isinstance(term, pyoxigraph.NamedNode):
        return label
    # "[1]" is no valid label, so a made-up name never meets one from the file.
    return nameless.setdefault(label, f"_:[{len(nameless) + 1}]") if _NAMELESS.match(label) else f"_:{label}"


def _checked(path: Path, batch: TripleBatch) -> TripleBatch:
    check_names({"head": batch.heads, "relation": batch.relations, "tail": batch.tails}, lambda _: str(path))
    return batch


NT = Reader(partial(read_line_triples, kind="nt"), partial(read_line_links, kind="nt"), (".nt", ".ntriples"))
NQ = Reader(partial(read_line_triples, kind="nq"), partial(read_line_links, kind="nq"), (".nq", ".nquads"))
TURTLE = Reader(read_turtle_triples, read_turtle_links, (".ttl", ".turtle"))
