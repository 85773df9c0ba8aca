"""How deep triple terms, `<<( a b <<( ... )>> )>>`, stand in each other, before a parser sees them.

In: chunks of RDF text. Out: the same chunks. The parser goes down once for each level and takes the whole process with
it when there are thousands; so deeper terms than any person writes are an `InputError`. Other brackets do no harm.
Cost: one search for `<<` in each chunk. Only where there are more of these than levels allowed are the chunks taken
apart, from the beginning of the file on, since `<<` may stand in a literal or a comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from largegnn.errors import InputError

__all__ = ["DEEPEST", "LONGEST_TOKEN", "TOKEN", "Depth", "guard_depth", "too_deep"]

DEEPEST = 256
LONGEST_TOKEN = 1 << 25  # twice what the parser takes
# A token that is not closed at the end of the text matches with its group `open`: the next chunk may close it.
TOKEN = re.compile(
    rb"""
      (?P<in><<) | (?P<out>>>)
    | <[^>]*+(?:>|(?P<open1>\Z))
    | \#[^\r\n]*+(?:[\r\n]|(?P<open2>\Z))
    | \"\"\"(?:[^\"\\]++|\\.|\"{1,2}+(?!\"|\Z))*+(?:\"\"\"|(?P<open3>.*+\Z))
    | '''(?:[^'\\]++|\\.|'{1,2}+(?!'|\Z))*+(?:'''|(?P<open4>.*+\Z))
    | \"(?:[^\"\\]++|\\.)*+(?:\"|(?P<open5>.*+\Z))
    | '(?:[^'\\]++|\\.)*+(?:'|(?P<open6>.*+\Z))
    | \\.
    """,
    re.VERBOSE | re.DOTALL,
)


class Depth:
    """How many triple terms are open, over chunks that follow each other."""

    def __init__(self) -> None:
        self._rest = b""
        self._depth = 0

    def is_too_deep(self, chunk: bytes) -> bool:
        """Take in more text; true once it goes deeper than allowed."""
        text = self._rest + chunk
        # What stands in the last two bytes may be half a token.
        certain, position = len(text) - 2, 0
        for token in TOKEN.finditer(text):
            kind = token.lastgroup
            if token.end() > certain or kind not in ("in", "out", None):
                position = token.start()
                break
            position = token.end()
            self._depth = max(0, self._depth + (kind == "in") - (kind == "out"))
            if self._depth > DEEPEST:
                return True
        else:
            position = max(position, certain)
        self._rest = text[position:]
        return False

    @property
    def num_held(self) -> int:
        """Bytes of a token that has not ended yet."""
        return len(self._rest)


def guard_depth(path: Path, chunks: Iterator[bytes], again: Callable[[], Iterator[bytes]]) -> Iterator[bytes]:
    """Hand chunks on, unless terms are nested too deep; `again` gives the chunks from the start once more."""
    num_openings, last, depth = 0, b"", None
    for number, chunk in enumerate(chunks):
        num_openings += chunk.count(b"<<") + (last == b"<" and chunk.startswith(b"<"))
        last = chunk[-1:]
        if num_openings > DEEPEST:
            if depth is None:
                depth = Depth()
                for earlier, _ in zip(again(), range(number), strict=False):
                    depth.is_too_deep(earlier)
            if depth.is_too_deep(chunk):
                raise too_deep(str(path))
            if depth.num_held > LONGEST_TOKEN:
                raise InputError(f"a literal or comment is longer than {LONGEST_TOKEN:,} bytes", where=str(path))
        yield chunk


def too_deep(where: str) -> InputError:
    """The error for terms nested too deep."""
    return InputError(
        "triple terms are nested too deep",
        where=where,
        expected=f"at most {DEEPEST} levels of <<( ... )>>",
        fix="check that this is the file meant",
    )
