"""Load an `AlignmentTask` from files (stage `load`).

In: the input files, and the `data` settings. Out: the task, the names of its ids, its literals, and a summary
of what was read, dropped and noticed. Both calling forms and every format end in the same few lines below, so the same
data gives the same task however it was written.
Without literals an entity that has nothing else is left out, and the task is that of the structure alone; with them a
pair may come without seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from largegnn.artifacts import AlignmentTask, IntArray, TaskNames, are_among
from largegnn.artifacts.literals import Literals
from largegnn.data.decisions import decision_ids
from largegnn.data.inputs import DataInput, PairFiles, find_files
from largegnn.data.links import (
    NamedLinks,
    check_known,
    check_splits,
    count_many_to_one,
    number_links,
    read_named_links,
    split_all_links,
    split_links,
)
from largegnn.data.sides import NumberedSide, Side, TwoSides, link_translator, read_side
from largegnn.data.summary import LoadSummary, log_summary
from largegnn.errors import InputError
from largegnn.settings import DataSettings

__all__ = ["LoadSummary", "LoadedPair", "load_pair"]


@dataclass(frozen=True)
class LoadedPair:
    """A task, the names of its ids, their literals, and what was counted on the way."""

    task: AlignmentTask
    names: TaskNames
    literals: Literals
    summary: LoadSummary


def load_pair(given: DataInput, settings: DataSettings | None = None, *, keep_literals: bool = True) -> LoadedPair:
    """Read two graphs and their links, check them, and number everything."""
    settings = settings or DataSettings()
    files = find_files(given, settings)
    if not files.has_seeds and not keep_literals:
        raise _no_seeds(given)
    source, target = (read_side(files, side, settings, keep_literals) for side in (0, 1))
    links = {split: read_named_links(path, link_translator(source, target)) for split, path in _link_files(files)}
    num_repeats = sum(named.num_repeats for named in links.values())
    num_others = sum(named.counts.other_statements for named in links.values())
    links, num_skipped = _keep_known(links, (source.known(), target.known()), files, settings)

    source_ids = source.numbered([named.frame["source"] for named in links.values()], salt=1)
    target_ids = target.numbered([named.frame["target"] for named in links.values()], salt=2)
    both = TwoSides(source_ids, target_ids)
    names, literals = both.names(), both.literals()
    splits, num_held_out = _split(
        dict(zip(links, number_links(list(links.values()), both.entities), strict=True)), settings
    )
    accepted, rejected = _apply_decisions(files, splits, both.entities, settings)
    check_splits(splits, names.entities.__getitem__, need_seeds=files.decisions is None and files.has_seeds)
    task = both.task(splits, reviewed=accepted, forbidden=rejected)

    def each(count: Callable[[Side, NumberedSide], int]) -> tuple[int, int]:
        return count(source, source_ids), count(target, target_ids)

    summary = LoadSummary(
        layout=files.layout,
        read=(source.counts, target.counts),
        num_triples_read=each(lambda side, _: len(side.graph.triples)),
        num_duplicate_triples=each(lambda side, ids: len(side.graph.triples) - len(ids.triples)),
        num_attribute_triples=each(lambda side, _: side.graph.num_attribute_triples),
        num_attribute_only_entities=each(lambda _, ids: ids.num_alone),
        num_isolated_entities=each(lambda _, ids: ids.count_isolated()),
        num_literals=literals.num_of_sides(task.num_source_entities),
        num_predicates=literals.num_predicates_of_sides(task.num_source_entities),
        num_unknown_names=each(lambda _, ids: ids.num_unknown_names),
        num_repeated_keys=each(lambda side, _: side.graph.num_listed - len(side.graph.listed_entities)),
        num_other_link_statements=num_others,
        num_repeated_links=num_repeats,
        num_skipped_links=num_skipped,
        num_many_to_one_links=count_many_to_one(np.concatenate([splits["train"], splits["valid"]])),
        num_held_out_links=num_held_out,
        num_accepted_decisions=len(accepted),
        num_rejected_decisions=len(rejected),
    )
    log_summary(summary, keep_literals)
    return LoadedPair(task, names, literals, summary)


def _apply_decisions(
    files: PairFiles, splits: dict[str, IntArray], entities: tuple[pl.Series, pl.Series], settings: DataSettings
) -> tuple[IntArray, IntArray]:
    """Accepted pairs join the train links and leave the others; rejected ones leave the train and valid links."""
    if files.decisions is None:
        none = np.empty((0, 2), dtype=np.int32)
        return none, none
    accepted, rejected = decision_ids(files.decisions, *entities, skip_unknown=settings.skip_unknown)
    for split in ("valid", "test"):
        splits[split] = splits[split][~are_among(splits[split], accepted)]
    for split in ("train", "valid"):
        splits[split] = splits[split][~are_among(splits[split], rejected)]
    splits["train"] = np.unique(np.concatenate([splits["train"], accepted]), axis=0)
    return accepted, rejected


def _no_seeds(given: DataInput) -> InputError:
    if given.folder is not None:
        return InputError("the folder has no train_links.* or seeds.*", where=str(given.folder))
    return InputError(
        "no seeds were given",
        expected="--seeds FILE with known links between the two graphs",
        fix="write a few dozen known pairs into a two-column file: source TAB target",
    )


def _link_files(files: PairFiles) -> list[tuple[str, Path]]:
    named = {"train": files.train_links, "valid": files.valid_links, "test": files.test_links, "all": files.all_links}
    return [(split, path) for split, path in named.items() if path is not None]


def _keep_known(
    links: dict[str, NamedLinks], known: tuple[pl.Series, pl.Series], files: PairFiles, settings: DataSettings
) -> tuple[dict[str, NamedLinks], int]:
    """Drop unknown seeds if the settings say so. Unknown test links stay: each counts as a miss."""
    kept, num_skipped = {}, 0
    found = check_known(list(links.values()), known, strict=files.strict_links and not settings.skip_unknown)
    for (split, named), is_known in zip(links.items(), found, strict=True):
        if settings.skip_unknown and split != "test":
            num_skipped += int((~is_known).sum())
            named = replace(named, frame=named.frame.filter(pl.Series(is_known)))
        kept[split] = named
    return kept, num_skipped


def _split(links: dict[str, IntArray], settings: DataSettings) -> tuple[dict[str, IntArray], int]:
    """The three splits, and how many seeds were held out as valid links."""
    if "all" in links:
        return dict(zip(("train", "valid", "test"), split_all_links(links["all"]), strict=True)), 0
    empty = np.empty((0, 2), dtype=np.int32)
    splits = {split: links.get(split, empty) for split in ("train", "valid", "test")}
    if "valid" in links:
        return splits, 0
    splits["train"], splits["valid"] = split_links(splits["train"], settings.valid_share)
    return splits, len(splits["valid"])
