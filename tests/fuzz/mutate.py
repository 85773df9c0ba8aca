"""Valid inputs made invalid, or oddly valid: a few random changes each.

In: bytes, other inputs of the same kind, and their format. Out: other bytes, at most `LARGEST`. All
chance comes from the generator given, and each input gets one of its own (`generator`), so that one can be made again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from tests.fuzz.seed import SEED
from tests.fuzz.tokens import Format

__all__ = ["LARGEST", "generator", "mutate"]

LARGEST = 1 << 20
_LINE = re.compile(rb"(?<=\n)")
_START, _LINE_START, _LINE_END = re.compile(rb"\A"), re.compile(rb"^", re.MULTILINE), re.compile(rb"$", re.MULTILINE)
_WORD = re.compile(rb"[^\s,]+")
_WORD_END = re.compile(rb"(?<=[^\s,])(?=[\s,])|(?<=[\s,])(?=[^\s,])")
_NUMBER = re.compile(rb"\d+")


def generator(*name: object) -> random.Random:
    """Chance for the input of this name, the same in every run with the same seed."""
    return random.Random("/".join(map(str, (SEED, *name))))


def mutate(rng: random.Random, data: bytes, others: Sequence[bytes], form: Format) -> bytes:
    """`data` with one to four changes; `others` are spliced in."""
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        data = rng.choice(_CHANGES)(rng, data, others, form)[:LARGEST]
    return data


def _flip(rng: random.Random, data: bytes, *_: object) -> bytes:
    changed = bytearray(data)
    for _turn in range(rng.choice((1, 1, 1, 5)) if data else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _overwrite(rng: random.Random, data: bytes, *_: object) -> bytes:
    start, _end = _slice(rng, data)
    noise = rng.randbytes(rng.choice((1, 4, 8)))
    return data[:start] + noise + data[start + len(noise) :]


def _truncate(rng: random.Random, data: bytes, *_: object) -> bytes:
    start, _end = _slice(rng, data)
    return data[:start]


def _cut(rng: random.Random, data: bytes, *_: object) -> bytes:
    start, end = _slice(rng, data)
    return data[:start] + data[end:]


def _repeat(rng: random.Random, data: bytes, *_: object) -> bytes:
    start, end = _slice(rng, data)
    times = _times(rng, end - start)
    return data[:start] + data[start:end] * times + data[start:]


def _insert(rng: random.Random, data: bytes, _others: Sequence[bytes], form: Format) -> bytes:
    """A token where it does most: at an end of the file, of a line or of a word; sometimes anywhere."""
    token = rng.choice(form.tokens)
    ends = rng.choice((_START, _LINE_START, _LINE_START, _LINE_END, _WORD_END, _WORD_END, None))
    found = [rng.randint(0, len(data))] if ends is None else [match.start() for match in ends.finditer(data)]
    at = rng.choice(found or [0])
    return data[:at] + token * _times(rng, len(token)) + data[at:]


def _nest(rng: random.Random, data: bytes, _others: Sequence[bytes], form: Format) -> bytes:
    """A word in very many brackets, all of them closed or none."""
    words = [match.span() for match in _WORD.finditer(data)] or [(0, 0)]
    (start, end), (before, after) = rng.choice(words), rng.choice(form.brackets)
    times = rng.choice((10, 1_000, LARGEST // 2 // len(before + after)))
    closed = after * times if rng.random() < 0.7 else b""
    return data[:start] + before * times + data[start:end] + closed + data[end:]


def _exchange_word(rng: random.Random, data: bytes, others: Sequence[bytes], form: Format) -> bytes:
    """A token or another word in the place of a word, which leaves most formats valid."""
    words = [match.span() for match in _WORD.finditer(data)]
    if not words:
        return data
    start, end = rng.choice(words)
    if rng.random() < 0.5:
        return data[:start] + rng.choice(form.tokens) + data[end:]
    new: bytes = rng.choice(_WORD.findall(rng.choice((data, data, *others))) or [b""])
    return data[:start] + new + data[end:]


def _splice(rng: random.Random, data: bytes, others: Sequence[bytes], _form: Format) -> bytes:
    other = rng.choice(others)
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


def _shuffle_lines(rng: random.Random, data: bytes, *_: object) -> bytes:
    lines = _LINE.split(data)
    rng.shuffle(lines)
    return b"".join(lines)


def _change_line_ends(rng: random.Random, data: bytes, *_: object) -> bytes:
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\r\r\n", b"", b" ")))


def _enlarge_number(rng: random.Random, data: bytes, *_: object) -> bytes:
    numbers = list(_NUMBER.finditer(data))
    if not numbers:
        return data
    chosen = rng.choice(numbers)
    new = rng.choice((b"0", b"-1", b"4294967296", b"18446744073709551616", b"9" * 400, b"9" * 5_000))
    return data[: chosen.start()] + new + data[chosen.end() :]


def _slice(rng: random.Random, data: bytes) -> tuple[int, int]:
    start = rng.randint(0, len(data))
    return start, min(len(data), start + rng.choice((1, 3, 20, 200, len(data))))


def _times(rng: random.Random, size: int) -> int:
    """Mostly once; sometimes so often that what nests, nests deeply."""
    return min(rng.choice((1, 1, 1, 1, 2, 100, 60_000)), LARGEST // max(size, 1) or 1)


_Change = Callable[[random.Random, bytes, Sequence[bytes], Format], bytes]
_CHANGES: list[_Change] = [
    _flip,
    _overwrite,
    _truncate,
    _cut,
    _repeat,
    _insert,
    _insert,
    _insert,
    _nest,
    _nest,
    _exchange_word,
    _exchange_word,
    _exchange_word,
    _splice,
    _shuffle_lines,
    _change_line_ends,
    _enlarge_number,
]
