"""Interpret the rows of a table as triples, links, names or entities: find the columns, and parse their cells.

In: rows as columns of text from any format that has columns. Out: batches, as readers yield them. A header shows which
column holds the head, relation and tail, the source and target, or the entity and its name, in any order. A complete
header of `Roles.headers` is preferred; words of several headers are accepted if each role has exactly one candidate.
If the rows of a table are entities, one column is the key, and every other cell that is not empty is a literal whose
predicate is the name of its column. A tail in RDF syntax ("...", "..."@en, "..."^^<type>) is a literal. The angle
brackets around names are removed, so that names match however links and triples are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from largegnn.data.batch import LinkBatch, LiteralBatch, ReadCounts, TripleBatch, check_names, no_names
from largegnn.data.literal_syntax import LITERAL, parse_literals
from largegnn.data.shown import listed, shown
from largegnn.errors import InputError

__all__ = [
    "LINKS",
    "NAMES",
    "TRIPLES",
    "Roles",
    "Rows",
    "entities_of",
    "find_key",
    "is_key_word",
    "is_same_as",
    "links_of",
    "looks_like_header",
    "names_of",
    "pick_columns",
    "plain_word",
    "table_without_key",
    "triples_of",
    "without_brackets",
]

SAME_AS = ("http://www.w3.org/2002/07/owl#sameAs", "http://www.w3.org/2004/02/skos/core#exactMatch")
_SAME_AS_SHORT = ("owl:sameAs", "skos:exactMatch", "sameAs", "exactMatch")
_WORD = re.compile(r"[^\W\d][\w .()-]{0,59}")
_KEYS = ("id", "_id", "key", "uri", "iri", "url", "identifier", "code", "uuid", "entity", "record", "isbn", "sku")
_PREDICATE, _PREDICATES = "predicate", ("predicate_id", "predicate", "relation")
_BRACKETS = r"^<(.+)>$"
_MAX_SHOWN = 20


@dataclass(frozen=True)
class Roles:
    """The columns a kind of table needs: their `names` in our own files, and the accepted `headers` of other files."""

    names: tuple[str, ...]
    headers: tuple[tuple[str, ...], ...]

    def find(self, words: Sequence[str]) -> tuple[int, ...] | None:
        """Find the index of the column for each role; None if the words do not tell."""
        index_of: dict[str, int] = {}
        for index, word in enumerate(words):
            index_of.setdefault(plain_word(word), index)
        for header in self.headers:
            if all(word in index_of for word in header):
                return tuple(index_of[word] for word in header)
        candidates = [
            {index_of[word] for word in words_of_role if word in index_of}
            for words_of_role in zip(*self.headers, strict=True)
        ]
        indices = tuple(index for role in candidates if len(role) == 1 for index in role)
        return indices if len(set(indices)) == len(self.names) else None


@dataclass(frozen=True)
class Rows:
    """Rows of a table as columns of text, named by their roles; `where` tells the location of a row for errors."""

    frame: pl.DataFrame
    where: Callable[[int], str]
    counts: ReadCounts = field(default_factory=ReadCounts)


def pick_columns(words: Sequence[str], roles: Roles) -> dict[str, int] | None:
    """Find the column of each role, and of the `predicate` of links if present; None if the words do not fit."""
    indices = roles.find(words)
    if indices is None:
        return None
    picked = dict(zip(roles.names, indices, strict=True))
    predicates = [index for index, word in enumerate(words) if plain_word(word) in _PREDICATES]
    return {**picked, _PREDICATE: predicates[0]} if roles is LINKS and predicates else picked


def plain_word(word: str) -> str:
    """Normalise a column's name for comparison: `?s` of SPARQL results is `s`, `Head Entity` is `head_entity`."""
    return word.strip().strip("\"'").strip().lstrip("?").lower().replace(" ", "_").replace("-", "_")


def looks_like_header(words: Sequence[str]) -> bool:
    """Whether a row may name columns: distinct words, none of them a number, an IRI or a long text."""
    plain = [word.strip() for word in words]
    return len(set(plain)) == len(plain) and all(_WORD.fullmatch(word) for word in plain)


def is_key_word(word: str) -> bool:
    """Whether a column's name suggests that its values identify rows."""
    plain = plain_word(word)
    return plain in _KEYS or plain.endswith("_id")


def find_key(path: Path, words: Sequence[str], key: str) -> int:
    """Find the key column: the column of exactly this name, else the only column that differs in case or blanks."""
    if key in words:
        return list(words).index(key)
    alike = [index for index, word in enumerate(words) if plain_word(word) == plain_word(key)]
    if len(alike) == 1:
        return alike[0]
    raise InputError(
        f"the table has no column {shown(key)}",
        where=str(path),
        expected="the name of the column whose values identify the rows",
        found=f"columns {listed(words, _MAX_SHOWN)}" if words else "no columns",
        fix="name one of these columns with --source-key or --target-key",
    )


def table_without_key(where: str, words: Sequence[str]) -> InputError:
    """Return the error for a table of entities that was given as triples."""
    return InputError(
        "this is a table with a row for each entity, not a file of triples",
        where=where,
        expected="head, relation, tail; or the name of the column whose values identify the rows",
        found=f"columns {listed(words, _MAX_SHOWN)}",
        fix=f"name the key column, for example --source-key {shown(words[0])} or --target-key {shown(words[0])}",
    )


def is_same_as(relations: pl.Series) -> pl.Series:
    """Whether each relation makes its statement a link, (n,) bool."""
    return relations.is_in([*SAME_AS, *_SAME_AS_SHORT]).fill_null(value=False)


def without_brackets(frame: pl.DataFrame) -> pl.DataFrame:
    """Remove the brackets of names written as `<name>`."""
    bracketed = [name for name in frame.columns if bool(frame[name].str.starts_with("<").any())]
    return frame.with_columns(pl.col(name).str.replace(_BRACKETS, "$1") for name in bracketed)


def triples_of(rows: Rows) -> TripleBatch:
    """Convert rows with `head`, `relation` and `tail` to triples; tails in RDF syntax are literals."""
    frame, where = rows.frame, rows.where
    check_names(frame.select("head", "relation").to_dict(), where)
    literals = LiteralBatch()
    row_of_kept: pl.Series | None = None
    if bool(frame["tail"].str.starts_with('"').any()):
        is_literal = frame["tail"].str.contains(LITERAL)
        literals = _literals_of(frame.filter(is_literal))
        row_of_kept = (~is_literal).arg_true()
        frame = frame.filter(~is_literal)
    check_names({"tail": frame["tail"]}, lambda row: where(row if row_of_kept is None else int(row_of_kept[row])))
    frame = without_brackets(frame)
    return TripleBatch(frame["head"], frame["relation"], frame["tail"], literals, counts=rows.counts)


def _literals_of(frame: pl.DataFrame) -> LiteralBatch:
    names, parsed = without_brackets(frame.select("head", "relation")), parse_literals(frame["tail"])
    return LiteralBatch(names["head"], names["relation"], parsed["value"], parsed["datatype"], parsed["language"])


def links_of(rows: Rows) -> LinkBatch:
    """Convert rows with `source` and `target` to links; a column `predicate` marks the rows that are links."""
    ends = rows.frame.select("source", "target")
    check_names(ends.to_dict(), rows.where)
    ends, counts = without_brackets(ends), rows.counts
    if _PREDICATE in rows.frame.columns:
        chosen = is_same_as(without_brackets(rows.frame.select(_PREDICATE))[_PREDICATE])
        ends = ends.filter(chosen)
        counts = ReadCounts.total([counts, ReadCounts(other_statements=len(chosen) - len(ends))])
    return LinkBatch(ends["source"], ends["target"], counts)


def names_of(rows: Rows) -> TripleBatch:
    """Convert rows with `entity` and `name` to literals."""
    entities = rows.frame.select("entity")
    check_names(entities.to_dict(), rows.where)
    heads, parsed = without_brackets(entities)["entity"], parse_literals(rows.frame["name"])
    literals = LiteralBatch(heads, heads, parsed["value"], parsed["datatype"], parsed["language"])
    return TripleBatch(literals=literals, counts=rows.counts)


def entities_of(
    rows: Rows, words: Sequence[str], key_index: int, datatypes: Mapping[int, str] | None = None
) -> TripleBatch:
    """Convert rows (columns in the order of `words`) to entities and literals; `datatypes` is by column index."""
    keys = rows.frame.to_series(key_index).str.strip_chars()
    check_names({"key": keys}, rows.where)
    keys = keys.str.replace(_BRACKETS, "$1")
    heads, predicates, values, types = [no_names()], [no_names()], [no_names()], [no_names()]
    for index, column in enumerate(rows.frame.iter_columns()):
        filled = column.str.contains(r"\S").fill_null(False)
        if index == key_index or not bool(filled.any()):
            continue
        heads.append(keys.filter(filled))
        values.append(column.filter(filled))
        predicate = words[index].strip() or f"column {index + 1}"
        predicates.append(_repeated(predicate, len(values[-1])).str.replace(_BRACKETS, "$1"))
        types.append(_repeated((datatypes or {}).get(index, ""), len(values[-1])))
    literals = LiteralBatch(*(pl.concat(columns) for columns in (heads, predicates, values, types)))
    return TripleBatch(literals=literals, entities=keys, counts=rows.counts)


def _repeated(text: str, count: int) -> pl.Series:
    return pl.repeat(text, count, dtype=pl.String, eager=True)


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
