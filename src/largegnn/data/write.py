"""Write a task to files in any format the readers accept: `load_pair` reads the same task from them.

In: a task, its names and, if given, its literals. Out: files in a folder. The folder layouts (openea, dbpedia1m,
dbp15k) hold TSV files; the other formats are written as source.*, target.* and link files. Literals are written among
the triples, in OpenEA's layouts to attr_triples_1 and attr_triples_2, as `"..."@en` or `"..."^^<type>` with the escapes
of N-Triples; dbp15k cannot hold literals. Any file may be compressed. Rows are written in batches: memory holds the
names and one batch (for Parquet, one file).
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from largegnn.artifacts import AlignmentTask, IntArray, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.data.compression import SUFFIXES, compressor
from largegnn.data.iri import PACKED, encode_names, pack_names
from largegnn.data.vocabulary import name_column
from largegnn.errors import InputError, StorageError

__all__ = ["WRITERS", "write_pair"]

WRITERS = ("openea", "dbpedia1m", "dbp15k", "nt", "nq", "ttl", "tsv", "csv", "parquet")
_ROWS, _LITERAL_ROWS = 1_000_000, 100_000  # of a batch
_SAME_AS = "<http://www.w3.org/2002/07/owl#sameAs>"
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\u0000"}
_Files = Iterator[tuple[str, Iterable[bytes]]]


def write_pair(
    task: AlignmentTask,
    names: TaskNames,
    folder: Path,
    form: str,
    compression: str | None = None,
    literals: Literals | None = None,
) -> list[Path]:
    """Write a task in one of `WRITERS`, optionally compressed with gzip, bzip2 or zstd; returns the files."""
    if form not in WRITERS:
        raise InputError(f"there is no writer for {form!r}", expected=f"one of {', '.join(WRITERS)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            "the output folder is not empty",
            where=str(folder),
            expected="a new or empty folder",
            fix="name another folder",
        )
    literals = literals or Literals.empty()
    if form == "dbp15k" and len(literals):
        raise InputError("dbp15k cannot hold literals", fix="write openea, nt or ttl instead")
    suffix = next((suffix for suffix, name in SUFFIXES.items() if name == compression), "")
    written: list[Path] = []
    try:
        for name, chunks in _files(task, names, literals, form):
            path = folder / f"{name}{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            packer: Any = compressor(compression)
            with path.open("wb") as file:
                for chunk in chunks:
                    file.write(packer.compress(chunk))
                file.write(packer.flush())
            written.append(path)
    except OSError as error:
        raise StorageError(f"cannot write to {error.filename or folder}: {error.strerror or error}") from error
    return written


@dataclass(frozen=True, eq=False)
class _Pair:
    """A task to write, and the texts of its entities, relations and predicates in the format."""

    task: AlignmentTask
    entities: pl.Series
    relations: pl.Series
    literals: Literals
    predicates: pl.Series

    def triples(self, side: int) -> Iterator[pl.DataFrame]:
        """Yield frames of the triples of a side."""
        rows = np.split(self.task.triples, [self.task.num_source_triples])[side]
        return _frames(rows, {"head": self.entities, "relation": self.relations, "tail": self.entities})

    def literal_triples(self, side: int) -> Iterator[pl.DataFrame]:
        """Yield frames of the literals of a side, with the columns of triples."""
        rows = self.literals.rows_of_sides(self.task.num_source_entities)[side]
        return _literal_frames(self.literals, rows, self.entities, self.predicates)

    def statements(self, side: int) -> Iterator[pl.DataFrame]:
        """Yield frames of the triples of a side, then of its literals."""
        return chain(self.triples(side), self.literal_triples(side))

    def links(self) -> dict[str, Iterator[pl.DataFrame]]:
        """Return frames of the links, for each split that has links."""
        splits = {split: getattr(self.task, f"{split}_links") for split in ("train", "valid", "test")}
        ends = {"source": self.entities, "target": self.entities}
        return {split: _frames(rows, ends) for split, rows in splits.items() if len(rows)}


def _files(task: AlignmentTask, names: TaskNames, literals: Literals, form: str) -> _Files:
    """Yield the name of each file of a format, without the suffix of a compression, and its chunks of bytes."""
    entities, relations, predicates = map(name_column, (names.entities, names.relations, literals.predicate_names))
    if form in ("nt", "nq", "ttl"):
        columns = (
            _terms(column, blank) for column, blank in ((entities, True), (relations, False), (predicates, False))
        )
        entities, relations, predicates = columns
        return _rdf_files(_Pair(task, entities, relations, literals, predicates), form)
    _check_names((entities, relations, predicates), form)
    predicates = pack_names(predicates, predicates.str.starts_with(PACKED))  # a name that looks packed is packed again
    pair = _Pair(task, entities, relations, literals, predicates)
    if form in ("openea", "dbpedia1m"):
        return _folder_files(pair, "721_5fold/1/" if form == "openea" else "")
    return _dbp15k_files(pair) if form == "dbp15k" else _table_files(pair, form)


def _rdf_files(pair: _Pair, form: str) -> _Files:
    """Write N-Triples (valid Turtle too) or N-Quads; links are owl:sameAs statements."""
    for side, name in enumerate(("source", "target")):
        end = f" <urn:largegnn:graph/{name}> ." if form == "nq" else " ."
        yield f"{name}.{form}", _lines(pair.statements(side), end)
    for split, frames in pair.links().items():
        statements = (frame.select("source", pl.lit(_SAME_AS).alias("relation"), "target") for frame in frames)
        yield f"{split}_links.nt", _lines(statements, " .")


def _folder_files(pair: _Pair, link_folder: str) -> _Files:
    """Write the layout of OpenEA or DBpedia1M; only OpenEA's has a link folder, and a file with all links."""
    for side in (0, 1):
        yield f"rel_triples_{side + 1}", _table(pair.triples(side), "\t")
        if len(pair.literals):
            yield f"attr_triples_{side + 1}", _table(pair.literal_triples(side), "\t")
    for split, frames in pair.links().items():
        yield f"{link_folder}{split}_links", _table(frames, "\t")
    if link_folder:
        yield "ent_links", _table(chain.from_iterable(pair.links().values()), "\t")


def _dbp15k_files(pair: _Pair) -> _Files:
    """Write DBP15K's layout: ids in all files, and files that name them.

    DBP15K has no valid links; ours are written to valid_ent_ids.
    """
    task = pair.task
    numbered = dataclasses.replace(pair, entities=_numbers(task.num_entities), relations=_numbers(task.num_relations))
    for name, names, num_source in (
        ("ent_ids", pair.entities, task.num_source_entities),
        ("rel_ids", pair.relations, task.num_source_relations),
    ):
        for side, rows in enumerate(np.split(np.arange(len(names)), [num_source])):
            columns = {"id": _numbers(len(names)), "name": names}
            yield f"{name}_{side + 1}", _table(_frames(np.column_stack([rows, rows]), columns), "\t")
    for side in (0, 1):
        yield f"triples_{side + 1}", _table(numbered.triples(side), "\t")
    files = {"train": "sup_ent_ids", "valid": "valid_ent_ids", "test": "ref_ent_ids"}
    for split, frames in numbered.links().items():
        yield files[split], _table(frames, "\t")


def _table_files(pair: _Pair, form: str) -> _Files:
    """Write two tables of triples and a table of links for each split: tsv, csv or parquet."""
    files = {name: pair.statements(side) for side, name in enumerate(("source", "target"))}
    for name, frames in (files | {f"{split}_links": frames for split, frames in pair.links().items()}).items():
        if form == "parquet":
            yield f"{name}.parquet", _parquet(frames)
        else:
            yield f"{name}.{form}", _table(frames, "\t" if form == "tsv" else ",", has_header=True)


def _frames(rows: IntArray, columns: Mapping[str, pl.Series]) -> Iterator[pl.DataFrame]:
    """Replace positions by texts, a million rows at a time; column c of `rows` indexes the c-th of `columns`."""
    for first in range(0, max(len(rows), 1), _ROWS):
        part = rows[first : first + _ROWS]
        yield pl.DataFrame({name: texts.gather(part[:, index]) for index, (name, texts) in enumerate(columns.items())})


def _literal_frames(
    literals: Literals, rows: slice, entities: pl.Series, predicates: pl.Series
) -> Iterator[pl.DataFrame]:
    """Yield literals as frames of `head`, `relation` and `tail`, a hundred thousand at a time."""
    datatypes, languages = name_column(literals.datatype_names), name_column(literals.language_names)
    marks = pl.select(pl.when(datatypes == "").then(pl.lit("")).otherwise("^^<" + encode_names(datatypes, False) + ">"))
    tags = pl.select(pl.when(languages == "").then(pl.lit("")).otherwise("@" + languages))
    for first in range(rows.start, rows.stop, _LITERAL_ROWS):
        part = slice(first, min(first + _LITERAL_ROWS, rows.stop))
        value = pl.lit(pl.Series(literals.values.take(range(part.start, part.stop)), dtype=pl.String))
        for plain, escape in _ESCAPES.items():  # the backslash comes first, because the other escapes contain it
            value = value.str.replace_all(plain, escape, literal=True)
        tag = tags.to_series().gather(literals.languages[part])
        mark = marks.to_series().gather(literals.datatypes[part])
        yield pl.select(
            head=entities.gather(literals.entities[part]),
            relation=predicates.gather(literals.predicates[part]),
            tail=pl.concat_str([pl.lit('"'), value, pl.lit('"'), tag, mark]),
        )


def _lines(frames: Iterable[pl.DataFrame], end: str) -> Iterator[bytes]:
    for frame in frames:
        line = pl.concat_str([pl.concat_str(frame.columns, separator=" "), pl.lit(end + "\n")])
        yield frame.select(line.str.join("")).item().encode("utf-8")


def _table(frames: Iterable[pl.DataFrame], separator: str, has_header: bool = False) -> Iterator[bytes]:
    style: Literal["never", "necessary"] = "never" if separator == "\t" else "necessary"
    for number, frame in enumerate(frames):
        header = has_header and number == 0
        yield frame.write_csv(separator=separator, include_header=header, quote_style=style).encode("utf-8")


def _parquet(frames: Iterable[pl.DataFrame]) -> Iterator[bytes]:
    buffer = io.BytesIO()
    pl.concat(frames).write_parquet(buffer)
    yield buffer.getvalue()


def _numbers(count: int) -> pl.Series:
    return pl.int_range(count, eager=True).cast(pl.String)


def _terms(names: pl.Series, keep_blank: bool) -> pl.Series:
    """Format names as in N-Triples."""
    encoded = encode_names(names, keep_blank)
    is_blank = encoded.str.starts_with("_:") & pl.lit(keep_blank)
    return pl.select(pl.when(is_blank).then(encoded).otherwise("<" + encoded + ">")).to_series()


def _check_names(columns: Iterable[pl.Series], form: str) -> None:
    """Refuse names that cannot be read back from a table: names like RDF terms, and in TSV names with separators."""
    pattern = r'^<.*>$|^".*"(@[A-Za-z0-9-]+|\^\^.+)?$|^$' + (r"|\r\n" if form in ("csv", "parquet") else r"|[\t\r\n]")
    for column in columns:
        refused = column.filter(column.str.contains(f"(?s){pattern}"))
        if len(refused):
            raise InputError(
                f"{form} cannot hold a name in brackets or quotes, or with a separator in it",
                found=repr(refused[0]),
                fix="write nt or ttl instead",
            )
