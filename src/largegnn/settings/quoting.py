"""Values of users in messages: short, and never a failure of their own."""

from __future__ import annotations

__all__ = ["shown"]

_LONGEST = 100


def shown(value: object) -> str:
    """A value as Python writes it, cut to 100 characters."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):
        # Python writes no numbers of thousands of digits and no lists within lists within thousands of lists.
        return f"a value too large to show ({type(value).__name__})"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text):,} characters)"
