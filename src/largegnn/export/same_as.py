"""owl:sameAs statements in N-Triples, one for each accepted pair.

In: a table. Out: a file any RDF tool loads and `largegnn` takes as seeds. Names are IRIs or are made ones
(`largegnn.export.iris`); blank nodes are packed, since `_:b1` of one graph must not become `_:b1` of the other.
No character is left that N-Triples would have to escape. A comment in the first line says where the file comes from.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from largegnn.export.info import TOOL, Exporter, ExportInfo
from largegnn.export.iris import with_iris
from largegnn.machine.atomic import ByteSink, write_files

__all__ = ["SAME_AS", "write_lines"]

_SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"
_ROWS = 250_000


def _write_same_as(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write an N-Triples file."""
    named = with_iris(table, info)

    def write(sink: ByteSink) -> None:
        origin = f"{TOOL} {info.tool_version}, {info.created.isoformat()}, {info.title}: {info.description}"
        sink.write(f"# {' '.join(origin.split())}\n".encode())
        for part in named.iter_slices(_ROWS):
            write_lines("<" + part["source_iri"] + f"> <{_SAME_AS}> <" + part["target_iri"] + "> .", sink)

    write_files({path: write})
    return len(table)


def write_lines(lines: pl.Series, sink: ByteSink) -> None:
    """Write strings, a line each."""
    if len(lines):
        sink.write((lines.str.join("\n").item() + "\n").encode("utf-8"))


SAME_AS = Exporter("sameas.nt", _write_same_as, accepted_only=True, description="owl:sameAs in N-Triples")
