"""The one door to pyoxigraph: RDF text becomes batches of names.

In: text or a stream. Out: IRIs without brackets, blank nodes as `_:label`, literals; statements about triples are
counted and left out. IRIs are not validated: real dumps hold many that are not valid.
Memory: a batch ends after some hundred thousand statements or 32 MB of text. Short text may stand for long names (a
prefix, a base), so a file is refused once its names take much in all and very much for what was read of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pyoxigraph

from largegnn.data.batch import LiteralBatch, ReadCounts, TripleBatch, check_names
from largegnn.data.lines import location
from largegnn.data.literal_syntax import LONGEST_VALUE
from largegnn.data.shown import shown
from largegnn.errors import InputError

__all__ = ["RdfForm", "batches", "check_closed", "parse"]

RdfForm = Literal["nt", "nq", "ttl"]
_FORMS = {
    "nt": pyoxigraph.RdfFormat.N_TRIPLES,
    "nq": pyoxigraph.RdfFormat.N_QUADS,
    "ttl": pyoxigraph.RdfFormat.TURTLE,
}
_BATCH = 250_000
_BATCH_BYTES = 1 << 25
# With prefixes of a hundred bytes and every abbreviation there is, names take some fifty times the text.
_MOST_EXPANSION = 200
_ALWAYS_ALLOWED = 1 << 26
_PLACE = re.compile(r"^Parser error at line \d+ (between columns|column) [\d and]+: ")
BlankName = Callable[[str], str]


def parse(path: Path, source: Any, form: RdfForm, line_numbers: list[int] | None = None) -> Iterator[Any]:
    """The statements of a text or stream; `line_numbers` are those its lines have in the file."""
    name = _FORMS[form].name
    try:
        yield from pyoxigraph.parse(input=source, format=_FORMS[form], lenient=True)
    except SyntaxError as error:
        line = error.lineno or 1
        if line_numbers is not None:
            line = line_numbers[min(line, len(line_numbers)) - 1]
        raise InputError(
            f"the file is not valid {name}",
            where=location(path, line),
            found=shown(_PLACE.sub("", str(error.msg)), 200),
            fix="mend the line, or name the right format with --format",
        ) from None
    except MemoryError as error:
        if "buffer" not in str(error):
            raise
        raise InputError(
            "a literal, name or comment is longer than the parser takes", where=str(path), found=str(error)
        ) from None
    except (ValueError, OSError) as error:
        raise InputError(f"the file is not valid {name}", where=str(path), found=shown(str(error), 200)) from None


def batches(
    path: Path,
    quads: Iterator[Any],
    name_blank: BlankName = "_:{}".format,
    num_bytes_read: Callable[[], int] | None = None,
) -> Iterator[TripleBatch]:
    """The statements as batches; `num_bytes_read` says how much text there was so far."""
    total = 0
    while True:
        batch = _Batch(name_blank)
        for quad in quads:
            batch.add(quad)
            if batch.num_statements >= _BATCH or batch.num_bytes >= _BATCH_BYTES:
                break
        if not batch.num_statements:
            return
        total += batch.num_bytes
        if num_bytes_read is not None and total > max(_ALWAYS_ALLOWED, _MOST_EXPANSION * num_bytes_read()):
            raise InputError(
                "the names take far more room than the text they are written in",
                where=str(path),
                expected=f"at most {_MOST_EXPANSION} times the text, once they take more than "
                f"{_ALWAYS_ALLOWED >> 20} MiB",
                found=f"{total >> 20:,} MiB of names in {num_bytes_read():,} bytes",
                fix="check the prefixes and the base of the file: one of them is very long",
            )
        yield batch.finish(path)


def check_closed(path: Path, batch: TripleBatch) -> None:
    """Refuse names with line breaks: the parser takes in the next line where an IRI lacks its bracket."""
    for names in (batch.heads, batch.relations, batch.tails):
        broken = names.filter(names.str.contains("[\r\n]"))
        if len(broken):
            raise InputError(
                "an IRI is not closed on its line",
                where=str(path),
                found=shown(repr(broken[0])),
                fix="close it with >, and write no line breaks in names",
            )


class _Batch:
    """Statements as lists of names, until there are enough."""

    def __init__(self, name_blank: BlankName) -> None:
        self.name_blank = name_blank
        self.heads: list[str] = []
        self.relations: list[str] = []
        self.tails: list[str] = []
        self.literals: list[tuple[str, str, str, str, str]] = []
        self.num_statements = self.num_bytes = self.num_graph_names = self.num_triple_terms = 0

    def add(self, quad: Any) -> None:
        """Take in one statement."""
        head, relation, tail, graph = quad
        self.num_statements += 1
        self.num_graph_names += not isinstance(graph, pyoxigraph.DefaultGraph)
        name = self.name(head)
        self.num_bytes += len(name)
        if isinstance(tail, pyoxigraph.Literal):
            # One character more than is kept, so that the cut is seen and counted.
            value, datatype = tail.value[: LONGEST_VALUE + 1], tail.datatype.value
            self.literals.append((name, relation.value, value, datatype, tail.language or ""))
            self.num_bytes += len(relation.value) + len(value) + len(datatype)
        elif isinstance(tail, pyoxigraph.Triple):
            self.num_triple_terms += 1
        else:
            self.heads.append(name)
            self.relations.append(relation.value)
            self.tails.append(self.name(tail))
            self.num_bytes += len(self.relations[-1]) + len(self.tails[-1])

    def name(self, term: Any) -> str:
        """The name of an IRI or blank node."""
        label: str = term.value
        return label if isinstance(term, pyoxigraph.NamedNode) else self.name_blank(label)

    def finish(self, path: Path) -> TripleBatch:
        """The statements as columns, checked."""
        columns = {
            "head": pl.Series(self.heads, dtype=pl.String),
            "relation": pl.Series(self.relations, dtype=pl.String),
            "tail": pl.Series(self.tails, dtype=pl.String),
        }
        check_names(columns, lambda _: str(path))
        return TripleBatch(
            columns["head"],
            columns["relation"],
            columns["tail"],
            LiteralBatch(*(pl.Series(column, dtype=pl.String) for column in zip(*self.literals, strict=True))),
            counts=ReadCounts(graph_names=self.num_graph_names, triple_terms=self.num_triple_terms),
        )
