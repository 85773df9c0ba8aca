"""Which relations say that two names mean the same thing: what makes a statement a link."""

from __future__ import annotations

import polars as pl

__all__ = ["SAME_AS", "says_same"]

SAME_AS = ("http://www.w3.org/2002/07/owl#sameAs", "http://www.w3.org/2004/02/skos/core#exactMatch")
_SHORT = ("owl:sameAs", "skos:exactMatch", "sameAs", "exactMatch")


def says_same(relations: pl.Series) -> pl.Series:
    """Whether each relation makes its statement a link, (n,) bool."""
    return relations.is_in([*SAME_AS, *_SHORT]).fill_null(value=False)
