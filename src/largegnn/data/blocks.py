"""Formats that are read block by block: each block of lines for itself, here or elsewhere.

In: a path and a `BlockForm`. Out: batches of triples and literals. What all blocks must know, such as which column is
which, is told by the first of them that says anything; nothing else passes from one block to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from largegnn.data.batch import TripleBatch
from largegnn.data.lines import LineBlock, LineEnds, last_line_end, line_blocks

__all__ = ["BlockForm", "read_blocks"]


@dataclass(frozen=True)
class BlockForm:
    """How a format is read block by block.

    `parse` takes a block and what is known of the file, which `look` tells from a block: None where it says nothing.
    The block of line 1 may be looked at more closely. `cut` and `ends` are those of `line_blocks`. Everything here can
    be sent to other machines.
    """

    parse: Callable[[Path, LineBlock, Any], Iterator[TripleBatch]]
    look: Callable[[Path, LineBlock], Any] | None = None
    cut: Callable[[bytes], int] = last_line_end
    ends: LineEnds = "file"


def read_blocks(path: Path, form: BlockForm) -> Iterator[TripleBatch]:
    """The triples and literals of a file."""
    known = None
    for block in line_blocks(path, form.cut, form.ends):
        if known is None and form.look is not None:
            known = form.look(path, block)
        yield from form.parse(path, block, known)
