"""Normalise texts: one spelling for all that people read as the same.

In: strings as in the files. Out: lower-case ASCII letters, digits and single spaces. Unicode is folded (NFKC),
other scripts are transliterated (anyascii), everything else separates words.
Cost: one pass; callers pass distinct strings only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

__all__ = ["normalise", "split_identifier"]

_PLAIN = re.compile(r"[^a-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
LONGEST = 2_000  # characters of a text that are compared; more change nothing but the time


def normalise(texts: Iterable[str]) -> list[str]:
    """Each text in its normalised spelling, which may be empty."""
    from anyascii import anyascii

    found = []
    for text in texts:
        cut = text[:LONGEST]
        if not cut.isascii():
            cut = anyascii(unicodedata.normalize("NFKC", cut))
        found.append(_PLAIN.sub(" ", cut.lower()).strip())
    return found


def split_identifier(text: str) -> str:
    """An identifier as words: split at underscores, hyphens and camel case."""
    return _CAMEL.sub(" ", text.replace("_", " ").replace("-", " "))
