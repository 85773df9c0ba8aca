"""Collect the texts of each entity for comparison: its names, all its values, and the names of its neighbours.

In: the literals of one side, the kinds of its predicates, the names from its IRIs, its triples. Out: `EntityTexts`.
Names come from predicates that hold names. An entity without such a name is called by the last part of its IRI, if
the last parts are words and not opaque ids. Distinct texts are normalised once.
Cost: one pass over the literals; the text of an entity is cut at 4,000 characters (1,000 for a text encoder).
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
    "iris_are_words",
    "neighbor_texts",
    "texts_of_side",
    "written_texts",
]

_MAX_CHARS = 4_000  # of all values of an entity as one text
_MAX_ENCODER_CHARS = 1_000  # of the text for a text encoder
_MAX_NAMES = 30  # names of one entity that are compared
_MAX_NEIGHBORS = 40  # neighbours of one entity whose names are compared
_OPAQUE_ID = re.compile(
    r"""
    ^[A-Za-z]{0,4}[._:-]?\d+$            # Q7259, GO:0008150, 42
    | ^[A-Za-z]{1,2}[._][0-9A-Za-z_]+$   # m.0ckf6
    | ^[A-Za-z]?[0-9a-f]{10,}$           # 9b1c4d5e6f703f2a
    | ^[0-9A-F-]{16,}$                   # 550E8400-E29B-41D4-A716-446655440000
    """,
    re.VERBOSE,
)
_SAMPLE_SIZE = 2_000  # IRIs that are looked at
_MIN_CLASS_TRIPLES = 50  # triples of a relation that may lead to classes


@dataclass(frozen=True, eq=False)
class EntityTexts:
    """The normalised texts of one side.

    `name_owners` (k,), ascending, holds the entity of each name in `names`. `entities` (n,), ascending, are the
    entities that have a text; for each of them `documents` holds all its values as one text, and `neighbors` the names
    of its neighbours as one text.
    """

    names: list[str]
    name_owners: IntArray
    entities: IntArray
    documents: list[str]
    neighbors: list[str]


def texts_of_side(
    literals: Literals,
    rows: slice,
    profiles: Mapping[int, PredicateProfile],
    identifiers: Mapping[int, str],
    triples: IntArray,
) -> EntityTexts:
    """Collect the texts of one side: its literals are in `rows`, its names from IRIs in `identifiers` (by entity)."""
    owners, predicates = literals.entities[rows], literals.predicates[rows]
    distinct, codes = distinct_texts(literals.values.take(range(rows.start, rows.stop)))
    normalised = normalise(distinct)
    filled = np.flatnonzero(np.array([bool(text) for text in normalised], dtype=bool)[codes])
    name_predicates = [number for number, profile in profiles.items() if profile.kind == "name"]
    name_rows = filled[np.isin(predicates[filled], name_predicates)]
    name_owners, name_codes = _first_of_each(owners[name_rows], codes[name_rows], _MAX_NAMES)
    value_owners, value_codes = _first_of_each(owners[filled], codes[filled])
    # An entity without a name gets the last part of its IRI as its name.
    unnamed = np.setdiff1d(np.fromiter(identifiers, dtype=np.int64, count=len(identifiers)), name_owners)
    normalised += [identifiers[entity] for entity in unnamed.tolist()]
    identifier_codes = np.arange(len(normalised) - len(unnamed), len(normalised))
    name_owners, name_codes = _joined(name_owners, name_codes, unnamed, identifier_codes)
    value_owners, value_codes = _joined(value_owners, value_codes, unnamed, identifier_codes)
    names = [normalised[code] for code in name_codes.tolist()]
    entities, documents = _documents(normalised, value_owners, value_codes)
    first_name: dict[int, str] = {}
    for owner, name in zip(name_owners.tolist(), names, strict=True):
        first_name.setdefault(owner, name)
    neighbors = neighbor_texts(triples, first_name, entities, class_relations(triples))
    return EntityTexts(names, name_owners, entities, documents, neighbors)


def written_texts(
    literals: Literals,
    rows: slice,
    profiles: Mapping[int, PredicateProfile],
    identifiers: Mapping[int, str],
    entities: IntArray,
) -> list[str]:
    """All values of each of the `entities` (n,) as they were written, names first; for a text encoder."""
    is_name = {number: profile.kind == "name" for number, profile in profiles.items()}
    parts: dict[int, tuple[list[str], list[str]]] = {}
    values = literals.values.take(range(rows.start, rows.stop))
    for owner, predicate, value in zip(
        literals.entities[rows].tolist(), literals.predicates[rows].tolist(), values, strict=True
    ):
        names, others = parts.setdefault(owner, ([], []))
        (names if is_name.get(predicate) else others).append(value)
    texts = []
    for entity in entities.tolist():
        names, others = parts.get(entity, ([], []))
        texts.append(". ".join([*(names or [identifiers.get(entity, "")]), *others])[:_MAX_ENCODER_CHARS])
    return texts


def iris_are_words(names: StringTable, first: int, count: int, seed: int = 0) -> bool:
    """Whether the IRIs of one side end in words rather than in opaque ids, judged by a sample."""
    if not count or len(names) < first + count:
        return False
    sample = np.arange(count)
    if count > _SAMPLE_SIZE:
        sample = np.sort(np.random.default_rng(seed).choice(count, _SAMPLE_SIZE, replace=False))
    local_names = [_local_name(name) for name in names.take(first + sample)]
    num_words = sum(not _OPAQUE_ID.match(name) and sum(map(str.isalpha, name)) >= 3 for name in local_names)
    return num_words >= 0.5 * len(local_names)


def identifier_names(names: StringTable, first: int, count: int, seed: int = 0) -> dict[int, str]:
    """The last parts of the IRIs of one side as normalised names, by entity; empty if most of them are opaque ids."""
    if not iris_are_words(names, first, count, seed):
        return {}
    entities = range(first, first + count)
    normalised = normalise(split_identifier(unquote(_local_name(name))) for name in names.take(entities))
    return {entity: text for entity, text in zip(entities, normalised, strict=True) if text}


def class_relations(triples: IntArray) -> frozenset[int]:
    """Relations that lead to very few entities, such as types: their tails are classes, which do not distinguish."""
    if not len(triples):
        return frozenset()
    # np.unique would hash the keys, and keys packed like these collide, which is ten times slower than sorting.
    keys = triples[:, 1].astype(np.int64) << 32 | triples[:, 2]
    keys.sort()
    num_triples = np.bincount(triples[:, 1])
    num_tails = np.bincount(keys[np.diff(keys, prepend=-1) != 0] >> 32, minlength=len(num_triples))
    has_few_tails = (num_triples >= _MIN_CLASS_TRIPLES) & (num_tails <= np.maximum(2, num_triples // 100))
    return frozenset(np.flatnonzero(has_few_tails).tolist())


def neighbor_texts(
    triples: IntArray, names: Mapping[int, str], entities: IntArray, ignored: frozenset[int] = frozenset()
) -> list[str]:
    """The names of the neighbours of each entity (n,) as one text, without the relations in `ignored`."""
    kept = triples[~np.isin(triples[:, 1], sorted(ignored))] if ignored else triples
    # Each triple makes its tail a neighbour of its head and its head one of its tail, in the order of the triples.
    heads_and_tails, neighbors = kept[:, [0, 2]].ravel(), kept[:, [2, 0]].ravel()
    size = int(max(triples[:, [0, 2]].max(initial=-1), entities.max(initial=-1), max(names, default=-1))) + 1
    row_of, code_of = np.full(size, -1, dtype=np.int64), np.full(size, -1, dtype=np.int64)
    row_of[entities] = np.arange(len(entities))
    distinct, codes = distinct_texts(names.values())
    code_of[np.fromiter(names, dtype=np.int64, count=len(names))] = codes
    named = np.flatnonzero((row_of[heads_and_tails] >= 0) & (code_of[neighbors] >= 0))
    rows, name_codes = _first_of_each(row_of[heads_and_tails[named]], code_of[neighbors[named]], _MAX_NEIGHBORS)
    texts = [""] * len(entities)
    rows_with_text, joined_names = _documents(distinct, rows, name_codes)
    for row, text in zip(rows_with_text.tolist(), joined_names, strict=True):
        texts[row] = text
    return texts


def _first_of_each(owners: IntArray, codes: IntArray, maximum: int | None = None) -> tuple[IntArray, IntArray]:
    """The first `maximum` distinct codes of each owner, in their given order; ascending by owner."""
    order = np.lexsort((codes, owners))  # stable: the first of several equal pairs stays the first
    keys = owners[order].astype(np.int64) << 32 | codes[order]
    first = np.sort(order[np.concatenate([[True], keys[1:] != keys[:-1]])]) if len(order) else order
    first = first[np.argsort(owners[first], kind="stable")]
    if maximum is not None:
        starts = np.searchsorted(owners[first], owners[first])
        first = first[np.arange(len(first)) - starts < maximum]
    return owners[first].astype(np.int64), codes[first]


def _joined(owners: IntArray, codes: IntArray, new_owners: IntArray, new_codes: IntArray) -> tuple[IntArray, IntArray]:
    """Join two lists of (owner, code) into one, ascending by owner."""
    all_owners = np.concatenate([owners, new_owners])
    order = np.argsort(all_owners, kind="stable")
    return all_owners[order], np.concatenate([codes, new_codes])[order]


def _documents(distinct: list[str], owners: IntArray, codes: IntArray) -> tuple[IntArray, list[str]]:
    """The distinct owners, and for each of them its texts joined to one; `codes` are indices in `distinct`."""
    entities, starts = np.unique(owners, return_index=True)
    bounds = np.append(starts, len(owners)).tolist()
    texts = [distinct[code] for code in codes.tolist()]
    return entities, [" ".join(texts[start:end])[:_MAX_CHARS] for start, end in itertools.pairwise(bounds)]


def distinct_texts(texts: Iterable[str]) -> tuple[list[str], IntArray]:
    """The distinct texts, and for each text its index among them."""
    code_of: dict[str, int] = {}
    codes = np.array([code_of.setdefault(text, len(code_of)) for text in texts], dtype=np.int64)
    return list(code_of), codes


def _local_name(name: str) -> str:
    """The last part of an IRI; any other name as it is."""
    return re.split(r"[/#]", name.rstrip("/#>"))[-1] if "://" in name else name
