"""Remove invalid language tags from RDF text before the parser reads it, and refuse deep nesting.

In: chunks of RDF text. Out: the same text without invalid language tags (`"color"@en_US`), at which the parser would
stop; they are counted. Triple terms `<<( a b <<( ... )>> )>>` nested more than 256 deep are an `InputError`: the parser
recurses at each level, and thousands of levels would crash the process. Nesting of other brackets is harmless.
Cost: several seconds for a million triples, so callers filter only text that may need it.
"""

from __future__ import annotations

import re

from largegnn.errors import InputError

__all__ = ["INVALID_TAG", "MAX_DEPTH", "TokenFilter"]

MAX_DEPTH = 256
_MAX_TOKEN_BYTES = 1 << 25  # twice what the parser accepts
# A token that is not closed at the end of the text matches one of the groups `open1` to `open6`: the next chunk may
# close it.
_TOKEN = re.compile(
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
_TAG = rb"[A-Za-z]+(?:-[A-Za-z0-9]+)*+(?:--(?:ltr|rtl))?"
_WRITTEN_TAG = re.compile(rb"@[^\s\"'<>.,;()\[\]{}#]*+")
_VALID_TAG = re.compile(rb"@%b" % _TAG)
# A possible invalid tag: @ after a quote, which may be the end of a literal, without a valid tag after it.
INVALID_TAG = re.compile(rb"@(?<=[\"']@)(?!%b(?:[\s.,;)\]}#<]|\Z))" % _TAG)


class TokenFilter:
    """Removes invalid language tags from chunks of RDF text; `num_broken` counts them."""

    def __init__(self, where: str) -> None:
        self.num_broken = 0
        self._where = where
        self._rest = b""
        self._depth = 0

    def feed(self, chunk: bytes) -> bytes:
        """Add a chunk; returns the filtered text as far as it cannot change, and keeps the rest for later."""
        text = self._rest + chunk
        kept = []
        position, end = 0, len(text)
        for token in _TOKEN.finditer(text):
            kind = token.lastgroup
            tag = _WRITTEN_TAG.match(text, token.end()) if text[token.start()] in b"\"'" else None
            # A token or tag at the end of the text may continue in the next chunk.
            if kind not in ("in", "out", None) or max(token.end(), tag.end() if tag else 0) > len(text) - 2:
                end = token.start()
                break
            self._depth = max(0, self._depth + (kind == "in") - (kind == "out"))
            if self._depth > MAX_DEPTH:
                raise InputError(
                    "triple terms are nested too deep",
                    where=self._where,
                    expected=f"at most {MAX_DEPTH} levels of <<( ... )>>",
                    fix="check that this is the right file",
                )
            if tag and not _VALID_TAG.fullmatch(tag.group()):
                kept.append(text[position : token.end()])
                position = tag.end()
                self.num_broken += 1
        else:
            end = max(position, len(text) - 2)
        if len(text) - end > _MAX_TOKEN_BYTES:
            raise InputError(f"a literal or comment is longer than {_MAX_TOKEN_BYTES:,} bytes", where=self._where)
        self._rest = text[end:]
        return b"".join([*kept, text[position:end]])

    def finish(self) -> bytes:
        """Return the rest of the text."""
        return self._rest
