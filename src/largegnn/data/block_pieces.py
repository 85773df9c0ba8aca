"""Large files in pieces: blocks of lines parsed and coded by the workers of a cluster.

In: a file whose format is read block by block, a pool of workers. Out: coded batches, in any order: ids follow from the
set of names alone (`vocabulary`), so they are those of one machine.
The idea: a block is parsed by itself, and coded where it was parsed, so that half of its bytes or less come back. A
worker reads a plain file by itself: this process only looks where ranges of bytes can end. A machine that does not see
the file, or sees another of that name, is sent the bytes. Packed files and CSV, in which only all quotes before tell
whether a line break ends a row, are read here, and their blocks sent.
A file with a mistake is read again here, so that the error names the first one, and its line.
Memory here: the batches, as on one machine, and the blocks of some pieces. Cost: that of reading.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from largegnn.data.attributes import attribute_blocks, read_attributes
from largegnn.data.batch import TripleBatch
from largegnn.data.blocks import BlockForm
from largegnn.data.coded_batch import CodedBatch
from largegnn.data.compression import compression_of, read_head
from largegnn.data.lines import LineBlock, last_line_end, line_blocks, range_blocks
from largegnn.data.readers import read_triples, tidied_batch
from largegnn.data.recognise import recognise
from largegnn.errors import InputError
from largegnn.machine.worker_pool import WorkerPool, processor_pool
from largegnn.parts import READERS

__all__ = ["code_block", "code_range", "shared_attributes", "shared_triples"]

_log = logging.getLogger(__name__)
_WORTH_SENDING = 1 << 27  # bytes: some four seconds of a processor; the start of a worker takes one or two
_PACKED = 8  # times the bytes that a packed file has when it is unpacked, about
_RANGE = 1 << 25
_STEP = 1 << 16  # bytes looked at at a time for the end of a line
_FIRST_CHUNK = 1 << 22


@dataclass(frozen=True)
class _Range:
    """A range of bytes of a file; size and time of change tell whether a machine sees the same file."""

    path: Path
    start: int
    stop: int
    num_bytes: int
    changed: int

    def read(self) -> bytes | None:
        """The bytes; None where another file or none has that name."""
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                if (status.st_size, status.st_mtime_ns) != (self.num_bytes, self.changed):
                    return None
                file.seek(self.start)
                text = file.read(self.stop - self.start)
        except OSError:
            return None
        return text if len(text) == self.stop - self.start else None


def shared_triples(path: Path, form: str, keep_literals: bool) -> Iterator[TripleBatch | CodedBatch]:
    """The triples and literals of a file, by the workers where there are any and the file is worth it."""
    pool = _pool(path)
    if pool is None:
        yield from read_triples(path, form)
        return
    blocks = READERS[recognise(path, num_columns=3) if form == "auto" else form].blocks
    if blocks is None:
        yield from read_triples(path, form)
    else:
        yield from _shared(path, blocks, keep_literals, pool, read_triples(path, form))


def shared_attributes(path: Path, keep_literals: bool) -> Iterator[TripleBatch | CodedBatch]:
    """The literals of an attribute file, by the workers where there are any and the file is worth it."""
    pool = _pool(path)
    if pool is None:
        yield from read_attributes(path)
    else:
        yield from _shared(path, attribute_blocks(path), keep_literals, pool, read_attributes(path))


def _pool(path: Path) -> WorkerPool | None:
    pool = processor_pool()
    if pool is None:
        return None
    factor = 1 if compression_of(path) is None else _PACKED
    return pool if factor * path.stat().st_size >= _WORTH_SENDING else None


def _shared(
    path: Path, form: BlockForm, keep_literals: bool, pool: WorkerPool, here: Iterator[TripleBatch]
) -> Iterator[TripleBatch | CodedBatch]:
    """The batches of a file, by the workers; `here` is the file as it is read on one machine."""
    try:
        ranges = _ranges(path, form)
        if ranges is None:
            yield from _by_blocks(path, form, keep_literals, pool)
        else:
            yield from _by_ranges(ranges, form, keep_literals, pool)
    except InputError:
        for _ in here:
            pass
        raise


def _by_ranges(
    ranges: list[_Range], form: BlockForm, keep_literals: bool, pool: WorkerPool
) -> Iterator[TripleBatch | CodedBatch]:
    # The first range is read here: what it says of the file all others must know, and warnings must be heard.
    path, known, num_here = ranges[0].path, None, 0
    while num_here < len(ranges) and (num_here == 0 or (known is None and form.look is not None)):
        for block in range_blocks(path, _text(ranges[num_here]), num_here == 0, form.ends):
            if known is None and form.look is not None:
                known = form.look(path, block)
            yield from map(tidied_batch, form.parse(path, block, known))
        num_here += 1
    others, unseen = ranges[num_here:], []
    for number, found in pool.run(code_range, ((each, None, form, known, keep_literals) for each in others)):
        if found is None:
            unseen.append(others[number])
        else:
            yield from found
    if unseen:
        _log.info("load: not every node sees %s; %d of %d blocks were sent", path, len(unseen), len(ranges))
        for _, found in pool.run(code_range, ((each, _text(each), form, known, keep_literals) for each in unseen)):
            assert found is not None
            yield from found


def code_range(
    part: _Range, text: bytes | None, form: BlockForm, known: Any, keep_literals: bool
) -> list[CodedBatch] | None:
    """The batches of a range that is not the first; None where its file is not to be seen and no text was sent."""
    if text is None:
        text = part.read()
    if text is None:
        return None
    blocks = range_blocks(part.path, text, False, form.ends)
    return [batch for block in blocks for batch in code_block(part.path, block, form, known, keep_literals)]


def _by_blocks(
    path: Path, form: BlockForm, keep_literals: bool, pool: WorkerPool
) -> Iterator[TripleBatch | CodedBatch]:
    blocks, known = line_blocks(path, form.cut, form.ends), None
    for block in blocks:
        if form.look is not None:
            known = form.look(path, block)
        yield from map(tidied_batch, form.parse(path, block, known))
        if known is not None or form.look is None:
            break
    for _, found in pool.run(code_block, ((path, block, form, known, keep_literals) for block in blocks)):
        yield from found


def code_block(path: Path, block: LineBlock, form: BlockForm, known: Any, keep_literals: bool) -> list[CodedBatch]:
    """The batches of a block."""
    return [CodedBatch.of(tidied_batch(batch), keep_literals) for batch in form.parse(path, block, known)]


def _text(part: _Range) -> bytes:
    text = part.read()
    if text is None:
        raise InputError("the file changed while it was read", where=str(part.path), fix="start again")
    return text


def _ranges(path: Path, form: BlockForm) -> list[_Range] | None:
    """Ranges of about a block that end with a line; None where blocks depend on what comes before them."""
    if form.cut is not last_line_end or form.ends == "kept" or compression_of(path) is not None:
        return None
    head = read_head(path, _FIRST_CHUNK)
    if form.ends == "file" and b"\r" in head and b"\n" not in head:
        return None  # CR alone ends the lines
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        size, found, start = status.st_size, [], 0
        while start < size:
            stop = min(start + _RANGE, size)
            file.seek(stop)
            while stop < size and stop - start <= 2 * _RANGE:
                step = file.read(_STEP)
                at = step.find(b"\n")
                if at >= 0 or not step:
                    stop += at + 1
                    break
                stop += len(step)
            else:
                if stop < size:
                    return None  # no line this long is read anywhere
            found.append(_Range(path.resolve(), start, stop, size, status.st_mtime_ns))
            start = stop
    return found
