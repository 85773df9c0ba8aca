"""Language tags in Turtle that are none, such as `"color"@en_US`: taken out before the parser stops at them.

In: chunks of Turtle. Out: the same chunks, without such tags, which are counted. Cost: one search in each chunk for
something behind a quote and an @ that is no tag. Only where there is one are the chunks taken apart, from the beginning
of the file on, since it may stand in a literal or a comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from largegnn.data.nesting import LONGEST_TOKEN, TOKEN

__all__ = ["TagMender"]

_TAG = rb"[A-Za-z]+(?:-[A-Za-z0-9]+)*+(?:--(?:ltr|rtl))?"
_AFTER = rb"(?=[\s.,;)\]}#<]|\Z)"
_SUSPICIOUS = re.compile(rb"[\"']@(?!%b%b)" % (_TAG, _AFTER))
_WRITTEN = re.compile(rb"@[^\s\"'<>.,;()\[\]{}#]*+")
_WHOLE_TAG = re.compile(rb"@%b" % _TAG)
_HELD = 64  # bytes at the end of a chunk that may be half of what is looked for


class TagMender:
    """Hands chunks on without the language tags that are none; `num_broken` counts these."""

    def __init__(self, chunks: Iterator[bytes], again: Callable[[], Iterator[bytes]]) -> None:
        """`again` gives the chunks from the start once more."""
        self.num_broken = 0
        self._chunks, self._again = chunks, again
        self._rest = b""

    def __iter__(self) -> Iterator[bytes]:
        """The chunks."""
        pending, num_handed_on = b"", 0
        for chunk in self._chunks:
            pending += chunk
            if _SUSPICIOUS.search(pending):
                yield from self._mended(pending, num_handed_on)
                return
            end = max(0, len(pending) - _HELD)
            yield pending[:end]
            pending, num_handed_on = pending[end:], num_handed_on + end
        yield pending

    def _mended(self, pending: bytes, num_before: int) -> Iterator[bytes]:
        """What follows, token by token; the first `num_before` bytes of the file have been handed on."""
        for chunk in self._again():
            self._without_tags(chunk[:num_before])
            num_before -= min(len(chunk), num_before)
            if not num_before:
                break
        num_known = len(self._rest)  # of a token that is not closed yet, and has been handed on so far
        yield self._without_tags(pending)[num_known:]
        for chunk in self._chunks:
            yield self._without_tags(chunk)
        yield self._rest

    def _without_tags(self, chunk: bytes) -> bytes:
        """Take in more text; what can be told of it comes back, the rest is kept for later."""
        text, kept, position = self._rest + chunk, [], 0
        end = len(text)
        for token in TOKEN.finditer(text):
            is_open = token.lastgroup not in ("in", "out", None)
            tag = _WRITTEN.match(text, token.end()) if text[token.start()] in b"\"'" else None
            # What touches the end of the text may go on in the next chunk.
            if is_open or max(token.end(), tag.end() if tag else 0) > len(text) - 2:
                end = token.start()
                break
            if tag and not _WHOLE_TAG.fullmatch(tag.group()):
                kept.append(text[position : token.end()])
                position = tag.end()
                self.num_broken += 1
        else:
            end = max(position, len(text) - 2)
        if len(text) - end > LONGEST_TOKEN:
            end = len(text)  # the parser says what is wrong
        self._rest = text[end:]
        return b"".join([*kept, text[position:end]])
