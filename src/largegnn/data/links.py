"""Check the known links, number them, and split them into train, valid and test.

In: files of links and the graphs' names. Out: three sorted arrays of distinct id pairs. Refused: links to entities the
graphs do not mention (the message suggests similar names), swapped columns, a link in two splits, and no seeds at all.
Seeds that are not one-to-one are only counted: the merge contracts each connected group of them to one node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from largegnn.artifacts import IntArray, Mask, are_among
from largegnn.data.batch import ReadCounts
from largegnn.data.iri import decode_names
from largegnn.data.near import is_prefixed, near_names
from largegnn.data.readers import read_links
from largegnn.data.shown import listed, shown
from largegnn.data.vocabulary import lookup, lookup_each, scramble, sorted_distinct
from largegnn.errors import InputError

__all__ = [
    "NamedLinks",
    "check_known",
    "check_splits",
    "count_many_to_one",
    "num_held_out",
    "number_links",
    "read_named_links",
    "split_all_links",
    "split_links",
]

_SIDES = ("source", "target")
_SHOWN = 5
_ENOUGH_VALID, _MIN_VALID = 250, 30  # valid links for the calibration of confidences
_TRAIN_SHARE, _VALID_SHARE = 0.2, 0.1  # OpenEA's shares, for data sets without splits
Translate = Callable[[pl.Series, int, Path], pl.Series]


@dataclass(frozen=True)
class NamedLinks:
    """The distinct links of one file, by name; `num_repeats` lines repeat a link, `counts` has what was dropped."""

    path: Path
    frame: pl.DataFrame
    num_repeats: int
    counts: ReadCounts


def read_named_links(path: Path, translate: Translate | None = None) -> NamedLinks:
    """Read a link file; `translate` turns the ids of an id folder into names."""
    links = read_links(path)
    frame = pl.DataFrame({"source": links.sources, "target": links.targets})
    for index, side in enumerate(_SIDES):
        names = decode_names(frame[side]) if translate is None else translate(frame[side], index, path)
        frame = frame.with_columns(names.alias(side))
    kept = frame.unique(maintain_order=True)
    return NamedLinks(path, kept, len(frame) - len(kept), links.counts)


def check_known(all_links: Sequence[NamedLinks], known: tuple[pl.Series, pl.Series], strict: bool) -> list[Mask]:
    """Find the links with both ends in the graphs: for each file a mask (k,).

    Refuses swapped columns, and unknown names if `strict` is set or no link of a file is known.
    """
    sides = [
        lookup_each([links.frame[side] for links in all_links], names)
        for side, names in zip(_SIDES, known, strict=True)
    ]
    return [
        _check_file(links, (sources >= 0, targets >= 0), known, strict)
        for links, sources, targets in zip(all_links, *sides, strict=True)
    ]


def _check_file(links: NamedLinks, masks: tuple[Mask, Mask], known: tuple[pl.Series, pl.Series], strict: bool) -> Mask:
    """Find the links of one file with both ends in the graphs; `masks` (k,) mark the known sources and targets."""
    both = masks[0] & masks[1]
    if bool(both.all()):
        return both
    swapped = (lookup(links.frame["source"], known[1]) >= 0) & (lookup(links.frame["target"], known[0]) >= 0)
    if int(swapped.sum()) > 2 * int(both.sum()):
        raise InputError(
            "the two columns of the links are swapped",
            where=str(links.path),
            expected="source entity, then target entity",
            found=f"{swapped.sum():,} of {len(swapped):,} links fit the other way round, {both.sum():,} this way",
            fix="swap the columns, or swap SOURCE and TARGET",
        )
    if not strict and both.any():
        return both
    side = 0 if int((~masks[0]).sum()) >= int((~masks[1]).sum()) else 1
    unknown = links.frame[_SIDES[side]].filter(pl.Series(~masks[side])).unique(maintain_order=True)
    raise InputError(
        f"{int((~both).sum()):,} of {len(both):,} links name entities that are not in the graphs",
        where=str(links.path),
        expected=f"names of the triples, written the same way (such as {shown(str(known[side].min()))})",
        found=f"{len(unknown):,} unknown {_SIDES[side]} entities: {listed(unknown)}",
        fix=_likely_cause(links, both, unknown, known[side])
        + ("; --skip-unknown leaves such links out" if both.any() else ""),
    )


def _likely_cause(links: NamedLinks, both: Mask, unknown: pl.Series, known: pl.Series) -> str:
    """Guess why names of one side are unknown, and say how to fix it."""
    if not both[0] and bool(both[1:].all()) and len(both) > 1:
        first = listed(links.frame.row(0))
        return f"delete the first line, which looks like a header ({first}), or name its columns source and target"
    near = near_names(unknown.head(_SHOWN), known)
    prefixed = (name for name in near if is_prefixed(pl.Series([name, near[name][0]])).to_list() == [True, False])
    name = next(prefixed, None)
    if name is not None:
        return (
            f"write the names in full: the links have the prefix {name.partition(':')[0]}:, the graph has none "
            f"({shown(name)} may be {shown(near[name][0])})"
        )
    if near:
        similar = "; ".join(f"{listed(near[name])} for {shown(name)}" for name in near)
        return f"fix the names; similar names are {similar}"
    return "fix the names"


def number_links(all_links: Sequence[NamedLinks], names: tuple[pl.Series, pl.Series]) -> list[IntArray]:
    """Translate the links of each file to ids, (k, 2), sorted and distinct; `names` are all entities of either side."""
    sides = [lookup_each([links.frame[side] for links in all_links], names[index]) for index, side in enumerate(_SIDES)]
    numbered = [sorted_distinct(np.stack(ends, axis=1), tuple(map(len, names))) for ends in zip(*sides, strict=True)]
    return [links + np.array([0, len(names[0])], dtype=np.int32) for links in numbered]


def num_held_out(num_seeds: int, valid_share: float | Literal["auto"]) -> int:
    """Decide how many of the seeds become valid links.

    auto: a tenth, or up to a third of the seeds where a tenth is less than the 250 links that calibration needs. With
    250 valid links the precision of the accepted pairs is known to about .03, with 100 to .05, with 33 to .1
    (docs/notebook.md). Fewer than 30 are useless, so if a third is less than 30, the share remains a tenth.
    """
    if valid_share != "auto":
        return round(valid_share * num_seeds)
    tenth, third = round(num_seeds / 10), num_seeds // 3
    return max(tenth, min(_ENOUGH_VALID, third)) if third >= _MIN_VALID else tenth


def split_links(links: IntArray, valid_share: float | Literal["auto"]) -> tuple[IntArray, IntArray]:
    """Hold out a share of sorted links by a fixed shuffle; returns the kept and the held-out links, both sorted."""
    order = scramble(len(links), salt=7)
    num_valid = num_held_out(len(links), valid_share)
    return links[np.sort(order[num_valid:])], links[np.sort(order[:num_valid])]


def split_all_links(links: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Split links that come in one file into train, valid and test by a fixed shuffle, in OpenEA's shares."""
    order = scramble(len(links), salt=7)
    train_end, valid_end = round(_TRAIN_SHARE * len(links)), round((_TRAIN_SHARE + _VALID_SHARE) * len(links))
    parts = np.split(order, [train_end, valid_end])
    train, valid, test = (links[np.sort(part)] for part in parts)
    return train, valid, test


def check_splits(splits: dict[str, IntArray], name_of: Callable[[int], str], need_seeds: bool = True) -> None:
    """Refuse splits that share a link, since metrics on trained links mean nothing, and an empty train split."""
    if need_seeds and not len(splits["train"]):
        raise InputError("no seeds were given", expected="at least one link to train on")
    for first, second in (("train", "test"), ("valid", "test"), ("train", "valid")):
        shared = splits[first][are_among(splits[first], splits[second])]
        if len(shared):
            pairs = (f"{shown(name_of(pair[0]))} = {shown(name_of(pair[1]))}" for pair in shared[:_SHOWN].tolist())
            raise InputError(
                f"{len(shared):,} {first} links are {second} links too",
                expected="links in one split only, since figures on trained links mean nothing",
                found=", ".join(pairs),
                fix=f"take them out of the {second} links",
            )


def count_many_to_one(links: IntArray) -> int:
    """Count the links that share an entity with another link."""
    shared = np.zeros(len(links), dtype=bool)
    for column in (0, 1):
        _, inverse, counts = np.unique(links[:, column], return_inverse=True, return_counts=True)
        shared |= counts[inverse] > 1
    return int(shared.sum())
