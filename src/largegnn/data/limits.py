"""How much fits into 32-bit numbers: ids of entities and relations, and the two ends of every triple."""

from __future__ import annotations

from largegnn.errors import InputError

__all__ = ["refuse_too_many"]

_LIMIT = 2**31 - 1
# A triple joins its two entities in both directions, and both are numbered; a relation has an inverse.
_NUMBERS_OF_ONE = {"entities": 1, "relations": 2, "triples": 2}


def refuse_too_many(**counts: int) -> None:
    """Refuse a pair of graphs with more entities, relations or triples than can be numbered."""
    for what, count in counts.items():
        most = _LIMIT // _NUMBERS_OF_ONE[what]
        if count > most:
            raise InputError(
                f"there are more {what} than 32-bit numbers can tell apart",
                expected=f"at most {most:,} {what} in both graphs together",
                found=f"{count:,}",
                fix="leave out what need not be aligned, or align the graphs piece by piece",
            )
