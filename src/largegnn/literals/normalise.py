"""Normalise texts, so that spellings that people read as the same become equal.

In: strings as in the files. Out: lower-case ASCII letters, digits and single spaces. Unicode is normalised (NFKC),
other scripts are transliterated (anyascii), all other characters separate words.
Cost: one pass; callers pass distinct strings only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

__all__ = ["normalise", "split_identifier"]

_SEPARATORS = re.compile(r"[^a-z0-9]+")
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
MAX_CHARS = 2_000  # of a text that are compared; more would only take longer


def normalise(texts: Iterable[str]) -> list[str]:
    """Normalise each text; the result may be empty."""
    from anyascii import anyascii

    normalised = []
    for text in texts:
        shortened = text[:MAX_CHARS]
        if not shortened.isascii():
            shortened = anyascii(unicodedata.normalize("NFKC", shortened))
        normalised.append(_SEPARATORS.sub(" ", shortened.lower()).strip())
    return normalised


def split_identifier(text: str) -> str:
    """Split an identifier into words at underscores, hyphens and camel case."""
    return _CAMEL_CASE.sub(" ", text.replace("_", " ").replace("-", " "))
