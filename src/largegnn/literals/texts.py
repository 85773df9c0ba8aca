"""The texts of each entity that are compared: its names, all it says of itself, and what its neighbours are called.

In: the literals of one side, the kinds of its predicates, the names of the entities. Out: `EntityTexts`.
Names come from predicates that hold names; an entity without any is called by the last part of its IRI, where such
parts are words and not opaque ids. Distinct texts are normalised once.
Cost: one pass over the literals; a text of an entity is cut at some thousand characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np

from largegnn.artifacts import IntArray, StringTable
from largegnn.artifacts.literals import Literals
from largegnn.literals.normalise import normalise, split_identifier
from largegnn.literals.profiles import PredicateProfile

__all__ = [
    "EntityTexts",
    "class_relations",
    "identifier_names",
    "is_readable",
    "neighbor_texts",
    "texts_of_side",
    "written_texts",
]

_LONGEST = 4_000  # characters of all that an entity says of itself
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
    """What is compared of one side, normalised.

    `names` with `name_owners` (k,), the entity of each, ascending; `documents`, all values of an entity as one text,
    one for each of `entities` (n,), which are all that have a text.
    """

    names: list[str]
    name_owners: IntArray
    entities: IntArray
    documents: list[str]


def texts_of_side(
    literals: Literals,
    inside: slice,
    profiles: Mapping[int, PredicateProfile],
    identifiers: Mapping[int, str],
) -> EntityTexts:
    """The texts of the entities of one side; `identifiers` are the names taken from IRIs."""
    owners, predicates = literals.entities[inside], literals.predicates[inside]
    spelled, codes = _normalised(literals.values, inside)
    is_name = np.array(
        [
            profiles[number].kind == "name" if number in profiles else False
            for number in range(int(predicates.max(initial=-1)) + 1)
        ]
    )
    names_of: dict[int, dict[str, None]] = {}
    said_of: dict[int, dict[str, None]] = {}
    for owner, predicate, code in zip(owners.tolist(), predicates.tolist(), codes.tolist(), strict=True):
        text = spelled[code]
        if not text:
            continue
        said_of.setdefault(owner, {})[text] = None
        if is_name[predicate]:
            names_of.setdefault(owner, {})[text] = None
    for entity, text in identifiers.items():
        if entity not in names_of:
            names_of[entity] = {text: None}
            said_of.setdefault(entity, {})[text] = None
    entities = np.array(sorted(said_of), dtype=np.int64)
    documents = [" ".join(said_of[entity])[:_LONGEST] for entity in entities.tolist()]
    named = [(entity, name) for entity in sorted(names_of) for name in list(names_of[entity])[:_MOST_NAMES]]
    return EntityTexts(
        [name for _, name in named], np.array([entity for entity, _ in named], dtype=np.int64), entities, documents
    )


def written_texts(
    literals: Literals,
    inside: slice,
    profiles: Mapping[int, PredicateProfile],
    identifiers: Mapping[int, str],
    entities: IntArray,
) -> list[str]:
    """What each of these entities (n,) says of itself as it was written, names first; for a text encoder."""
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
    """Relations that lead to very few entities, such as types: their ends say what a thing is, not which one it is."""
    if not len(triples):
        return frozenset()
    ends = np.unique(triples[:, 1].astype(np.int64) << 32 | triples[:, 2]) >> 32
    relations, counts = np.unique(triples[:, 1], return_counts=True)
    distinct = np.bincount(ends, minlength=int(relations.max()) + 1)[relations]
    few = (counts >= _MANY_TRIPLES) & (distinct <= np.maximum(2, counts // 100))
    return frozenset(relations[few].tolist())


def neighbor_texts(
    triples: IntArray, names: Mapping[int, str], entities: IntArray, ignored: frozenset[int] = frozenset()
) -> list[str]:
    """What the neighbours of each entity (n,) are called, as one text; relations in `ignored` do not count."""
    wanted = {entity: index for index, entity in enumerate(entities.tolist())}
    near: list[dict[str, None]] = [{} for _ in wanted]
    for head, relation, tail in triples.tolist():
        if relation in ignored:
            continue
        for one, other in ((head, tail), (tail, head)):
            index, name = wanted.get(one), names.get(other)
            if index is not None and name and len(near[index]) < _MOST_NEIGHBORS:
                near[index][name] = None
    return [" ".join(found)[:_LONGEST] for found in near]


def _normalised(values: StringTable, inside: slice) -> tuple[list[str], IntArray]:
    """Distinct values in the spelling that is compared, and which of them each row has."""
    number_of: dict[str, int] = {}
    codes = np.empty(inside.stop - inside.start, dtype=np.int64)
    for index, text in enumerate(values.take(range(inside.start, inside.stop))):
        codes[index] = number_of.setdefault(text, len(number_of))
    return normalise(number_of), codes


def _local(name: str) -> str:
    return re.split(r"[/#]", name.rstrip("/#>"))[-1] if "://" in name else name
