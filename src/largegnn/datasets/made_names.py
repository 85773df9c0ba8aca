"""Names and values for the entities of a made-up world, as two graphs would state them: alike, and seldom equal.

In: how many entities the world has, which of them each graph describes, and a share of noise. Out: `Literals`.
Every entity has a name of made-up words, a date, a number and, one in three, a code. The source states them as they
are but for what it lacks; the target has predicates of its own and, each by the share of noise: no value at all, typing
errors, words in another order or cut to a letter, words of another language, a wrong date, a rounded number.
Cost: about 6 s and 1 GB per million entities a side.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import IntArray, StringTable
from largegnn.artifacts.literals import Literals

__all__ = ["make_literals"]

Texts = npt.NDArray[np.object_]
_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_STARTS = [
    "b",
    "br",
    "c",
    "ch",
    "d",
    "dr",
    "f",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "kl",
    "l",
    "m",
    "n",
    "p",
    "pr",
    "qu",
    "r",
    "s",
]
_STARTS += ["st", "t", "tr", "v", "w", "z"]
_MIDDLES = ["a", "e", "i", "o", "u", "ai", "au", "ea", "ia", "ou"]
_ENDS = ["", "", "l", "m", "n", "nd", "r", "s", "st", "t", "x"]
_WORDS = 40_000
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# What each graph calls things: name, date, number, code; and the language of its names.
_PREDICATES = (
    (_LABEL, *(f"http://source.example.org/property/{name}" for name in ("founded", "size", "code"))),
    tuple(f"http://target.example.org/property/{name}" for name in ("title", "since", "extent", "identifier")),
)
_LANGUAGES = ("en", "fr")
_DATATYPES = ("", f"{_XSD}date", f"{_XSD}integer", "")
_CODED = 1 / 3
_WRONG = 0.2  # share of the noise that makes a date or a number wrong


def make_literals(
    num_entities: int, members: tuple[IntArray, IntArray], ids: tuple[IntArray, IntArray], noise: float, seed: int
) -> Literals:
    """The literals of both graphs; `members` are the world's entities each describes, `ids` what it numbers them."""
    world_rng, *rngs = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(3))
    vocabulary = _made_words(_WORDS, world_rng)
    foreign = _translated(vocabulary, world_rng)
    words = _drawn_words(num_entities, world_rng)
    days = world_rng.integers(0, 80_000, num_entities)
    sizes = np.round(np.exp(world_rng.normal(9, 2.5, num_entities))).astype(np.int64) + 1
    is_coded = world_rng.random(num_entities) < _CODED
    codes = world_rng.permutation(num_entities) + 10_000_000
    rows: list[tuple[IntArray, int, int, Texts]] = []
    for side, (chosen, entities, rng) in enumerate(zip(members, ids, rngs, strict=True)):
        share = noise if side else 0.0
        lacking = noise if side else noise / 2
        names = _names(words[chosen], vocabulary, foreign, share, rng)
        wrong = rng.random(len(chosen)) < share * _WRONG
        dates = _dates(days[chosen] + np.where(wrong, rng.integers(-800, 800, len(chosen)), 0))
        rounded = rng.random(len(chosen)) < share
        numbers = np.where(rounded, _two_digits(sizes[chosen]), sizes[chosen])
        columns = (names, dates, _as_texts(numbers), np.char.add("C", codes[chosen].astype(str)).astype(object))
        for kind, values in enumerate(columns):
            there = rng.random(len(chosen)) >= lacking
            if kind == 3:
                there &= is_coded[chosen]
            rows.append((entities[there], side, kind, values[there]))
    return _literals(rows)


def _made_words(count: int, rng: np.random.Generator) -> Texts:
    """Distinct words of two or three syllables."""
    found: dict[str, None] = {}
    while len(found) < count:
        parts = [np.array(part)[rng.integers(0, len(part), (count, 3))] for part in (_STARTS, _MIDDLES, _ENDS)]
        syllables = np.char.add(np.char.add(parts[0], parts[1]), parts[2])
        is_long = rng.random(count) < 0.5
        texts = np.char.add(
            np.char.add(syllables[:, 0], syllables[:, 1]), np.where(is_long, syllables[:, 2], "").astype("U8")
        )
        found.update(dict.fromkeys(texts.tolist()))
    return np.array(list(found)[:count], dtype=object)


def _translated(vocabulary: Texts, rng: np.random.Generator) -> Texts:
    """Each word in another language: most with another ending, some quite different."""
    endings = np.array(["e", "ia", "us", "o", "que"])[rng.integers(0, 5, len(vocabulary))]
    other = vocabulary[rng.permutation(len(vocabulary))]
    is_related = rng.random(len(vocabulary)) < 0.7
    pairs = zip(vocabulary.tolist(), endings.tolist(), other.tolist(), is_related.tolist(), strict=True)
    return np.array([word[:-1] + ending if near else far for word, ending, far, near in pairs], dtype=object)


def _drawn_words(count: int, rng: np.random.Generator) -> IntArray:
    """The words of each name (count, 3), -1 for none; some words are frequent, as in real names."""
    shares = 1.0 / (np.arange(_WORDS) + 20.0)
    words = rng.choice(_WORDS, (count, 3), p=shares / shares.sum())
    words[rng.random(count) < 0.6, 2] = -1
    return words


def _names(words: IntArray, vocabulary: Texts, foreign: Texts, noise: float, rng: np.random.Generator) -> Texts:
    """Names as texts; by the share of noise words are translated, reordered, cut to a letter or misspelt."""
    is_foreign = rng.random(words.shape) < noise / 2
    written = np.where(words < 0, "", np.where(is_foreign, foreign[words], vocabulary[words]))
    first, second, third = written.T
    texts = (first + " " + second + np.where(third == "", "", " ") + third).astype(object)
    changes: tuple[tuple[float, Callable[[str, np.random.Generator], str]], ...] = (
        (noise / 4, _reordered),
        (noise / 4, _abbreviated),
        (noise, _misspelt),
    )
    for share, change in changes:
        for row in np.flatnonzero(rng.random(len(texts)) < share).tolist():
            texts[row] = change(texts[row], rng)
    return np.array([text.title() for text in texts.tolist()], dtype=object)


def _reordered(text: str, _: np.random.Generator) -> str:
    head, _space, last = text.rpartition(" ")
    return f"{last}, {head}"


def _abbreviated(text: str, _: np.random.Generator) -> str:
    first, _space, rest = text.partition(" ")
    return f"{first[:1]}. {rest}"


def _misspelt(text: str, rng: np.random.Generator) -> str:
    """One letter is left out, doubled, taken for another, or changes places with the next."""
    place, way = int(rng.integers(0, len(text) - 1)), int(rng.integers(0, 4))
    before, letter, after = text[:place], text[place], text[place + 1 :]
    if way == 0:
        return before + after
    if way == 1:
        return before + letter + letter + after
    if way == 2:
        return before + _LETTERS[int(rng.integers(0, 26))] + after
    return before + after[:1] + letter + after[1:]


def _dates(days: IntArray) -> Texts:
    texts: Texts = (np.datetime64("1800-01-01") + days.astype("timedelta64[D]")).astype(str).astype(object)
    return texts


def _two_digits(numbers: IntArray) -> IntArray:
    """The numbers rounded to two digits."""
    scale = 10 ** np.maximum(np.floor(np.log10(numbers)).astype(np.int64) - 1, 0)
    rounded: IntArray = (numbers + scale // 2) // scale * scale
    return rounded


def _as_texts(numbers: IntArray) -> Texts:
    texts: Texts = numbers.astype(str).astype(object)
    return texts


def _literals(rows: list[tuple[IntArray, int, int, Texts]]) -> Literals:
    """All columns put together in the order of a `Literals`."""
    predicates = sorted({name for names in _PREDICATES for name in names})
    datatypes, languages = sorted({"", *_DATATYPES}), sorted({"", *_LANGUAGES})
    entities = np.concatenate([found for found, *_ in rows])
    numbers = [
        (
            predicates.index(_PREDICATES[side][kind]),
            datatypes.index(_DATATYPES[kind]),
            languages.index(_LANGUAGES[side] if kind == 0 else ""),
        )
        for _, side, kind, *_ in rows
    ]
    table = np.repeat(np.array(numbers, dtype=np.int32), [len(found) for found, *_ in rows], axis=0)
    values = np.concatenate([found for *_, found in rows])
    order = np.lexsort((table[:, 0], entities))
    return Literals(
        entities[order],
        table[order, 0],
        StringTable.from_strings(values[order].tolist()),
        table[order, 1],
        table[order, 2],
        *(StringTable.from_strings(names) for names in (predicates, datatypes, languages)),
    )
