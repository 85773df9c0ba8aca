"""Add triples and links to a task; the existing entities and relations keep their order.

In: a task with its names and literals, and files of added triples and links. Out: the enlarged task, and the new id
of each old entity and relation. Source ids come before target ids: old sources keep their ids, new sources follow
them, old targets move up by the number of new sources, and new targets come last. Relations are renumbered likewise.
Refused: triples without an entity of the run, and triples of the other graph. If literals are kept, a file may hold
literals alone. Cost: the added files are read, and the triples sorted once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from largegnn.artifacts import AlignmentTask, IntArray, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.data.batch import TripleBatch
from largegnn.data.coding import code_batches, literal_rows, number_triples
from largegnn.data.iri import highest_number, renumbered
from largegnn.data.links import check_known, check_splits, number_links, read_named_links
from largegnn.data.readers import read_triples
from largegnn.data.shown import listed, shown
from largegnn.data.sides import SIDES, NumberedSide, TwoSides
from largegnn.data.vocabulary import distinct, lookup, name_column, number_names, sorted_distinct
from largegnn.errors import InputError

__all__ = ["Additions", "EnlargedTask", "enlarge_task", "shifted_ids"]

_log = logging.getLogger(__name__)
_SHOWN = 5


@dataclass(frozen=True)
class Additions:
    """Files to add to a task: triples of either side, known links (`seeds`), and links for the report only."""

    source_triples: tuple[Path, ...] = ()
    target_triples: tuple[Path, ...] = ()
    seeds: Path | None = None
    test_links: Path | None = None

    def paths(self) -> list[Path]:
        """Return every file that is read."""
        links = [path for path in (self.seeds, self.test_links) if path is not None]
        return [*self.source_triples, *self.target_triples, *links]


@dataclass(frozen=True, eq=False)
class EnlargedTask:
    """An enlarged task; `entity_of_old` (n,) and `relation_of_old` (R,) map old ids to new ids.

    The counts of added entities, relations and triples are (source, target). `literals` may be empty.
    """

    task: AlignmentTask
    names: TaskNames
    literals: Literals
    entity_of_old: IntArray
    relation_of_old: IntArray
    num_added_entities: tuple[int, int]
    num_added_relations: tuple[int, int]
    num_added_triples: tuple[int, int]


def shifted_ids(num_source: int, num_target: int, num_added_source: int) -> IntArray:
    """Return the new id of each old id, (num_source + num_target,): target ids move up by the added sources."""
    ids = np.arange(num_source + num_target, dtype=np.int32)
    ids[num_source:] += num_added_source
    return ids


def enlarge_task(
    task: AlignmentTask, names: TaskNames, added: Additions, form: str = "auto", literals: Literals | None = None
) -> EnlargedTask:
    """Read the added files and number the new names after the old ones; `literals` None leaves literals out."""
    if not added.source_triples and not added.target_triples:
        raise InputError(
            "no triples were given", expected="--source-triples FILE, --target-triples FILE, or both of them"
        )
    old = _sides_of(task, names)
    files = (added.source_triples, added.target_triples)
    source, target = (_grow(old, side, files[side], form, literals is not None) for side in (0, 1))
    num_added = [
        (len(source.entities) - len(old[0].entities), len(target.entities) - len(old[1].entities)),
        (len(source.relations) - len(old[0].relations), len(target.relations) - len(old[1].relations)),
        (len(source.triples) - len(old[0].triples), len(target.triples) - len(old[1].triples)),
    ]
    entity_of_old = shifted_ids(task.num_source_entities, task.num_target_entities, num_added[0][0])
    relation_of_old = shifted_ids(task.num_source_relations, task.num_target_relations, num_added[1][0])
    joined = TwoSides(source, target)
    enlarged_names = joined.names()
    splits = {
        "train": _with_links(entity_of_old[task.train_links], added.seeds, joined.entities),
        "valid": entity_of_old[task.valid_links],
        "test": _with_links(entity_of_old[task.test_links], added.test_links, joined.entities),
    }
    check_splits(splits, enlarged_names.entities.__getitem__, need_seeds=bool(len(task.train_links)))
    enlarged = joined.task(splits, reviewed=entity_of_old[task.reviewed], forbidden=entity_of_old[task.forbidden])
    all_literals = joined.literals() if literals is None else joined.literals(literal_rows(literals, entity_of_old))
    return EnlargedTask(enlarged, enlarged_names, all_literals, entity_of_old, relation_of_old, *num_added)


def _sides_of(task: AlignmentTask, names: TaskNames) -> tuple[NumberedSide, NumberedSide]:
    entities, relations = name_column(names.entities), name_column(names.relations)
    split, relation_split, triple_split = task.num_source_entities, task.num_source_relations, task.num_source_triples
    shift = np.array([split, relation_split, split], dtype=np.int32)
    source = NumberedSide(entities[:split], relations[:relation_split], task.triples[:triple_split])
    return source, NumberedSide(entities[split:], relations[relation_split:], task.triples[triple_split:] - shift)


def _grow(
    sides: tuple[NumberedSide, NumberedSide], side: int, files: tuple[Path, ...], form: str, keep_literals: bool
) -> NumberedSide:
    """Add the triples of files to one graph; new names are numbered after the old ones."""
    old = sides[side]
    if not files:
        return old
    where = ", ".join(map(str, files))
    graph = code_batches(_read_added(files, form, highest_number(old.entities)), keep_literals)
    if not len(graph.triples) and not (keep_literals and graph.num_attribute_triples):
        raise InputError(f"no triples between entities to add to the {SIDES[side]} graph", where=where)
    file_entities = distinct([graph.entity_names, graph.attribute_entities]) if keep_literals else graph.entity_names
    is_new = pl.Series(lookup(file_entities, old.entities) < 0)
    if bool(is_new.all()):
        raise _not_connected(file_entities, sides, side, where)
    if graph.num_attribute_triples and not keep_literals:
        _log.info("%s literals to add to the %s dropped", f"{graph.num_attribute_triples:,}", SIDES[side])
    # The salts are those of loading: equal names of the two sides do not get similar ids.
    entities = pl.concat([old.entities, number_names(file_entities.filter(is_new), side + 1)])
    new_relations = graph.relation_names.filter(pl.Series(lookup(graph.relation_names, old.relations) < 0))
    relations = pl.concat([old.relations, number_names(new_relations, side + 3)])
    triples = np.concatenate([old.triples, number_triples(graph, entities, relations)])
    literals = graph.literals
    parts = () if literals is None else (literals.with_ids(lookup(literals.head_names, entities)),)
    return NumberedSide(
        entities,
        relations,
        sorted_distinct(triples, (len(entities), len(relations), len(entities))),
        parts,
    )


def _read_added(files: tuple[Path, ...], form: str, highest: int) -> Iterator[TripleBatch]:
    """Read the triples of several files; unlabelled blank nodes are renumbered, since numbers hold within one file."""
    for path in files:
        offset = highest
        for batch in read_triples(path, form):
            literals = replace(batch.literals, heads=renumbered(batch.literals.heads, offset))
            heads, tails = renumbered(batch.heads, offset), renumbered(batch.tails, offset)
            highest = max(highest, *map(highest_number, (heads, tails, literals.heads)))
            yield replace(batch, heads=heads, tails=tails, literals=literals)


def _not_connected(entities: pl.Series, sides: tuple[NumberedSide, NumberedSide], side: int, where: str) -> InputError:
    """Return the error for triples none of whose entities the graph has."""
    num_of_other = int((lookup(entities, sides[1 - side].entities) >= 0).sum())
    names = listed(entities.sort().head(_SHOWN))
    if num_of_other:
        return InputError(
            f"these are triples of the {SIDES[1 - side]} graph, not of the {SIDES[side]} graph",
            where=where,
            expected=f"entities of the {SIDES[side]} graph, such as {shown(sides[side].entities[0])}",
            found=f"none of them; {num_of_other:,} of {len(entities):,} entities are the other graph's: {names}",
            fix=f"give the file as --{SIDES[1 - side]}-triples",
        )
    return InputError(
        f"the added triples have no entity of the {SIDES[side]} graph",
        where=where,
        expected=f"some entities the run knows, written the same way (such as {shown(sides[side].entities[0])})",
        found=f"{len(entities):,} entities, all unknown: {names}",
        fix="fix the names, or align anew with `largegnn align`: triples apart from all known ones cannot be embedded",
    )


def _with_links(links: IntArray, path: Path | None, known: tuple[pl.Series, pl.Series]) -> IntArray:
    """Join links (k, 2) and the links of a file, sorted and distinct; unknown entities in the file are refused."""
    if path is None:
        return links
    named = read_named_links(path)
    check_known([named], known, strict=True)
    return np.unique(np.concatenate([links, *number_links([named], known)]), axis=0)
