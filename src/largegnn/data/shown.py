"""Show names in messages: cut if they are long, a few if they are many."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

__all__ = ["listed", "local_part", "shown"]

_LONGEST = 100
_MOST = 5


def shown(text: str, longest: int = _LONGEST) -> str:
    """A text of at most `longest` characters; a longer one is cut, with its length."""
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text):,} characters)"


def listed(names: Iterable[str], most: int = _MOST) -> str:
    """The first names with commas between them, each cut where it is long."""
    first = list(islice(names, most + 1))
    return ", ".join(map(shown, first[:most])) + (", ..." if len(first) > most else "")


def local_part(name: str) -> str:
    """The last part of an IRI, which is what people read; a mark of direction before it stays."""
    mark = "^" if name.startswith("^") else ""
    last = name.rstrip("/").rsplit("/", 1)[-1].rsplit("#", 1)[-1] if "://" in name else name.removeprefix("^")
    return mark + (last or name.removeprefix("^"))
