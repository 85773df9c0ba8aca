"""Replace the names in triples and literals by integer codes, batch by batch, then number a whole graph at once.

In: batches of names. Out: sorted distinct triples of int32 ids, and the literals of both graphs as one artifact,
distinct and sorted, so that the order of files and lines does not matter. Each batch is coded against its own distinct
names, so that the strings of a file are never all in memory; the vocabularies of all batches are joined at the end.
Literals are rows of a frame: predicates, datatypes and languages as categories, values as text.
Memory: twice the bytes of the values, and about 60 bytes for each literal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from largegnn.artifacts import IntArray
from largegnn.artifacts.literals import Literals
from largegnn.data.batch import LiteralBatch, ReadCounts, TripleBatch, no_names
from largegnn.data.iri import decode_names
from largegnn.data.vocabulary import (
    CodedColumn,
    join_columns,
    lookup,
    name_column,
    refuse_too_many,
    sorted_distinct,
    to_strings,
)
from largegnn.machine.progress import progress

__all__ = [
    "CodedBatch",
    "CodedGraph",
    "CodedLiterals",
    "code_batches",
    "join_literals",
    "literal_rows",
    "number_triples",
]

_CATEGORIES = ("predicate", "datatype", "language")
_SCHEMA = {"entity": pl.Int32, **dict.fromkeys(_CATEGORIES, pl.Categorical), "value": pl.String}


@dataclass(frozen=True, eq=False)
class CodedLiterals:
    """Literals with provisional codes: `rows` holds entity, predicate, datatype, language and value.

    Until entities have ids, the column `entity` holds positions in `head_names`.
    """

    head_names: pl.Series
    rows: pl.DataFrame

    @classmethod
    def of(cls, batch: LiteralBatch) -> CodedLiterals:
        """Code a batch of literals."""
        heads = CodedColumn.of(batch.heads)
        columns = (heads.codes, batch.predicates, batch.datatypes, batch.languages, batch.values)
        return cls(heads.names, pl.DataFrame(dict(zip(_SCHEMA, columns, strict=True)), schema_overrides=_SCHEMA))

    @classmethod
    def joined(cls, batches: Sequence[CodedLiterals]) -> CodedLiterals:
        """Join all batches, and decode packed names."""
        head_names, codes = join_columns(
            [CodedColumn(part.head_names, part.rows["entity"].to_numpy()) for part in batches]
        )
        rows = pl.concat([pl.DataFrame(schema=_SCHEMA), *(part.rows for part in batches)])
        entities = pl.Series("entity", np.concatenate([np.empty(0, dtype=np.int32), *codes]))
        return cls(head_names, rows.with_columns(entities, *(_decoded(rows[name]) for name in _CATEGORIES)))

    def with_ids(self, ids: IntArray) -> pl.DataFrame:
        """Return the rows whose entities have ids; `ids` (n,) are the ids of `head_names`, -1 for none."""
        return self.rows.with_columns(entity=ids[self.rows["entity"].to_numpy()]).filter(pl.col("entity") >= 0)


def _decoded(column: pl.Series) -> pl.Series:
    codes, names = _categories(column)
    return decode_names(names).cast(pl.Categorical).gather(codes).alias(column.name)


def _categories(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return a column of categories as positions in its distinct names, and these names, sorted."""
    names = column.unique().cast(pl.String).sort()
    return column.cast(pl.Enum(names)).to_physical().cast(pl.Int32), names


def literal_rows(literals: Literals, entity_of_old: IntArray) -> pl.DataFrame:
    """Return the literals of an artifact as rows, with the new ids of their entities."""
    tables = (literals.predicate_names, literals.datatype_names, literals.language_names)
    codes = (literals.predicates, literals.datatypes, literals.languages)
    named = [name_column(table).cast(pl.Categorical).gather(rows) for table, rows in zip(tables, codes, strict=True)]
    columns = (entity_of_old[literals.entities], *named, name_column(literals.values))
    return pl.DataFrame(dict(zip(_SCHEMA, columns, strict=True)), schema_overrides=_SCHEMA)


def join_literals(parts: Sequence[pl.DataFrame]) -> Literals:
    """Join the literals of several frames to one artifact, distinct and sorted."""
    rows = pl.concat([pl.DataFrame(schema=_SCHEMA), *parts])
    coded = {name: _categories(rows[name]) for name in _CATEGORIES}
    rows = rows.with_columns(codes.alias(name) for name, (codes, _) in coded.items()).sort(*_SCHEMA)
    rows = rows.filter(pl.any_horizontal(pl.all() != pl.all().shift()).fill_null(True))
    return Literals(
        rows["entity"].to_numpy(),
        rows["predicate"].to_numpy(),
        to_strings(rows["value"]),
        rows["datatype"].to_numpy(),
        rows["language"].to_numpy(),
        *(to_strings(names) for _, names in coded.values()),
    )


@dataclass(frozen=True, eq=False)
class CodedBatch:
    """A batch of triples in codes: `ends` holds the heads, then the tails.

    `literals` is None if literals are not kept; `literal_heads` are the entities that have literals. `listed` are the
    distinct entities that are kept without triples; with repeats there were `num_listed`.
    """

    ends: CodedColumn
    relations: CodedColumn
    literals: CodedLiterals | None
    literal_heads: pl.Series
    num_literals: int
    listed: pl.Series
    num_listed: int
    counts: ReadCounts

    @classmethod
    def of(cls, batch: TripleBatch, keep_literals: bool) -> CodedBatch:
        """Code a batch."""
        return cls(
            CodedColumn.of(pl.concat([batch.heads, batch.tails])),
            CodedColumn.of(batch.relations),
            CodedLiterals.of(batch.literals) if keep_literals else None,
            batch.literals.heads.unique(),
            len(batch.literals),
            batch.entities.unique(),
            len(batch.entities),
            batch.counts,
        )


@dataclass(frozen=True, eq=False)
class CodedGraph:
    """One graph with provisional codes: `triples` (m, 3) index into the two name columns; nothing is sorted yet.

    `attribute_entities` have literals; `listed_entities` are kept without triples, with repeats there were
    `num_listed`; `literals` is None if literals are not kept.
    """

    entity_names: pl.Series
    relation_names: pl.Series
    triples: IntArray
    attribute_entities: pl.Series
    num_attribute_triples: int
    listed_entities: pl.Series
    num_listed: int
    counts: ReadCounts
    literals: CodedLiterals | None


def code_batches(batches: Iterable[TripleBatch | CodedBatch], keep_literals: bool) -> CodedGraph:
    """Code every batch, then join their vocabularies; literals are counted, and kept if wanted."""
    ends: list[CodedColumn] = []
    relations: list[CodedColumn] = []
    literals: list[CodedLiterals] = []
    attribute_entities, listed_entities = no_names(), no_names()
    num_attributes = num_listed = 0
    counts = ReadCounts()
    with progress("reading", None, "triples") as work:
        for batch in batches:
            coded = batch if isinstance(batch, CodedBatch) else CodedBatch.of(batch, keep_literals)
            ends.append(coded.ends)
            relations.append(coded.relations)
            num_attributes += coded.num_literals
            num_listed += coded.num_listed
            counts = ReadCounts.total([counts, coded.counts])
            if coded.num_literals:
                attribute_entities = pl.concat([attribute_entities, coded.literal_heads]).unique()
                if coded.literals is not None:
                    literals.append(coded.literals)
            if coded.num_listed:
                listed_entities = pl.concat([listed_entities, coded.listed]).unique()
            work.advance(len(coded.relations.codes) + coded.num_literals)
    entity_names, entity_codes = join_columns(ends)
    relation_names, relation_codes = join_columns(relations)
    refuse_too_many(entities=len(entity_names), relations=len(relation_names), triples=sum(map(len, relation_codes)))
    # The entity codes of a batch are those of its heads, then those of its tails.
    triples = np.empty((sum(map(len, relation_codes)), 3), dtype=np.int32)
    end = 0
    for entities_of_batch, relations_of_batch in zip(entity_codes, relation_codes, strict=True):
        size = len(relations_of_batch)
        block = triples[end : end + size]
        block[:, 0] = entities_of_batch[:size]
        block[:, 1] = relations_of_batch
        block[:, 2] = entities_of_batch[size:]
        end += size
    return CodedGraph(
        entity_names,
        relation_names,
        triples,
        decode_names(attribute_entities),
        num_attributes,
        decode_names(listed_entities),
        num_listed,
        counts,
        CodedLiterals.joined(literals) if keep_literals else None,
    )


def number_triples(graph: CodedGraph, entities: pl.Series, relations: pl.Series) -> IntArray:
    """Return the distinct triples of a graph in final ids, sorted by head, relation and tail, (m, 3) int32."""
    entity_ids = lookup(graph.entity_names, entities)
    relation_ids = lookup(graph.relation_names, relations)
    triples = np.empty_like(graph.triples)
    triples[:, 0], triples[:, 2] = entity_ids[graph.triples[:, 0]], entity_ids[graph.triples[:, 2]]
    triples[:, 1] = relation_ids[graph.triples[:, 1]]
    return sorted_distinct(triples, (len(entities), len(relations), len(entities)))
