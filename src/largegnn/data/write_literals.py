"""Literals as text that the readers take: `"..."`, `"..."@en`, `"..."^^<type>`, with the escapes of N-Triples.

In: the literals of one side and how entities and predicates are written. Out: lines or frames, a hundred thousand
literals at a time. The same syntax serves RDF and tables: it has no line breaks and no tabs.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from largegnn.artifacts.literals import Literals
from largegnn.data.iri import encode_names

__all__ = ["literal_frames", "literal_lines"]

_ROWS = 100_000
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\u0000"}


def literal_frames(
    literals: Literals, rows: slice, entities: pl.Series, predicates: pl.Series
) -> Iterator[pl.DataFrame]:
    """Frames of `head`, `relation` and `tail`; `entities` and `predicates` are what their numbers are written as."""
    datatypes, languages = (
        pl.Series(list(table), dtype=pl.String) for table in (literals.datatype_names, literals.language_names)
    )
    marks = pl.select(pl.when(datatypes == "").then(pl.lit("")).otherwise("^^<" + encode_names(datatypes, False) + ">"))
    tags = pl.select(pl.when(languages == "").then(pl.lit("")).otherwise("@" + languages))
    for first in range(rows.start, rows.stop, _ROWS):
        part = slice(first, min(first + _ROWS, rows.stop))
        frame = pl.DataFrame(
            {
                "head": entities.gather(literals.entities[part]),
                "relation": predicates.gather(literals.predicates[part]),
                "value": pl.Series(literals.values.take(range(part.start, part.stop)), dtype=pl.String),
                "tag": tags.to_series().gather(literals.languages[part]),
                "mark": marks.to_series().gather(literals.datatypes[part]),
            }
        )
        tail = pl.concat_str([pl.lit('"'), _escaped(pl.col("value")), pl.lit('"'), "tag", "mark"])
        yield frame.select("head", "relation", tail=tail)


def literal_lines(
    literals: Literals, rows: slice, entities: pl.Series, predicates: pl.Series, between: str, ending: str = ""
) -> Iterator[bytes]:
    """Lines of text; `between` separates the three, `ending` stands before the line break."""
    for frame in literal_frames(literals, rows, entities, predicates):
        line = pl.concat_str(["head", pl.lit(between), "relation", pl.lit(between), "tail", pl.lit(ending)])
        yield (frame.select(line).to_series().str.join("\n").item() + "\n").encode("utf-8")


def _escaped(values: pl.Expr) -> pl.Expr:
    for plain, escape in _ESCAPES.items():  # the backslash first: the others bring their own
        values = values.str.replace_all(plain, escape, literal=True)
    return values
