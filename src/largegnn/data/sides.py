"""Read one graph from its files, give its entities and relations ids, and join two graphs to a task.

Three stages. `read_side` reads the files of one graph into a `Side` with provisional codes. `Side.numbered` gives its
entities and relations ids from 0 (`NumberedSide`); entities that occur only in links are included. `TwoSides` puts both
graphs together as the task, its names and its literals. Unknown entities in a name file are counted, and the file is
refused if all of them are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl

from largegnn.artifacts import AlignmentTask, IntArray, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.data.batch import ReadCounts, TripleBatch, no_names
from largegnn.data.coding import CodedBatch, CodedGraph, CodedLiterals, code_batches, join_literals, number_triples
from largegnn.data.inputs import PairFiles
from largegnn.data.near import near_names
from largegnn.data.readers import coded_attributes, coded_triples, read_links, read_names, read_rows
from largegnn.data.shown import listed, shown
from largegnn.data.vocabulary import distinct, lookup, number_names, refuse_too_many, to_strings
from largegnn.errors import InputError
from largegnn.settings import DataSettings

__all__ = ["SIDES", "NumberedSide", "Side", "TwoSides", "link_translator", "read_side"]

SIDES = ("source", "target")


@dataclass(frozen=True, eq=False)
class NumberedSide:
    """One graph with ids of its own that start at 0.

    `literals` are frames to be joined; `num_alone` entities have literals and are in no triple and no link.
    """

    entities: pl.Series
    relations: pl.Series
    triples: IntArray
    literals: tuple[pl.DataFrame, ...] = ()
    num_alone: int = 0
    num_unknown_names: int = 0

    def count_isolated(self) -> int:
        """Count the entities in no triple."""
        return len(self.entities) - len(np.unique(self.triples[:, ::2]))


@dataclass(frozen=True, eq=False)
class TwoSides:
    """The two graphs of a task: ids of source entities come first, then target entities; relations likewise."""

    source: NumberedSide
    target: NumberedSide

    def __post_init__(self) -> None:
        source, target = self.source, self.target
        refuse_too_many(
            entities=len(source.entities) + len(target.entities),
            relations=len(source.relations) + len(target.relations),
            triples=len(source.triples) + len(target.triples),
        )

    @property
    def entities(self) -> tuple[pl.Series, pl.Series]:
        """The names of the entities of the source and of the target, in the order of their ids."""
        return self.source.entities, self.target.entities

    def names(self) -> TaskNames:
        """Return the names of all ids."""
        relations = pl.concat([self.source.relations, self.target.relations])
        return TaskNames(to_strings(pl.concat(self.entities)), to_strings(relations))

    def task(self, splits: Mapping[str, IntArray], reviewed: IntArray, forbidden: IntArray) -> AlignmentTask:
        """Return the task with its links."""
        offset, relation_offset = len(self.source.entities), len(self.source.relations)
        shift = np.array([offset, relation_offset, offset], dtype=np.int32)
        return AlignmentTask(
            num_source_entities=offset,
            num_target_entities=len(self.target.entities),
            num_source_relations=relation_offset,
            num_target_relations=len(self.target.relations),
            triples=np.concatenate([self.source.triples, self.target.triples + shift]),
            train_links=splits["train"],
            valid_links=splits["valid"],
            test_links=splits["test"],
            reviewed=reviewed,
            forbidden=forbidden,
        )

    def literals(self, *with_task_ids: pl.DataFrame) -> Literals:
        """Join the literals of both graphs, and literals that have the ids of the task already."""
        shift = pl.col("entity") + len(self.source.entities)
        moved = (part.with_columns(shift) for part in self.target.literals)
        return join_literals([*with_task_ids, *self.source.literals, *moved])


@dataclass(frozen=True)
class Side:
    """One graph as read: coded triples and literals, names from a file, and the entities an id folder lists.

    Where literals are not kept, entities that have only literals are dropped.
    """

    graph: CodedGraph
    counts: ReadCounts
    names: CodedLiterals | None = None
    name_file: Path | None = None
    name_of_id: pl.DataFrame | None = None

    def mentioned_entities(self) -> pl.Series:
        """Return every entity the files of this graph mention, except those of a name file."""
        return distinct([self.graph.entity_names, self.graph.attribute_entities, self.declared_entities()])

    def declared_entities(self) -> pl.Series:
        """Return the entities that an id file or the rows of a table declare, with or without triples."""
        ids = no_names() if self.name_of_id is None else self.name_of_id["name"]
        return pl.concat([self.graph.listed_entities, ids])

    def numbered(self, linked: list[pl.Series], salt: int) -> NumberedSide:
        """Give entities and relations their ids; `linked` are the entities of links, which belong to the graph too.

        `salt` seeds the shuffle of the ids: it differs between the sides, and `salt + 2` is for the relations.
        """
        graph = self.graph
        structural = distinct([graph.entity_names, self.declared_entities(), *linked])
        alone = graph.attribute_entities.filter(pl.Series(lookup(graph.attribute_entities, structural) < 0))
        literals = graph.literals
        kept = structural if literals is None else pl.concat([structural, alone])
        entities, relations = number_names(kept, salt), number_names(graph.relation_names, salt + 2)
        triples = number_triples(graph, entities, relations)
        parts = [] if literals is None else [literals.with_ids(lookup(literals.head_names, entities))]
        num_unknown = 0
        if self.names is not None:
            ids = lookup(self.names.head_names, entities)
            num_unknown = int((ids < 0).sum())
            if num_unknown == len(ids):
                raise _all_unknown(self.name_file, self.names.head_names, entities)
            parts.append(self.names.with_ids(ids))
        return NumberedSide(entities, relations, triples, tuple(parts), len(alone), num_unknown)


def read_side(files: PairFiles, side: int, settings: DataSettings, keep_literals: bool) -> Side:
    """Read the files of one graph."""
    path, attributes, names = files.triples[side], files.attributes[side], files.names[side]
    key = (settings.source_key, settings.target_key)[side]
    batches: Iterator[TripleBatch | CodedBatch]
    batches = read_rows(path, key, settings.format) if key else coded_triples(path, settings.format, keep_literals)
    if attributes is not None:
        batches = chain(batches, coded_attributes(attributes, keep_literals))
    graph = code_batches(batches, keep_literals)
    if not len(graph.triples):
        _check_has_triples(graph, SIDES[side], path, keep_literals)
    read = Side(graph, graph.counts)
    if names is not None and keep_literals:
        read = _with_names(read, names)
    if files.entity_ids is None:
        return read
    return _with_ids(read, files, side)


def _with_names(side: Side, path: Path) -> Side:
    names = code_batches(read_names(path), keep_literals=True)
    if not names.num_attribute_triples:
        raise InputError("the file holds no names", where=str(path), expected="two columns: entity, name")
    counts = ReadCounts.total([side.counts, names.counts])
    return replace(side, names=names.literals, name_file=path, counts=counts)


def _with_ids(side: Side, files: PairFiles, index: int) -> Side:
    """Replace the ids that the files of an id folder use by names."""
    assert files.entity_ids is not None
    path = files.triples[index]
    name_of_id = _read_ids(files.entity_ids[index])
    graph = side.graph
    graph = replace(
        graph,
        entity_names=_translate(graph.entity_names, name_of_id, path),
        attribute_entities=_translate_known(graph.attribute_entities, name_of_id).unique(),
        literals=_translate_heads(graph.literals, name_of_id),
    )
    if files.relation_ids is not None:
        relations = _read_ids(files.relation_ids[index])
        graph = replace(graph, relation_names=_translate(graph.relation_names, relations, path))
    return replace(side, graph=graph, names=_translate_heads(side.names, name_of_id), name_of_id=name_of_id)


def _translate_heads(coded: CodedLiterals | None, name_of_id: pl.DataFrame) -> CodedLiterals | None:
    return None if coded is None else replace(coded, head_names=_translate_known(coded.head_names, name_of_id))


def link_translator(source: Side, target: Side) -> Callable[[pl.Series, int, Path], pl.Series] | None:
    """Return a function that translates the ids in the links of an id folder to names; None if the links have names."""
    if source.name_of_id is None or target.name_of_id is None:
        return None
    tables = (source.name_of_id, target.name_of_id)
    return lambda ids, side, path: _translate(ids, tables[side], path)


def _read_ids(path: Path) -> pl.DataFrame:
    """Read an id file as the columns `id` and `name`, both distinct."""
    links = read_links(path)
    table = pl.DataFrame({"id": links.sources, "name": links.targets})
    for column in ("id", "name"):
        repeated = table[column].filter(table[column].is_duplicated())
        if len(repeated):
            raise InputError(
                f"duplicate {column} in the id file",
                where=str(path),
                found=shown(str(repeated.first())),
                fix="keep one line",
            )
    return table


def _translate(ids: pl.Series, name_of_id: pl.DataFrame, path: Path) -> pl.Series:
    codes = lookup(ids, name_of_id["id"])
    if bool((codes < 0).any()):
        unknown = ids.filter(pl.Series(codes < 0))
        raise InputError(
            f"{unknown.n_unique():,} ids have no name in the id files",
            where=str(path),
            found=listed(unknown.unique(maintain_order=True)),
        )
    return name_of_id["name"].gather(codes)


def _translate_known(names: pl.Series, name_of_id: pl.DataFrame) -> pl.Series:
    """Translate ids to names and keep names as they are; files of literals may use either."""
    codes = lookup(names, name_of_id["id"])
    is_id = pl.Series((codes >= 0) & (lookup(names, name_of_id["name"]) < 0))
    translated = name_of_id["name"].gather(np.maximum(codes, 0)) if len(name_of_id) else names
    return pl.select(pl.when(is_id).then(translated).otherwise(names)).to_series()


def _check_has_triples(graph: CodedGraph, side: str, path: Path, keep_literals: bool) -> None:
    """Refuse a graph without triples between entities, unless its literals are kept and can be compared.

    The usual causes are that the file of the literals was given, or that all names are in quotes.
    """
    problem = f"the {side} graph has no triples between entities"
    if len(graph.listed_entities):
        if keep_literals:
            return
        raise InputError(
            problem,
            where=str(path),
            expected="triples, or names and values to compare",
            found=f"a table of {len(graph.listed_entities):,} rows",
            fix="compare the values too: leave `--channels structure` out",
        )
    if not graph.num_attribute_triples:
        raise InputError(problem, where=str(path), expected="lines such as head TAB relation TAB tail")
    quoted = graph.attribute_entities.str.starts_with('"').all()
    if keep_literals and not quoted:
        return
    raise InputError(
        problem,
        where=str(path),
        expected="tails that are names of entities",
        found=f"{graph.num_attribute_triples:,} triples, all with literals (tails in quotes)",
        fix="take the quotes away: TSV has none, or save the file as CSV"
        if quoted
        else "give the file of the relations between entities; this one seems to hold their names and values only",
    )


def _all_unknown(path: Path | None, unknown: pl.Series, known: pl.Series) -> InputError:
    """Return the error for a name file none of whose entities the graph has."""
    near = near_names(unknown.head(5), known)
    cause = "; ".join(f"{shown(name)} may be {listed(near[name])}" for name in near)
    return InputError(
        "no entity of the name file is in its graph",
        where=str(path),
        expected=f"entities as the graph writes them, such as {listed(known.sort().head(3))}",
        found=f"{len(unknown):,} entities, all unknown: {listed(unknown.sort())}",
        fix=cause or "check that the name files of source and target are not swapped",
    )
