"""Collect the texts of each entity that are compared: its names, all its values, and the names of its neighbours.

In: the literals of one side, the kinds of its predicates, the names of the entities. Out: `EntityTexts`.
Names come from predicates that hold names; the name of an entity without any is the last part of its IRI, if such parts
are words and not opaque ids. Distinct texts are normalised once.
Cost: one pass over the literals; a text of an entity is cut at some thousand characters.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np

from largegnn.artifacts import IntArray, Literals, StringTable
from largegnn.literals.normalise import normalise, split_identifier
from largegnn.literals.profiles import PredicateProfile

__all__ = [
    "EntityTexts",
    "class_relations",
    "distinct_texts",
    "identifier_names",
    "is_readable",
    "neighbor_texts",
    "texts_of_side",
    "written_texts",
]

_LONGEST = 4_000  # characters of all values of an entity
_LONGEST_WRITTEN = 1_000
_MOST_NAMES = 30  # names of one entity that are compared
_MOST_NEIGHBORS = 40
_OPAQUE = re.compile(
    r"^[A-Za-z]{0,4}[._:-]?\d+$|^[A-Za-z]{1,2}[._][0-9A-Za-z_]+$|^[A-Za-z]?[0-9a-f]{10,}$|^[0-9A-F-]{16,}$"
)
_SAMPLE = 2_000
_MANY_TRIPLES = 50


@dataclass(frozen=True, eq=False)
class EntityTexts:
    """The texts of one side that are compared, normalised.

    `names` with `name_owners` (k,), the entity of each, ascending; `documents`, all values of an entity as one text,
    one for each of `entities` (n,), which are all that have a text; `neighbors`, the names of their neighbours as one
    text each.
    """

    names: list[str]
    name_owners: IntArray
    entities: IntArray
    documents: list[str]
    neighbors: list[str]


def texts_of_side(
    literals: Literals,
    inside: slice,
    profiles: Mapping[int, PredicateProfile],
    identifiers: Mapping[int, str],
    triples: IntArray,
) -> EntityTexts:
    """The texts of the entities of one side, of which these are the `triples` and the `identifiers` in words."""
    owners, predicates = literals.entities[inside], literals.predicates[inside]
    distinct, codes = distinct_texts(literals.values.take(range(inside.start, inside.stop)))
    spelled = normalise(distinct)
    filled = np.flatnonzero(np.array([bool(text) for text in spelled], dtype=bool)[codes])
    named = [number for number, profile in profiles.items() if profile.kind == "name"]
    name_rows = filled[np.isin(predicates[filled], named)]
    name_owners, name_codes = _first_of_each(owners[name_rows], codes[name_rows], _MOST_NAMES)
    value_owners, value_codes = _first_of_each(owners[filled], codes[filled])
    # Entities without a name get the end of their IRI.
    unnamed = np.setdiff1d(np.fromiter(identifiers, dtype=np.int64, count=len(identifiers)), name_owners)
    spelled += [identifiers[entity] for entity in unnamed.tolist()]
    called = np.arange(len(spelled) - len(unnamed), len(spelled))
    name_owners, name_codes = _joined(name_owners, name_codes, unnamed, called)
    value_owners, value_codes = _joined(value_owners, value_codes, unnamed, called)
    names = [spelled[code] for code in name_codes.tolist()]
    entities, documents = _documents(spelled, value_owners, value_codes)
    first_name = dict(reversed(list(zip(name_owners.tolist(), names, strict=True))))
    neighbors = neighbor_texts(triples, first_name, entities, class_relations(triples))
    return EntityTexts(names, name_owners, entities, documents, neighbors)


def written_texts(
    literals: Literals,
    inside: slice,
    profiles: Mapping[int, PredicateProfile],
    identifiers: Mapping[int, str],
    entities: IntArray,
) -> list[str]:
    """All values of each of these entities (n,) as they were written, names first; for a text encoder."""
    is_name = {number: profile.kind == "name" for number, profile in profiles.items()}
    parts: dict[int, tuple[list[str], list[str]]] = {}
    values = literals.values.take(range(inside.start, inside.stop))
    for owner, predicate, value in zip(
        literals.entities[inside].tolist(), literals.predicates[inside].tolist(), values, strict=True
    ):
        parts.setdefault(owner, ([], []))[0 if is_name.get(predicate) else 1].append(value)
    texts = []
    for entity in entities.tolist():
        names, others = parts.get(entity, ([], []))
        texts.append(". ".join([*(names or [identifiers.get(entity, "")]), *others])[:_LONGEST_WRITTEN])
    return texts


def is_readable(names: StringTable, first: int, count: int, seed: int = 0) -> bool:
    """Whether the IRIs of a side end in words rather than in opaque ids, by a sample."""
    if not count or len(names) < first + count:
        return False
    rng = np.random.default_rng(seed)
    sample = first + (np.arange(count) if count <= _SAMPLE else np.sort(rng.choice(count, _SAMPLE, replace=False)))
    locals_of = [_local(name) for name in names.take(sample)]
    readable = sum(not _OPAQUE.match(local) and sum(map(str.isalpha, local)) >= 3 for local in locals_of)
    return readable >= 0.5 * len(locals_of)


def identifier_names(names: StringTable, first: int, count: int, seed: int = 0) -> dict[int, str]:
    """The last parts of the IRIs of one side as names, by entity; none where most of them are opaque ids."""
    if not is_readable(names, first, count, seed):
        return {}
    entities = range(first, first + count)
    spelled = normalise(split_identifier(unquote(_local(name))) for name in names.take(entities))
    return {entity: text for entity, text in zip(entities, spelled, strict=True) if text}


def class_relations(triples: IntArray) -> frozenset[int]:
    """Relations that lead to very few entities, such as types: their ends are classes, which do not distinguish."""
    if not len(triples):
        return frozenset()
    # Sorted here: np.unique hashes, and numbers packed like these collide, which is ten times slower.
    ends = triples[:, 1].astype(np.int64) << 32 | triples[:, 2]
    ends.sort()
    counts = np.bincount(triples[:, 1])
    distinct = np.bincount(ends[np.diff(ends, prepend=-1) != 0] >> 32, minlength=len(counts))
    few = (counts >= _MANY_TRIPLES) & (distinct <= np.maximum(2, counts // 100))
    return frozenset(np.flatnonzero(few).tolist())


def neighbor_texts(
    triples: IntArray, names: Mapping[int, str], entities: IntArray, ignored: frozenset[int] = frozenset()
) -> list[str]:
    """The names of the neighbours of each entity (n,) as one text; relations in `ignored` do not count."""
    # Each triple counts for both ends, in the order of the triples.
    counted = triples[~np.isin(triples[:, 1], sorted(ignored))] if ignored else triples
    ones, others = counted[:, [0, 2]].ravel(), counted[:, [2, 0]].ravel()
    size = int(max(triples[:, [0, 2]].max(initial=-1), entities.max(initial=-1), max(names, default=-1))) + 1
    row_of, code_of = np.full(size, -1, dtype=np.int64), np.full(size, -1, dtype=np.int64)
    row_of[entities] = np.arange(len(entities))
    spelled, codes = distinct_texts(names.values())
    code_of[np.fromiter(names, dtype=np.int64, count=len(names))] = codes
    known = np.flatnonzero((row_of[ones] >= 0) & (code_of[others] >= 0))
    rows, near = _first_of_each(row_of[ones[known]], code_of[others[known]], _MOST_NEIGHBORS)
    texts = [""] * len(entities)
    for row, text in zip(*_documents(spelled, rows, near), strict=True):
        texts[row] = text
    return texts


def _first_of_each(owners: IntArray, codes: IntArray, most: int | None = None) -> tuple[IntArray, IntArray]:
    """Distinct codes of each owner in the order they come, at most so many; ascending by owner."""
    order = np.lexsort((codes, owners))  # stable: the first of equal ones stays the first
    keys = owners[order].astype(np.int64) << 32 | codes[order]
    first = np.sort(order[np.concatenate([[True], keys[1:] != keys[:-1]])]) if len(order) else order
    first = first[np.argsort(owners[first], kind="stable")]
    if most is not None:
        starts = np.searchsorted(owners[first], owners[first])
        first = first[np.arange(len(first)) - starts < most]
    return owners[first].astype(np.int64), codes[first]


def _joined(owners: IntArray, codes: IntArray, more: IntArray, more_codes: IntArray) -> tuple[IntArray, IntArray]:
    """Both lists, ascending by owner."""
    all_owners = np.concatenate([owners, more])
    order = np.argsort(all_owners, kind="stable")
    return all_owners[order], np.concatenate([codes, more_codes])[order]


def _documents(spelled: list[str], owners: IntArray, codes: IntArray) -> tuple[IntArray, list[str]]:
    """The owners, and the texts of each as one."""
    entities, starts = np.unique(owners, return_index=True)
    bounds = np.append(starts, len(owners)).tolist()
    texts = [spelled[code] for code in codes.tolist()]
    return entities, [" ".join(texts[start:end])[:_LONGEST] for start, end in itertools.pairwise(bounds)]


def distinct_texts(texts: Iterable[str]) -> tuple[list[str], IntArray]:
    """The distinct texts, and which of them each is."""
    number_of: dict[str, int] = {}
    codes = np.array([number_of.setdefault(text, len(number_of)) for text in texts], dtype=np.int64)
    return list(number_of), codes


def _local(name: str) -> str:
    return re.split(r"[/#]", name.rstrip("/#>"))[-1] if "://" in name else name
