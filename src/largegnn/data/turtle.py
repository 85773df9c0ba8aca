"""Turtle, through pyoxigraph.

In: a path. Out: names, batch by batch. Nameless blank nodes (`[]`, collections) are numbered in order of appearance,
`_:[1]`, since the parser draws random labels for them; what has a label in the file keeps it, also where it looks like
one of those. Cost: about four seconds for a million triples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from largegnn.data.batch import ReadCounts, TripleBatch
from largegnn.data.blank import nameless
from largegnn.data.compression import as_stream, read_chunks, without_marks
from largegnn.data.language_tags import TagMender
from largegnn.data.nesting import guard_depth
from largegnn.data.quads import batches, check_closed, parse

__all__ = ["read_turtle_triples"]

_DRAWN = re.compile(r"[0-9a-f]{20,32}")
_WRITTEN = re.compile(rb"_:([0-9a-f]{20,32})")
_LONGEST_WRITTEN = 2 + 32


def read_turtle_triples(path: Path) -> Iterator[TripleBatch]:
    """Triples of a Turtle file."""
    num_marks, chunks = without_marks(read_chunks(path))
    if num_marks:
        yield TripleBatch(counts=ReadCounts(byte_order_marks=num_marks))

    def again() -> Iterator[bytes]:
        return without_marks(read_chunks(path))[1]

    mender = TagMender(guard_depth(path, chunks, again), again)
    text = _Text(iter(mender))
    with as_stream(text) as stream:
        for batch in batches(path, parse(path, stream, "ttl"), text.name_blank, lambda: text.num_bytes):
            check_closed(path, batch)
            yield batch
    yield TripleBatch(counts=ReadCounts(broken_languages=mender.num_broken))


class _Text:
    """The chunks of a file on their way to the parser: how many bytes there were, which labels were written."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.num_bytes = 0
        self._chunks = chunks
        self._written: set[str] = set()
        self._number_of: dict[str, int] = {}

    def __iter__(self) -> Iterator[bytes]:
        end = b""
        for chunk in self._chunks:
            self.num_bytes += len(chunk)
            if b"_:" in chunk or b"_" in end:
                self._written.update(label.decode() for label in _WRITTEN.findall(end + chunk))
            end = chunk[-_LONGEST_WRITTEN:]
            yield chunk

    def name_blank(self, label: str) -> str:
        """The name of a blank node: its label in the file, or a number where it has none."""
        if not _DRAWN.fullmatch(label) or label in self._written:
            return f"_:{label}"
        return nameless(self._number_of.setdefault(label, len(self._number_of) + 1))
