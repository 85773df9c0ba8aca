"""Draw names and values for the entities of a synthetic world: similar in both graphs, but seldom equal.

In: the entities of the world that each graph describes, their ids, and a share of noise. Out: `Literals`.
Every entity has a name of artificial words, a date, a number and, one in three, a code. The source states them
correctly, but lacks some. The target has its own predicates, and the share of noise decides how many of its values are
missing or changed: typing errors, words reordered or abbreviated to a letter, words of another language, a wrong date,
a rounded number.
Cost: a few numbers for each entity of the world; polars makes the texts, a quarter of a million entities at a time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from largegnn.artifacts import IntArray, StringTable
from largegnn.artifacts.literals import Literals

__all__ = ["draw_literals"]

_Records = npt.NDArray[np.void]
_CHUNK = 1 << 18
_WORDS, _CODE_SHARE = 40_000, 1 / 3
_WRONG_DATE = 0.2  # share of the noise that makes a date wrong
_SYLLABLES = (
    [*"bcdfghjklmnprstvwz", "br", "ch", "dr", "gr", "kl", "pr", "qu", "st", "tr"],
    [*"aeio", "ou", "ai", "au", "ea", "ia"],
    ["", "", *"lmnrstx", "nd", "st"],
)
_LETTERS = pl.Series(list("abcdefghijklmnopqrstuvwxyz"))
_XSD = "http://www.w3.org/2001/XMLSchema#"
_SOURCE, _TARGET = "http://source.example.org/property/", "http://target.example.org/property/"
# For each side the predicates of name, date, number and code; then their datatypes, and the language of its names.
_PREDICATES = (
    ("http://www.w3.org/2000/01/rdf-schema#label", f"{_SOURCE}founded", f"{_SOURCE}size", f"{_SOURCE}code"),
    (f"{_TARGET}title", f"{_TARGET}since", f"{_TARGET}extent", f"{_TARGET}identifier"),
)
_DATATYPES, _LANGUAGES = ("", f"{_XSD}date", f"{_XSD}integer", ""), ("en", "fr")


def draw_literals(
    members: tuple[IntArray, IntArray], ids: tuple[IntArray, IntArray], noise: float, seed: np.random.SeedSequence
) -> Literals:
    """Draw the literals of both graphs; `members` are the world's entities in each graph, `ids` their ids."""
    world_rng, *rngs = map(np.random.default_rng, seed.spawn(3))
    world = _draw_world(1 + max(int(side.max()) for side in members), world_rng)
    vocabulary = _draw_words(world_rng)
    tables = tuple(
        sorted(set(names)) for names in ((*_PREDICATES[0], *_PREDICATES[1]), ("", *_DATATYPES), ("", *_LANGUAGES))
    )
    rows: list[IntArray] = []
    texts: list[StringTable] = []
    for side in (0, 1):
        # For each kind of value the codes of predicate, datatype and language; literals are sorted by predicate.
        numbers = np.array(
            [
                (
                    tables[0].index(predicate),
                    tables[1].index(datatype),
                    tables[2].index("" if kind else _LANGUAGES[side]),
                )
                for kind, (predicate, datatype) in enumerate(zip(_PREDICATES[side], _DATATYPES, strict=True))
            ],
            dtype=np.int32,
        )
        columns = np.argsort(numbers[:, 0])
        order = np.argsort(ids[side])
        for first in range(0, len(order), _CHUNK):
            chosen = order[first : first + _CHUNK]
            values = _texts(world[members[side][chosen]], vocabulary, noise, side, rngs[side])
            kinds = np.broadcast_to(columns, (len(chosen), len(columns)))
            grid = values.select(values.columns[kind] for kind in columns).to_numpy()
            present = grid != None  # noqa: E711
            entities = np.repeat(ids[side][chosen], present.sum(axis=1))
            rows.append(np.column_stack([entities, numbers[kinds[present]]]))
            texts.append(StringTable.from_strings(grid[present].tolist()))
    entity, predicate, datatype, language = np.concatenate(rows).T
    return Literals(
        entity, predicate, _joined(texts), datatype, language, *(StringTable.from_strings(table) for table in tables)
    )


def _draw_world(num_entities: int, rng: np.random.Generator) -> _Records:
    """Draw the correct values of each entity: positions of its words (-1: none), day, size and code (0: none)."""
    world = np.empty(num_entities, dtype=[("words", "i4", 3), ("day", "i4"), ("size", "i4"), ("code", "i4")])
    shares = 1.0 / (np.arange(_WORDS) + 20.0)  # some words are frequent, as in real names
    for column in range(3):
        world["words"][:, column] = rng.choice(_WORDS, num_entities, p=shares / shares.sum())
    world["words"][rng.random(num_entities) < 0.6, 2] = -1
    world["day"] = rng.integers(0, 80_000, num_entities)
    world["size"] = np.minimum(np.exp(rng.normal(9, 2.5, num_entities)), 2e9) + 1
    world["code"] = rng.permutation(num_entities) + 10_000_000
    world["code"][rng.random(num_entities) >= _CODE_SHARE] = 0
    return world


def _draw_words(rng: np.random.Generator) -> tuple[pl.Series, pl.Series]:
    """Draw distinct words of two or three syllables, and their translations: most differ in their ending alone."""
    num_drawn = 4 * _WORDS
    parts = [
        pl.Series(letters).gather(rng.integers(0, len(letters), num_drawn)) for _ in range(3) for letters in _SYLLABLES
    ]
    frame = pl.DataFrame({f"{index}": part for index, part in enumerate(parts)})
    short, long = pl.concat_str(frame.columns[:6]), pl.concat_str(frame.columns)
    is_long = pl.Series(rng.random(num_drawn) < 0.5)
    words = frame.select(pl.when(is_long).then(long).otherwise(short)).to_series().unique(maintain_order=True)[:_WORDS]
    endings = pl.Series(["e", "ia", "us", "o", "que"]).gather(rng.integers(0, 5, _WORDS))
    unrelated = words.gather(rng.permutation(_WORDS))
    is_related = pl.Series(rng.random(_WORDS) < 0.7)
    related = words.str.head(-1) + endings
    return words, pl.select(pl.when(is_related).then(related).otherwise(unrelated)).to_series()


def _texts(
    world: _Records, vocabulary: tuple[pl.Series, pl.Series], noise: float, side: int, rng: np.random.Generator
) -> pl.DataFrame:
    """State name, date, number and code of some entities as one side does; null for a value that the side lacks."""
    count = len(world)
    share, missing = (noise, noise) if side else (0.0, noise / 2)

    def chance(probability: float) -> pl.Expr:
        return pl.lit(pl.Series(rng.random(count) < probability))

    words = [
        pl.when(chance(share / 2))
        .then(pl.lit(_word(vocabulary[1], numbers)))
        .otherwise(pl.lit(_word(vocabulary[0], numbers)))
        for numbers in world["words"].T
    ]
    day = world["day"] + np.where(rng.random(count) < share * _WRONG_DATE, rng.integers(-800, 800, count), 0)
    size = world["size"].astype(np.int64)
    scale = 10 ** np.maximum(np.floor(np.log10(size)).astype(np.int64) - 1, 0)
    size = np.where(rng.random(count) < share, (size + scale // 2) // scale * scale, size)
    code = pl.when(pl.lit(pl.Series(world["code"])) > 0).then(
        pl.lit("C") + pl.lit(pl.Series(world["code"])).cast(pl.String)
    )
    frame = pl.select(
        name=_misspelt(_reordered(words, chance(share / 4), chance(share / 4)), share, count, rng),
        date=pl.lit(pl.Series(day)).cast(pl.Int32).add(-62_091).cast(pl.Date).cast(pl.String),  # from 1800-01-01
        number=pl.lit(pl.Series(size)).cast(pl.String),
        code=code,
    )
    return frame.select(pl.when(~chance(missing)).then(column).alias(column) for column in frame.columns)


def _word(vocabulary: pl.Series, numbers: IntArray) -> pl.Series:
    """Look words up by their positions, null for -1."""
    return vocabulary.gather(pl.Series(numbers).replace(-1, None))


def _reordered(words: list[pl.Expr], is_reordered: pl.Expr, is_abbreviated: pl.Expr) -> pl.Expr:
    """Join the words of a name: the last word in front, or the first word abbreviated to a letter, or unchanged."""
    first, second, third = words
    return (
        pl.when(is_reordered & third.is_null())
        .then(pl.concat_str([second, pl.lit(", "), first]))
        .when(is_reordered)
        .then(pl.concat_str([third, pl.lit(", "), first, pl.lit(" "), second]))
        .when(is_abbreviated)
        .then(pl.concat_str([first.str.head(1) + ".", second, third], separator=" ", ignore_nulls=True))
        .otherwise(pl.concat_str(words, separator=" ", ignore_nulls=True))
    )


def _misspelt(name: pl.Expr, share: float, count: int, rng: np.random.Generator) -> pl.Expr:
    """Omit, double, replace or swap a letter in a share of the names; all names are in title case."""
    is_wrong = pl.lit(pl.Series(rng.random(count) < share))
    error = pl.lit(pl.Series(rng.integers(0, 4, count)))
    position = (pl.lit(pl.Series(rng.random(count))) * (name.str.len_chars() - 1)).cast(pl.Int64)
    replacement = pl.lit(_LETTERS.gather(rng.integers(0, 26, count)))
    before, letter, after = name.str.head(position), name.str.slice(position, 1), name.str.slice(position + 1)
    misspelt = (
        pl.when(error == 0)
        .then(before + after)
        .when(error == 1)
        .then(before + letter + letter + after)
        .when(error == 2)
        .then(before + replacement + after)
        .otherwise(before + after.str.head(1) + letter + after.str.slice(1))
    )
    return pl.when(is_wrong).then(misspelt).otherwise(name).str.to_titlecase()


def _joined(tables: list[StringTable]) -> StringTable:
    lengths = [np.diff(table.data_ptr) for table in tables]
    return StringTable(
        np.concatenate([table.data for table in tables]), np.append(0, np.cumsum(np.concatenate(lengths)))
    )
