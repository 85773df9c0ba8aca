"""The one door from files to an `AlignmentTask` (stage `load`).

In: what the user points at, and the `data` settings. Out: the task, the names of its ids, and a summary of what was
read, dropped and noticed. Both calling forms and every format end in the same few lines below, so the same data gives
the same task however it was written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from largegnn.artifacts import AlignmentTask, IntArray, TaskNames
from largegnn.data.batch import no_names
from largegnn.data.inputs import DataInput, PairFiles, find_files
from largegnn.data.lines import line_blocks
from largegnn.data.links import (
    NamedLinks,
    check_known,
    check_splits,
    count_many_to_one,
    read_named_links,
    split_all_links,
    split_links,
)
from largegnn.data.readers import read_links, read_triples
from largegnn.data.shown import listed, shown
from largegnn.data.vocabulary import (
    CodedGraph,
    code_batches,
    distinct,
    lookup,
    number_names,
    number_triples,
    sorted_distinct,
    to_strings,
)
from largegnn.errors import InputError
from largegnn.settings import DataSettings

__all__ = ["LoadSummary", "LoadedPair", "load_pair"]

_log = logging.getLogger(__name__)
_SIDES = ("source", "target")


@dataclass(frozen=True)
class LoadSummary:
    """What was read, dropped and noticed on the way; pairs of numbers are (source, target)."""

    layout: str
    num_triples_read: tuple[int, int]
    num_duplicate_triples: tuple[int, int]
    num_attribute_triples: tuple[int, int]
    num_attribute_only_entities: tuple[int, int]
    num_isolated_entities: tuple[int, int]
    num_named_graphs: tuple[int, int]
    num_repeated_links: int
    num_skipped_links: int
    num_many_to_one_links: int
    num_held_out_links: int
    num_triple_terms: tuple[int, int] = (0, 0)
    num_blank_lines: tuple[int, int] = (0, 0)
    num_comment_lines: tuple[int, int] = (0, 0)
    num_header_rows: tuple[int, int] = (0, 0)
    num_byte_order_marks: tuple[int, int] = (0, 0)
    num_other_link_statements: int = 0

    @classmethod
    def of_task(cls, task: AlignmentTask) -> LoadSummary:
        """The summary of a task that was not read from files: nothing was dropped."""
        sides = (task.num_source_triples, len(task.triples) - task.num_source_triples)
        none = (0, 0)
        return cls("in memory", sides, none, none, none, none, none, 0, 0, 0, 0)


@dataclass(frozen=True)
class LoadedPair:
    """A task, the names of its ids, and how it came about."""

    task: AlignmentTask
    names: TaskNames
    summary: LoadSummary


def load_pair(given: DataInput, settings: DataSettings | None = None) -> LoadedPair:
    """Read two graphs and their links, check them, and number everything."""
    settings = settings or DataSettings()
    files = find_files(given, settings)
    source, target = (_read_side(files, side, settings) for side in (0, 1))
    links = {split: read_named_links(path, _translator(source, target)) for split, path in _link_files(files)}
    num_repeats = sum(named.num_repeats for named in links.values())
    num_others = sum(named.counts.other_statements for named in links.values())
    counts = (source.graph.counts, target.graph.counts)
    links, num_skipped = _keep_known(links, (source.known(), target.known()), files, settings)

    source_ids = _number_side(source, [named.frame["source"] for named in links.values()], salt=1)
    target_ids = _number_side(target, [named.frame["target"] for named in links.values()], salt=2)
    splits, num_held_out = _number_links(links, source_ids.entities, target_ids.entities, settings)
    names = TaskNames(
        to_strings(pl.concat([source_ids.entities, target_ids.entities])),
        to_strings(pl.concat([source_ids.relations, target_ids.relations])),
    )
    check_splits(splits, names.entities.__getitem__)
    offset, relation_offset = len(source_ids.entities), len(source_ids.relations)
    shift = np.array([offset, relation_offset, offset], dtype=np.int32)
    task = AlignmentTask(
        num_source_entities=offset,
        num_target_entities=len(target_ids.entities),
        num_source_relations=relation_offset,
        num_target_relations=len(target_ids.relations),
        triples=np.concatenate([source_ids.triples, target_ids.triples + shift]),
        train_links=splits["train"],
        valid_links=splits["valid"],
        test_links=splits["test"],
    )
    summary = LoadSummary(
        layout=files.layout,
        num_triples_read=(len(source.graph.triples), len(target.graph.triples)),
        num_duplicate_triples=(
            len(source.graph.triples) - len(source_ids.triples),
            len(target.graph.triples) - len(target_ids.triples),
        ),
        num_attribute_triples=(source.num_attribute_triples, target.num_attribute_triples),
        num_attribute_only_entities=(source.count_left_out(source_ids), target.count_left_out(target_ids)),
        num_isolated_entities=(source_ids.count_isolated(), target_ids.count_isolated()),
        num_named_graphs=(counts[0].graph_names, counts[1].graph_names),
        num_triple_terms=(counts[0].triple_terms, counts[1].triple_terms),
        num_blank_lines=(counts[0].blank_lines, counts[1].blank_lines),
        num_comment_lines=(counts[0].comment_lines, counts[1].comment_lines),
        num_header_rows=(counts[0].header_rows, counts[1].header_rows),
        num_byte_order_marks=(counts[0].byte_order_marks, counts[1].byte_order_marks),
        num_other_link_statements=num_others,
        num_repeated_links=num_repeats,
        num_skipped_links=num_skipped,
        num_many_to_one_links=count_many_to_one(np.concatenate([splits["train"], splits["valid"]])),
        num_held_out_links=num_held_out,
    )
    _say(summary)
    return LoadedPair(task, names, summary)


@dataclass(frozen=True)
class _NumberedSide:
    """One graph in final ids of its own, starting at 0."""

    entities: pl.Series
    relations: pl.Series
    triples: IntArray

    def count_isolated(self) -> int:
        """Entities in no triple."""
        in_triples = np.zeros(len(self.entities), dtype=bool)
        in_triples[self.triples[:, 0]] = True
        in_triples[self.triples[:, 2]] = True
        return int((~in_triples).sum())


@dataclass(frozen=True)
class _Side:
    """One graph as read: coded triples, entities with attributes, entities listed by an id folder."""

    graph: CodedGraph
    attribute_entities: pl.Series
    num_attribute_triples: int
    name_of_id: pl.DataFrame | None

    def known(self) -> pl.Series:
        """Every entity the files of this graph mention."""
        return distinct([self.graph.entity_names, self.attribute_entities, self.listed()])

    def listed(self) -> pl.Series:
        """Entities an id folder names, in triples or not."""
        return no_names() if self.name_of_id is None else self.name_of_id["name"]

    def count_left_out(self, numbered: _NumberedSide) -> int:
        """Entities with attributes alone that no link mentions: they have no structure to align."""
        return int((lookup(self.attribute_entities, numbered.entities) < 0).sum())


def _read_side(files: PairFiles, side: int, settings: DataSettings) -> _Side:
    graph = code_batches(read_triples(files.triples[side], settings.format))
    if not len(graph.triples):
        raise _no_triples(graph, _SIDES[side], files.triples[side])
    attribute_entities, num_attributes = graph.attribute_entities, graph.num_attribute_triples
    attribute_file = files.attributes[side]
    if attribute_file is not None:
        more_entities, more = _read_attribute_file(attribute_file)
        attribute_entities, num_attributes = distinct([attribute_entities, more_entities]), num_attributes + more
    if files.entity_ids is None:
        return _Side(graph, attribute_entities, num_attributes, None)
    name_of_id = _read_ids(files.entity_ids[side])
    graph = replace(graph, entity_names=_translate(graph.entity_names, name_of_id, files.triples[side]))
    if files.relation_ids is not None:
        relations = _read_ids(files.relation_ids[side])
        graph = replace(graph, relation_names=_translate(graph.relation_names, relations, files.triples[side]))
    return _Side(graph, attribute_entities, num_attributes, name_of_id)


def _no_triples(graph: CodedGraph, side: str, path: Path) -> InputError:
    """What to say of a graph without structure: mostly it is the file of the literals, or all names are in quotes."""
    problem = f"the {side} graph has no triples between entities"
    if not graph.num_attribute_triples:
        return InputError(problem, where=str(path), expected="lines such as head TAB relation TAB tail")
    quoted = graph.attribute_entities.str.starts_with('"').all()
    return InputError(
        problem,
        where=str(path),
        expected="tails that are names of entities",
        found=f"{graph.num_attribute_triples:,} triples, all with literals (tails in quotes)",
        fix="take the quotes away: TSV has none, or save the file as CSV"
        if quoted
        else "give the file of the relations between entities; this one seems to hold their names and values only",
    )


def _read_attribute_file(path: Path) -> tuple[pl.Series, int]:
    """OpenEA's attribute triples: the entities, and the number of lines; values may hold anything, tabs too."""
    entities, count = no_names(), 0
    for block in line_blocks(path):
        lines = pl.Series([block.text.decode("utf-8")]).str.split("\n").explode()
        heads = lines.filter(lines.str.len_bytes() > 0).str.splitn("\t", 2).struct.field("field_0")
        entities, count = distinct([entities, heads]), count + len(heads)
    return entities, count


def _read_ids(path: Path) -> pl.DataFrame:
    """The columns `id` and `name` of an id file, both distinct."""
    links = read_links(path)
    table = pl.DataFrame({"id": links.sources, "name": links.targets})
    for column in ("id", "name"):
        repeated = table[column].filter(table[column].is_duplicated())
        if len(repeated):
            raise InputError(
                f"an {column} stands twice in the id file",
                where=str(path),
                found=shown(str(repeated.first())),
                fix="keep one",
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


def _translator(source: _Side, target: _Side) -> Callable[[pl.Series, int, Path], pl.Series] | None:
    if source.name_of_id is None or target.name_of_id is None:
        return None
    tables = (source.name_of_id, target.name_of_id)
    return lambda ids, side, path: _translate(ids, tables[side], path)


def _link_files(files: PairFiles) -> list[tuple[str, Path]]:
    named = {"train": files.train_links, "valid": files.valid_links, "test": files.test_links, "all": files.all_links}
    return [(split, path) for split, path in named.items() if path is not None]


def _keep_known(
    links: dict[str, NamedLinks], known: tuple[pl.Series, pl.Series], files: PairFiles, settings: DataSettings
) -> tuple[dict[str, NamedLinks], int]:
    """Drop unknown seeds where that was asked for. Test links stay whatever they name: each counts as a miss."""
    kept, num_skipped = {}, 0
    for split, named in links.items():
        is_known = check_known(named, known, strict=files.strict_links and not settings.skip_unknown)
        if settings.skip_unknown and split != "test":
            num_skipped += int((~is_known).sum())
            named = replace(named, frame=named.frame.filter(pl.Series(is_known)))
        kept[split] = named
    return kept, num_skipped


def _number_side(side: _Side, linked: list[pl.Series], salt: int) -> _NumberedSide:
    entities = number_names(distinct([side.graph.entity_names, side.listed(), *linked]), salt)
    relations = number_names(side.graph.relation_names, salt + 2)
    return _NumberedSide(entities, relations, number_triples(side.graph, entities, relations))


def _number_links(
    links: dict[str, NamedLinks], source: pl.Series, target: pl.Series, settings: DataSettings
) -> tuple[dict[str, IntArray], int]:
    """The three splits in ids, and how many seeds were held out as valid links."""
    numbered = {}
    for split, named in links.items():
        pairs = np.stack([lookup(named.frame["source"], source), lookup(named.frame["target"], target)], axis=1)
        numbered[split] = sorted_distinct(pairs, (len(source), len(target)))
        numbered[split][:, 1] += len(source)
    empty = np.empty((0, 2), dtype=np.int32)
    if "all" in numbered:
        train, valid, test = split_all_links(numbered["all"])
        return {"train": train, "valid": valid, "test": test}, 0
    test = numbered.get("test", empty)
    if "valid" in numbered:
        return {"train": numbered["train"], "valid": numbered["valid"], "test": test}, 0
    train, valid = split_links(numbered["train"], settings.valid_share)
    return {"train": train, "valid": valid, "test": test}, len(valid)


def _say(summary: LoadSummary) -> None:
    """Log what a user would want to know and might not expect."""
    pairs = (
        ("duplicate triples removed", summary.num_duplicate_triples),
        ("attribute triples counted and kept out of the structure", summary.num_attribute_triples),
        ("entities with attributes alone, in no triple and no link, left out", summary.num_attribute_only_entities),
        ("entities in links but in no triple, kept as isolated", summary.num_isolated_entities),
        ("graph names of quads dropped", summary.num_named_graphs),
        ("statements about triples left out", summary.num_triple_terms),
        ("blank lines skipped", summary.num_blank_lines),
        ("comment lines skipped", summary.num_comment_lines),
        ("header rows skipped", summary.num_header_rows),
        ("byte-order marks skipped", summary.num_byte_order_marks),
    )
    for text, (source, target) in pairs:
        if source or target:
            _log.info("%s: %s in the source, %s in the target", text, f"{source:,}", f"{target:,}")
    counts = (
        ("statements of the link files that are no links, left out", summary.num_other_link_statements),
        ("links that repeat another line, dropped", summary.num_repeated_links),
        ("links to unknown entities, skipped", summary.num_skipped_links),
        ("seeds held out as valid links (data.valid_share)", summary.num_held_out_links),
    )
    for text, count in counts:
        if count:
            _log.info("%s: %s", text, f"{count:,}")
    if summary.num_many_to_one_links:
        _log.warning(
            "%s train and valid links are not one-to-one: each connected group becomes one node when merged",
            f"{summary.num_many_to_one_links:,}",
        )
