"""The RDF formats: N-Triples, N-Quads and Turtle, packed or not.

Triples are what stands between two names, all else are literals; graph names of quads are left out and counted.
Links are the owl:sameAs and skos:exactMatch statements; other statements of a link file are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from largegnn.data.batch import LinkBatch, ReadCounts, Reader, TripleBatch, TripleReader
from largegnn.data.blocks import BlockForm, read_blocks
from largegnn.data.equivalence import says_same
from largegnn.data.ntriples import LINE_FORMS
from largegnn.data.turtle import read_turtle_triples

__all__ = ["NQ", "NT", "TURTLE"]


def _reader(triples: TripleReader, *suffixes: str, blocks: BlockForm | None = None) -> Reader:
    def links(path: Path) -> Iterator[LinkBatch]:
        for batch in triples(path):
            yield _links_of(batch)

    return Reader(triples, links, suffixes, names=triples, blocks=blocks)


def _line_reader(kind: str, *suffixes: str) -> Reader:
    form = LINE_FORMS[kind]
    return _reader(partial(read_blocks, form=form), *suffixes, blocks=form)


def _links_of(batch: TripleBatch) -> LinkBatch:
    chosen = says_same(batch.relations)
    num_others = len(chosen) - int(chosen.sum()) + len(batch.literals)
    counts = ReadCounts.total([batch.counts, ReadCounts(other_statements=num_others)])
    return LinkBatch(batch.heads.filter(chosen), batch.tails.filter(chosen), counts)


NT = _line_reader("nt", ".nt", ".ntriples")
NQ = _line_reader("nq", ".nq", ".nquads")
TURTLE = _reader(read_turtle_triples, ".ttl", ".turtle")
