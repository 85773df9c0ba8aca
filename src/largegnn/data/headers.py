"""The first row of a table: which column is which, whatever the columns are called and in whatever order they stand.

In: the words of a row or the columns of a frame. Out: the indices of the columns that hold the head, relation and tail,
the source and target, or the entity and its name; None where the words do not say. Words that belong together go first,
so that a table with `head`, `relation`, `tail` may have a `source` of its own; a mixture counts where each role has one
candidate.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["LINKS", "NAMES", "TRIPLES", "Roles", "find_predicate", "is_key_word", "looks_like_header", "plain_word"]

_WORD = re.compile(r"[^\W\d][\w .()-]{0,59}")
_KEYS = ("id", "_id", "key", "uri", "iri", "url", "identifier", "code", "uuid", "entity", "record", "isbn", "sku")
_PREDICATES = ("predicate_id", "predicate", "relation")


@dataclass(frozen=True)
class Roles:
    """What the columns of a table mean: `names` as our own files call them, `headers` as others do."""

    names: tuple[str, ...]
    headers: tuple[tuple[str, ...], ...]

    def find(self, words: Sequence[str]) -> tuple[int, ...] | None:
        """The index of the column for each role."""
        index_of = {plain_word(word): index for index, word in reversed(list(enumerate(words)))}
        for header in self.headers:
            if all(word in index_of for word in header):
                return tuple(index_of[word] for word in header)
        candidates = [
            {index_of[word] for word in words_of_role if word in index_of}
            for words_of_role in zip(*self.headers, strict=True)
        ]
        indices = tuple(one for found in candidates if len(found) == 1 for one in found)
        return indices if len(set(indices)) == len(self.names) else None


def find_predicate(words: Sequence[str]) -> int | None:
    """The index of the column that says how the two ends of a link are related, where there is one."""
    return next((index for index, word in enumerate(words) if plain_word(word) in _PREDICATES), None)


def looks_like_header(words: Sequence[str]) -> bool:
    """Whether a row may name columns: distinct words, none of them a number, an IRI or a text."""
    plain = [word.strip() for word in words]
    return len(set(plain)) == len(plain) and all(_WORD.fullmatch(word) for word in plain)


def is_key_word(word: str) -> bool:
    """Whether a column's name says that its values tell rows apart."""
    plain = plain_word(word)
    return plain in _KEYS or plain.endswith("_id")


def plain_word(word: str) -> str:
    """A column's name as compared: `?s` of SPARQL results is `s`, `Head Entity` is `head_entity`."""
    return word.strip().strip("\"'").strip().lstrip("?").lower().replace(" ", "_").replace("-", "_")


TRIPLES = Roles(
    ("head", "relation", "tail"),
    (
        ("head", "relation", "tail"),
        ("subject", "predicate", "object"),
        ("head", "rel", "tail"),
        ("source", "relation", "target"),
        ("h", "r", "t"),
        ("s", "p", "o"),
        ("subj", "pred", "obj"),
        ("subject", "property", "object"),
        ("head_entity", "relation", "tail_entity"),
        ("head_id", "relation_id", "tail_id"),
        ("subject_id", "predicate_id", "object_id"),
    ),
)
LINKS = Roles(
    ("source", "target"),
    (
        ("source", "target"),
        ("entity1", "entity2"),
        ("entity_1", "entity_2"),
        ("e1", "e2"),
        ("left", "right"),
        ("subject_id", "object_id"),
        ("source_entity", "target_entity"),
        ("source_id", "target_id"),
        ("subject", "object"),
        ("kg1", "kg2"),
    ),
)
NAMES = Roles(
    ("entity", "name"),
    (
        ("entity", "name"),
        ("id", "label"),
        ("uri", "title"),
        ("iri", "text"),
        ("entity_id", "entity_name"),
        ("key", "literal"),
        ("subject", "object"),
        ("head", "tail"),
        ("s", "o"),
    ),
)
