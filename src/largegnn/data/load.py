"""Load an `AlignmentTask` from files (stage `load`).

In: the input files, and the `data` settings. Out: the task, the names of its ids, its literals, and a summary
of what was read and dropped. Every calling form and every format passes through `load_pair`, so that the same data
gives the same task however it was written.
Without literals, entities that have only literals are dropped, and the task depends on the structure alone; with
literals, a pair may come without seeds.
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
    """A task, the names of its ids, the literals of its entities, and the counts of loading."""

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
    num_other_statements = sum(named.counts.other_statements for named in links.values())
    links, num_skipped = _keep_known(links, (source.mentioned_entities(), target.mentioned_entities()), files, settings)

    # The salts differ, so that equal names of the two sides do not get similar ids.
    numbered_source = source.numbered([named.frame["source"] for named in links.values()], salt=1)
    numbered_target = target.numbered([named.frame["target"] for named in links.values()], salt=2)
    two_sides = TwoSides(numbered_source, numbered_target)
    names, literals = two_sides.names(), two_sides.literals()
    splits, num_held_out = _split(
        dict(zip(links, number_links(list(links.values()), two_sides.entities), strict=True)), settings
    )
    accepted, rejected = _apply_decisions(files, splits, two_sides.entities, settings)
    check_splits(splits, names.entities.__getitem__, need_seeds=files.decisions is None and files.has_seeds)
    task = two_sides.task(splits, reviewed=accepted, forbidden=rejected)

    def of_sides(count: Callable[[Side, NumberedSide], int]) -> tuple[int, int]:
        return count(source, numbered_source), count(target, numbered_target)

    summary = LoadSummary(
        layout=files.layout,
        read=(source.counts, target.counts),
        num_triples_read=of_sides(lambda side, _: len(side.graph.triples)),
        num_duplicate_triples=of_sides(lambda side, numbered: len(side.graph.triples) - len(numbered.triples)),
        num_attribute_triples=of_sides(lambda side, _: side.graph.num_attribute_triples),
        num_attribute_only_entities=of_sides(lambda _, numbered: numbered.num_alone),
        num_isolated_entities=of_sides(lambda _, numbered: numbered.count_isolated()),
        num_literals=literals.num_of_sides(task.num_source_entities),
        num_predicates=literals.num_predicates_of_sides(task.num_source_entities),
        num_unknown_names=of_sides(lambda _, numbered: numbered.num_unknown_names),
        num_repeated_keys=of_sides(lambda side, _: side.graph.num_listed - len(side.graph.listed_entities)),
        num_other_link_statements=num_other_statements,
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
    """Move accepted pairs from the other splits to the train links; drop rejected pairs from the train and valid links.

    `splits` is changed in place. Returns the accepted and the rejected pairs.
    """
    if files.decisions is None:
        no_pairs = np.empty((0, 2), dtype=np.int32)
        return no_pairs, no_pairs
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
    """Drop unknown links if the settings say so. Unknown test links are kept: each of them counts as a miss."""
    kept = {}
    num_skipped = 0
    masks = check_known(list(links.values()), known, strict=files.strict_links and not settings.skip_unknown)
    for (split, named), is_known in zip(links.items(), masks, strict=True):
        if settings.skip_unknown and split != "test":
            num_skipped += int((~is_known).sum())
            named = replace(named, frame=named.frame.filter(pl.Series(is_known)))
        kept[split] = named
    return kept, num_skipped


def _split(links: dict[str, IntArray], settings: DataSettings) -> tuple[dict[str, IntArray], int]:
    """Return the three splits, and how many seeds were held out as valid links."""
    if "all" in links:
        return dict(zip(("train", "valid", "test"), split_all_links(links["all"]), strict=True)), 0
    empty = np.empty((0, 2), dtype=np.int32)
    splits = {split: links.get(split, empty) for split in ("train", "valid", "test")}
    if "valid" in links:
        return splits, 0
    splits["train"], splits["valid"] = split_links(splits["train"], settings.valid_share)
    return splits, len(splits["valid"])
