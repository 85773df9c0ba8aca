"""Shorten names and lists of names for messages."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

__all__ = ["listed", "local_part", "shown"]

_MAX_CHARS = 100
_MAX_LISTED = 5


def shown(text: str, max_chars: int = _MAX_CHARS) -> str:
    """Return a text of at most `max_chars` characters; a longer text is cut, and its length added."""
    return text if len(text) <= max_chars else f"{text[:max_chars]}... ({len(text):,} characters)"


def listed(names: Iterable[str], maximum: int = _MAX_LISTED) -> str:
    """Join the first names with commas; long names are cut."""
    first = list(islice(names, maximum + 1))
    return ", ".join(map(shown, first[:maximum])) + (", ..." if len(first) > maximum else "")


def local_part(name: str) -> str:
    """Return the last part of an IRI, which people read; the mark ^ of a reversed relation stays."""
    mark = "^" if name.startswith("^") else ""
    last = name.rstrip("/").rsplit("/", 1)[-1].rsplit("#", 1)[-1] if "://" in name else name.removeprefix("^")
    return mark + (last or name.removeprefix("^"))
