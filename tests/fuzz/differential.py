"""Against silent misreading: what our readers take from a file must be what a strict reader takes from it.

Checks for the worker process. Each reads a file with our reader and with another, pyoxigraph in its strict mode or
Python's csv module. Where both accept the file, the triples must be the same; a difference is an `AssertionError`, and
so a failure. Where one refuses, there is nothing to compare.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from pathlib import Path

import pyoxigraph as ox

from largegnn.data.batch import TripleBatch
from largegnn.data.readers import read_triples

__all__ = ["same_as_csv", "same_as_oxigraph"]

_FORMS = {"nt": ox.RdfFormat.N_TRIPLES, "nq": ox.RdfFormat.N_QUADS, "ttl": ox.RdfFormat.TURTLE}
_LITERAL = re.compile(r'".*"(@[A-Za-z0-9-]+|\^\^.+)?', re.DOTALL)
# The strict parser recurses, and canonical names of blank nodes are hard to find: not where there are very many.
_MOST_NESTED = 100
_MOST_BLANK = 50

Triple = tuple[str, str, str]


def same_as_oxigraph(path: str, form: str, also: str) -> str:
    """Compare with pyoxigraph, which reads the file as the format `also`."""
    heads, triples = _ours(Path(path), form)
    data = Path(path).read_bytes()
    if max(map(data.count, (b"<<", b"[", b"(", b"{"))) > _MOST_NESTED:
        return "not compared"
    try:
        quads = list(ox.parse(input=data, format=_FORMS[also]))
    except (SyntaxError, ValueError):
        return "ours alone accepts it"
    expected = [
        (_name(quad.subject), quad.predicate.value, _name(quad.object))
        for quad in quads
        if isinstance(quad.object, (ox.NamedNode, ox.BlankNode))
    ]
    expected_heads = [_name(quad.subject) for quad in quads if isinstance(quad.object, ox.Literal)]
    assert _comparable(triples, heads) == _comparable(expected, expected_heads), "other triples than the strict parser"
    return "compared"


def same_as_csv(path: str, form: str) -> str:
    """Compare a table without a header with Python's csv module, or with plain splitting for TSV."""
    batches = list(read_triples(Path(path), form))
    if any(batch.counts.header_rows for batch in batches):
        return "a header"
    text = Path(path).read_bytes().decode("utf-8").removeprefix("\ufeff")
    if form == "tsv":
        if "\r" in text:
            return "not compared"
        rows = [line.split("\t") for line in text.split("\n") if line]
    else:
        csv.field_size_limit(1 << 30)
        try:
            rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
        except csv.Error:
            return "ours alone accepts it"
    heads, triples = _columns(batches)
    expected = [tuple(map(_without_brackets, row)) for row in rows if not _LITERAL.fullmatch(row[2])]
    expected_heads = [_without_brackets(row[0]) for row in rows if _LITERAL.fullmatch(row[2])]
    assert triples == expected, "other triples than the plain reader"
    assert heads == expected_heads, "other attributes than the plain reader"
    return "compared"


def _ours(path: Path, form: str) -> tuple[list[str], list[Triple]]:
    return _columns(list(read_triples(path, form)))


def _columns(batches: list[TripleBatch]) -> tuple[list[str], list[Triple]]:
    """The heads of attributes, and the triples."""
    heads = [head for batch in batches for head in batch.attribute_heads]
    triples = [row for batch in batches for row in zip(batch.heads, batch.relations, batch.tails, strict=True)]
    return heads, triples


def _name(term: object) -> str:
    return f"_:{term.value}" if isinstance(term, ox.BlankNode) else str(getattr(term, "value", term))


def _without_brackets(name: str) -> str:
    return name[1:-1] if len(name) > 2 and name.startswith("<") and name.endswith(">") else name


def _comparable(triples: list[Triple], heads: list[str]) -> object:
    """Statements as values that are equal where only the labels of blank nodes differ."""
    blank = dict.fromkeys(name for row in (*triples, tuple(heads)) for name in row if name.startswith("_:"))
    num_of_statement = Counter(tuple("_:" if name in blank else name for name in row) for row in triples)
    num_of_head = Counter("_:" if name in blank else name for name in heads)
    if len(blank) > _MOST_BLANK:
        return num_of_statement, num_of_head, len(blank)
    term = {name: ox.BlankNode(f"n{index}x") for index, name in enumerate(blank)}
    literal = ox.Literal("")
    statements = [
        *(ox.Quad(_node(s, term), ox.NamedNode(p), _node(o, term)) for s, p, o in triples),
        *(ox.Quad(_node(head, term), ox.NamedNode("x:attribute"), literal) for head in heads),
    ]
    dataset = ox.Dataset(statements)
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return num_of_statement, num_of_head, sorted(map(str, dataset))


def _node(name: str, blank: dict[str, ox.BlankNode]) -> ox.NamedNode | ox.BlankNode:
    return blank[name] if name in blank else ox.NamedNode(name)
