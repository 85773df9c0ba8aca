"""owl:sameAs statements in N-Triples, one for each accepted pair.

In: a table. Out: a file any RDF tool loads and `largegnn` takes as seeds. Names that are IRIs stand as they are; all
others, blank nodes among them, are packed into `urn:largegnn:...` (`largegnn.data.iri`): a blank node's label means
nothing outside its file, and `_:b1` of one graph must not become `_:b1` of the other. Packed or not, no
character is left that N-Triples would have to escape. A comment in the first line says where the file comes from.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from largegnn.data.iri import encode_names
from largegnn.export.files import ByteSink, write_files
from largegnn.export.info import TOOL, ExportInfo
from largegnn.export.table import accepted_rows

__all__ = ["write_lines", "write_same_as"]

_SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"
_ROWS = 250_000


def write_same_as(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write an N-Triples file of the accepted pairs."""
    accepted = accepted_rows(table)

    def write(sink: ByteSink) -> None:
        origin = f"{TOOL} {info.tool_version}, {info.created.isoformat()}, {info.title}: {info.description}"
        sink.write(f"# {' '.join(origin.split())}\n".encode())
        for part in accepted.iter_slices(_ROWS):
            source, target = (encode_names(part[side], keep_blank=False) for side in ("source", "target"))
            write_lines("<" + source + f"> <{_SAME_AS}> <" + target + "> .", sink)

    write_files({path: write})
    return len(accepted)


def write_lines(lines: pl.Series, sink: ByteSink) -> None:
    """Write strings, a line each."""
    if len(lines):
        sink.write((lines.str.join("\n").item() + "\n").encode("utf-8"))
