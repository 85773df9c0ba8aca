"""A task written to files in any format the readers take: what `load_pair` reads back to the same task.

In: a task, its names and, where given, its literals. Out: files in a folder. Folder layouts (openea, dbpedia1m, dbp15k)
hold TSV files; the other formats write source.*, target.* and link files. Literals stand among the triples, in OpenEA's
layout in attr_triples_1 and attr_triples_2; dbp15k has no place for them. Every file may be packed. Rows are written a
million at a time.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from largegnn.artifacts import AlignmentTask, IntArray, StringTable, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.data.compression import SUFFIXES, compressor
from largegnn.data.iri import PACKED, encode_names, pack_names
from largegnn.data.write_literals import literal_frames, literal_lines
from largegnn.errors import InputError, StorageError

__all__ = ["WRITERS", "write_pair"]

_ROWS = 1_000_000
_SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"
_SPLITS = ("train", "valid", "test")


def write_pair(
    task: AlignmentTask,
    names: TaskNames,
    folder: Path,
    form: str,
    compression: str | None = None,
    literals: Literals | None = None,
) -> list[Path]:
    """Write a task in one of `WRITERS`, packed with one of gzip, bzip2 and zstd or not; returns the files."""
    if form not in WRITERS:
        raise InputError(f"no writer is called {form!r}", expected=f"one of {', '.join(WRITERS)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            "the output folder is not empty",
            where=str(folder),
            expected="a new or empty folder",
            fix="name another one",
        )
    try:
        return WRITERS[form](_Pair(task, names, folder, compression, literals or Literals.empty()))
    except OSError as error:
        raise StorageError(f"cannot write to {error.filename or folder}: {error.strerror or error}") from error


class _Pair:
    """A task about to be written: columns of names, and files that may be packed."""

    def __init__(
        self, task: AlignmentTask, names: TaskNames, folder: Path, compression: str | None, literals: Literals
    ) -> None:
        self.task, self.folder, self.compression, self.literals = task, folder, compression, literals
        self.suffix = next((suffix for suffix, name in SUFFIXES.items() if name == compression), "")
        self.entities = _column(names.entities)
        self.relations = _column(names.relations)
        self.predicates = _column(literals.predicate_names)
        self.written: list[Path] = []

    def triples(self, side: int) -> IntArray:
        first = self.task.num_source_triples
        return self.task.triples[:first] if side == 0 else self.task.triples[first:]

    def literal_rows(self, side: int) -> slice:
        """Which literals are those of a side."""
        return self.literals.rows_of_sides(self.task.num_source_entities)[side]

    def literal_lines(self, side: int, between: str) -> Iterator[bytes]:
        """The literals of a side as lines of a table."""
        return literal_lines(self.literals, self.literal_rows(side), self.entities, self.column_names(), between)

    def literal_frames(self, side: int) -> Iterator[pl.DataFrame]:
        """The literals of a side as rows of a table."""
        return literal_frames(self.literals, self.literal_rows(side), self.entities, self.column_names())

    def column_names(self) -> pl.Series:
        """The predicates as tables have them: one that looks packed is packed once more."""
        return pack_names(self.predicates, self.predicates.str.starts_with(PACKED))

    def links(self) -> dict[str, IntArray]:
        """The splits that hold links."""
        splits = {split: getattr(self.task, f"{split}_links") for split in _SPLITS}
        return {split: links for split, links in splits.items() if len(links)}

    def write(self, name: str, chunks: Iterator[bytes]) -> None:
        """Write one file, packed as asked for."""
        path = self.folder / f"{name}{self.suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        packer: Any = compressor(self.compression)
        with path.open("wb") as file:
            for chunk in chunks:
                file.write(packer.compress(chunk))
            file.write(packer.flush())
        self.written.append(path)


def _column(table: StringTable) -> pl.Series:
    return pl.Series(list(table), dtype=pl.String)


def _slices(rows: IntArray) -> Iterator[IntArray]:
    for first in range(0, len(rows), _ROWS):
        yield rows[first : first + _ROWS]


def _named(rows: IntArray, *columns: tuple[str, pl.Series]) -> pl.DataFrame:
    return pl.DataFrame({name: values.gather(rows[:, index]) for index, (name, values) in enumerate(columns)})


def _table(rows: IntArray, separator: str, columns: tuple[tuple[str, pl.Series], ...], header: bool) -> Iterator[bytes]:
    for number, part in enumerate(_slices(rows)):
        yield _delimited(_named(part, *columns), separator, header and number == 0)


def _delimited(frame: pl.DataFrame, separator: str, header: bool) -> bytes:
    style: Literal["never", "necessary"] = "never" if separator == "\t" else "necessary"
    return frame.write_csv(separator=separator, include_header=header, quote_style=style).encode("utf-8")


def _refuse_odd_names(pair: _Pair, form: str) -> None:
    """Refuse names a table would not give back: in TSV those with separators, everywhere those that look like RDF."""
    pattern = r'^<.*>$|^".*"(@[A-Za-z0-9-]+|\^\^.+)?$|^$' + (r"|[\t\r\n]" if form == "tsv" else r"|\r\n")
    for column in (pair.entities, pair.relations, pair.predicates):
        odd = column.filter(column.str.contains(f"(?s){pattern}"))
        if len(odd):
            raise InputError(
                f"{form} cannot hold a name in brackets or quotes, or with a separator in it",
                found=repr(odd[0]),
                fix="write nt or ttl instead",
            )


def _triple_columns(pair: _Pair) -> tuple[tuple[str, pl.Series], ...]:
    return (("head", pair.entities), ("relation", pair.relations), ("tail", pair.entities))


def _link_columns(pair: _Pair) -> tuple[tuple[str, pl.Series], ...]:
    return (("source", pair.entities), ("target", pair.entities))


def _write_tables(pair: _Pair, prefix: str) -> None:
    """The TSV files OpenEA and DBpedia1M share; `prefix` is where the link files go."""
    _refuse_odd_names(pair, "tsv")
    for side in (0, 1):
        pair.write(f"rel_triples_{side + 1}", _table(pair.triples(side), "\t", _triple_columns(pair), header=False))
        if len(pair.literals):
            pair.write(f"attr_triples_{side + 1}", pair.literal_lines(side, "\t"))
    for split, links in pair.links().items():
        pair.write(f"{prefix}{split}_links", _table(links, "\t", _link_columns(pair), header=False))


def _write_openea(pair: _Pair) -> list[Path]:
    _write_tables(pair, "721_5fold/1/")
    every = np.concatenate(list(pair.links().values()))
    pair.write("ent_links", _table(every, "\t", _link_columns(pair), header=False))
    return pair.written


def _write_dbpedia1m(pair: _Pair) -> list[Path]:
    _write_tables(pair, "")
    return pair.written


def _write_dbp15k(pair: _Pair) -> list[Path]:
    """Numbers everywhere; valid links, which DBP15K has not, go to valid_ent_ids."""
    if len(pair.literals):
        raise InputError("dbp15k has no place for literals", fix="write openea, nt or ttl instead")
    _refuse_odd_names(pair, "tsv")
    task = pair.task
    entity_ids = pl.int_range(task.num_entities, eager=True).cast(pl.String)
    relation_ids = pl.int_range(task.num_relations, eager=True).cast(pl.String)
    splits = ((0, task.num_source_entities, task.num_source_relations), (1, task.num_entities, task.num_relations))
    first_entity = first_relation = 0
    for side, last_entity, last_relation in splits:
        for name, ids, names, first, last in (
            ("ent_ids", entity_ids, pair.entities, first_entity, last_entity),
            ("rel_ids", relation_ids, pair.relations, first_relation, last_relation),
        ):
            rows = np.repeat(np.arange(first, last)[:, None], 2, axis=1)
            pair.write(f"{name}_{side + 1}", _table(rows, "\t", (("id", ids), ("name", names)), header=False))
        columns = (("head", entity_ids), ("relation", relation_ids), ("tail", entity_ids))
        pair.write(f"triples_{side + 1}", _table(pair.triples(side), "\t", columns, header=False))
        first_entity, first_relation = last_entity, last_relation
    link_files = {"train": "sup_ent_ids", "valid": "valid_ent_ids", "test": "ref_ent_ids"}
    for split, links in pair.links().items():
        pair.write(
            link_files[split], _table(links, "\t", (("source", entity_ids), ("target", entity_ids)), header=False)
        )
    return pair.written


def _write_delimited(pair: _Pair, form: str) -> list[Path]:
    separator = "\t" if form == "tsv" else ","
    _refuse_odd_names(pair, form)
    for side, name in enumerate(("source", "target")):
        rows = _table(pair.triples(side), separator, _triple_columns(pair), header=True)
        more = (
            _delimited(frame, separator, header=not len(pair.triples(side)) and not number)
            for number, frame in enumerate(pair.literal_frames(side))
        )
        pair.write(f"{name}.{form}", chain(rows, more))
    for split, links in pair.links().items():
        pair.write(f"{split}_links.{form}", _table(links, separator, _link_columns(pair), header=True))
    return pair.written


def _write_parquet(pair: _Pair) -> list[Path]:
    def packed(frames: Iterable[pl.DataFrame]) -> Iterator[bytes]:
        buffer = io.BytesIO()
        pl.concat(frames).write_parquet(buffer)
        yield buffer.getvalue()

    _refuse_odd_names(pair, "parquet")
    for side, name in enumerate(("source", "target")):
        triples = _named(pair.triples(side), *_triple_columns(pair))
        pair.write(f"{name}.parquet", packed([triples, *pair.literal_frames(side)]))
    for split, links in pair.links().items():
        pair.write(f"{split}_links.parquet", packed([_named(links, *_link_columns(pair))]))
    return pair.written


def _statements(rows: IntArray, terms: tuple[pl.Series, pl.Series, pl.Series], ending: str) -> Iterator[bytes]:
    for part in _slices(rows):
        frame = _named(part, ("s", terms[0]), ("p", terms[1]), ("o", terms[2]))
        line = pl.concat_str(["s", pl.lit(" "), "p", pl.lit(" "), "o", pl.lit(ending)])
        yield (frame.select(line).to_series().str.join("\n").item() + "\n").encode("utf-8")


def _terms(names: pl.Series, keep_blank: bool = True) -> pl.Series:
    encoded = encode_names(names, keep_blank)
    bracketed = "<" + encoded + ">"
    if not keep_blank:
        return bracketed
    return pl.select(pl.when(encoded.str.starts_with("_:")).then(encoded).otherwise(bracketed)).to_series()


def _write_lines(pair: _Pair, form: str) -> list[Path]:
    entities, relations = _terms(pair.entities), _terms(pair.relations, keep_blank=False)
    for side, name in enumerate(("source", "target")):
        ending = f" <urn:largegnn:graph/{name}> ." if form == "nq" else " ."
        triples = _statements(pair.triples(side), (entities, relations, entities), ending)
        pair.write(f"{name}.{form}", chain(triples, _literal_statements(pair, side, entities, ending)))
    _write_same_as(pair, entities)
    return pair.written


def _literal_statements(pair: _Pair, side: int, entities: pl.Series, ending: str = " .") -> Iterator[bytes]:
    predicates = _terms(pair.predicates, keep_blank=False)
    return literal_lines(pair.literals, pair.literal_rows(side), entities, predicates, " ", ending)


def _write_same_as(pair: _Pair, entities: pl.Series) -> None:
    same_as = pl.Series([f"<{_SAME_AS}>"])
    for split, links in pair.links().items():
        rows = np.stack([links[:, 0], np.zeros(len(links), dtype=np.int32), links[:, 1]], axis=1)
        pair.write(f"{split}_links.nt", _statements(rows, (entities, same_as, entities), " ."))


def _write_turtle(pair: _Pair) -> list[Path]:
    """Turtle with the triples of a head in one statement, and a prefix for the relations that allow one."""
    entities, relations = _terms(pair.entities), _terms(pair.relations, keep_blank=False)
    space = _common_space(encode_names(pair.relations, keep_blank=False))
    head = f"@prefix r: <{space}> .\n" if space else ""
    if space:
        local = relations.str.strip_prefix(f"<{space}").str.strip_suffix(">")
        fits = relations.str.starts_with(f"<{space}") & local.str.contains(r"^[A-Za-z0-9_]+$")
        relations = pl.select(pl.when(fits).then("r:" + local).otherwise(relations)).to_series()
    for side, name in enumerate(("source", "target")):
        triples = _turtle(pair.triples(side), entities, relations, head)
        pair.write(f"{name}.ttl", chain(triples, _literal_statements(pair, side, entities)))
    _write_same_as(pair, entities)
    return pair.written


def _turtle(triples: IntArray, entities: pl.Series, relations: pl.Series, head: str) -> Iterator[bytes]:
    yield head.encode("utf-8")
    for part in _slices(triples):
        frame = _named(part, ("head", entities), ("relation", relations), ("tail", entities))
        said = pl.concat_str(["relation", pl.lit(" "), "tail"]).str.join(" ;\n    ")
        groups = frame.group_by("head", maintain_order=True).agg(said.alias("said"))
        line = pl.concat_str(["head", pl.lit(" "), "said", pl.lit(" .")])
        yield (groups.select(line).to_series().str.join("\n").item() + "\n").encode("utf-8")


def _common_space(names: pl.Series) -> str:
    spaces = names.str.extract(r"^(.*[/#:])").drop_nulls()
    return str(spaces.mode().sort()[0]) if len(spaces) else ""


WRITERS: dict[str, Callable[[_Pair], list[Path]]] = {
    "openea": _write_openea,
    "dbpedia1m": _write_dbpedia1m,
    "dbp15k": _write_dbp15k,
    "nt": lambda pair: _write_lines(pair, "nt"),
    "nq": lambda pair: _write_lines(pair, "nq"),
    "ttl": _write_turtle,
    "tsv": lambda pair: _write_delimited(pair, "tsv"),
    "csv": lambda pair: _write_delimited(pair, "csv"),
    "parquet": _write_parquet,
}
