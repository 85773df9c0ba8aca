"""Against silent misreading: what our readers take from a file must be what a strict reader takes from it.

`same_triples`, a check for the worker process, reads a file with our reader and with another, pyoxigraph in its strict
mode or Python's csv module. Where both accept the file, triples and literals must be the same; a difference is an
`AssertionError`, and so a failure. So is RDF that only ours refuses, unless it is beyond one of our limits.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import pyoxigraph as ox

from largegnn.data.batch import TripleBatch
from largegnn.data.readers import read_triples
from largegnn.errors import InputError

__all__ = ["same_triples"]

_FORMS = {"nt": ox.RdfFormat.N_TRIPLES, "nq": ox.RdfFormat.N_QUADS, "ttl": ox.RdfFormat.TURTLE}
# The separators of ASCII (1C to 1F) are spaces to Python alone: in a language tag they are wrong letters.
_LITERAL = re.compile(r'"(.*)"(@(?:[^\s"]|[\x1c-\x1f])*|\^\^.+)?', re.DOTALL)
_PLAIN_TYPES = {
    "http://www.w3.org/2001/XMLSchema#string",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString",
}
# Valid RDF that we refuse on purpose: names that are too long, terms nested too deep, NUL bytes, several lines.
_LIMITS = re.compile(r"bytes long|nested too deep|a NUL byte|not closed on its line|longer than|more memory|is empty")
# The strict parser recurses, and canonical names of blank nodes are hard to find: not where there are very many.
_MOST_NESTED = 100
_MOST_BLANK = 50

Statement = tuple[str, str, str]  # the object of a literal is JSON


def same_triples(path: str, form: str, also: str) -> str:
    """Compare what is read as `form` with what another reader reads as `also`; says whether both accept the file."""
    return _same_as_oxigraph(Path(path), form, also) if also in _FORMS else _same_as_plain(Path(path), form)


def _same_as_oxigraph(path: Path, form: str, also: str) -> str:
    quads = _parsed(path.read_bytes(), also)
    try:
        batches = list(read_triples(path, form))
    except InputError as error:
        if quads is None or form != also or _LIMITS.search(str(error)):
            raise
        raise AssertionError(f"the strict parser accepts what is refused: {error}") from error
    if quads is None:
        return "ours alone accepts it"
    triples, literals = _ours(batches)
    kept = [quad for quad in quads if isinstance(quad.object, (ox.NamedNode, ox.BlankNode))]
    expected = [(_name(quad.subject), quad.predicate.value, _name(quad.object)) for quad in kept]
    assert _comparable(triples) == _comparable(expected), "other triples than the strict parser"
    said = [(quad.subject, quad.predicate.value, quad.object) for quad in quads if isinstance(quad.object, ox.Literal)]
    expected = [(_name(head), predicate, _written(value)) for head, predicate, value in said]
    if not any(batch.counts.cut_values or batch.counts.dropped_literals for batch in batches):
        assert _comparable(literals) == _comparable(expected), "other literals than the strict parser"
    return "compared"


def _same_as_plain(path: Path, form: str) -> str:
    """Compare a table without a header with Python's csv module, or with plain splitting for TSV."""
    batches = list(read_triples(path, form))
    if any(batch.counts.header_rows for batch in batches):
        return "a header"
    text = path.read_bytes().decode("utf-8").lstrip("\ufeff")
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
    triples, literals = _ours(batches)
    expected = [tuple(map(_without_brackets, row)) for row in rows if not _LITERAL.fullmatch(row[2])]
    assert triples == expected, "other triples than the plain reader"
    said = [tuple(map(_without_brackets, row[:2])) for row in rows if _LITERAL.fullmatch(row[2])]
    if not any(batch.counts.dropped_literals for batch in batches):
        assert [row[:2] for row in literals] == said, "other literals than the plain reader"
    return "compared"


def _parsed(data: bytes, form: str) -> list[ox.Quad] | None:
    """What the strict parser reads; None for what it refuses, and for what is too deep for it."""
    if max(map(data.count, (b"<<", b"[", b"(", b"{"))) > _MOST_NESTED:
        return None
    try:
        data.decode("utf-8")  # it does not look at comments
        return list(ox.parse(input=data, format=_FORMS[form]))
    except (SyntaxError, ValueError):
        return None


def _ours(batches: list[TripleBatch]) -> tuple[list[Statement], list[Statement]]:
    """Triples, and literals."""
    triples = [row for batch in batches for row in zip(batch.heads, batch.relations, batch.tails, strict=True)]
    literals = []
    for found in (batch.literals for batch in batches):
        columns = (found.heads, found.predicates, found.values, found.datatypes, found.languages)
        literals += [(head, predicate, json.dumps(value)) for head, predicate, *value in zip(*columns, strict=True)]
    return triples, literals


def _written(literal: ox.Literal) -> str:
    datatype = literal.datatype.value
    return json.dumps([literal.value, "" if datatype in _PLAIN_TYPES else datatype, (literal.language or "").lower()])


def _name(term: object) -> str:
    return f"_:{term.value}" if isinstance(term, ox.BlankNode) else str(getattr(term, "value", term))


def _without_brackets(name: str) -> str:
    return name[1:-1] if len(name) > 2 and name.startswith("<") and name.endswith(">") else name


def _comparable(statements: list[Statement]) -> object:
    """Statements as values that are equal where only the labels of blank nodes differ."""
    blank = dict.fromkeys(name for row in statements for name in row if name.startswith("_:"))
    counts = Counter(tuple("_:" if name in blank else name for name in row) for row in statements)
    if not blank or len(blank) > _MOST_BLANK:
        return counts, len(blank)
    term = {name: ox.BlankNode(f"n{index}x") for index, name in enumerate(blank)}
    dataset = ox.Dataset(
        ox.Quad(term.get(head) or _node(head), _node(relation), term.get(tail) or ox.Literal(tail))
        for head, relation, tail in statements
    )
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return counts, sorted(map(str, dataset))


def _node(name: str) -> ox.NamedNode:
    return ox.NamedNode("x:" + quote(name, safe=""))
