"""Recognise the format of a file by its name and its first lines.

The suffix decides if a reader lists it (`.nt.gz`, `.tsv`), otherwise the content; a `.ttl` file that begins like
N-Triples, as DBpedia's files do, is read as N-Triples, because that is faster. Each reader lists its own suffixes, so
that formats of other packages are recognised too.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path

from largegnn.data.compression import SUFFIXES, read_head
from largegnn.errors import InputError
from largegnn.parts import READERS

__all__ = ["looks_like_triples", "plain_name", "recognise", "recognise_table"]

_log = logging.getLogger(__name__)
_HEAD = 1 << 16

# The quantifiers are possessive: they never backtrack, so that no line takes more than linear time.
_LABEL = r'_:(?:[^\s<>".]++|\.++(?=[^\s<>".]))++'
_TERM = rf'(?><[^<>\s]*+>|{_LABEL}|"(?:[^"\\]++|\\.)*+"(?:@[\w-]++|\^\^<[^<>\s]*+>)?)'
_TRIPLE_LINE = re.compile(rf"^\s*+(?:{_TERM}\s*+){{3}}\.\s*+$")
_QUAD_LINE = re.compile(rf"^\s*+(?:{_TERM}\s*+){{4}}\.\s*+$")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_TURTLE_LINE = re.compile(r"^\s*(@prefix|@base|prefix|base)\s", re.IGNORECASE)


def plain_name(path: Path) -> Path:
    """Remove the suffix of a compression from a path."""
    return path.with_suffix("") if path.suffix.lower() in SUFFIXES else path


def recognise(path: Path, num_columns: int) -> str:
    """Recognise the format of a file of triples or links with `num_columns` columns; returns a name in `READERS`."""
    head = _head(path, expected="triples or links, one per line")
    named = _named_format(plain_name(path).suffix.lower())
    if _is_parquet(head):
        return "parquet"
    if named == "ttl":
        return "nt" if _content_format(head, num_columns) == "nt" else "ttl"
    form = named or _content_format(head, num_columns)
    if form is None:
        raise InputError(
            "the format of the file is not recognised",
            where=str(path),
            expected=f"one of {', '.join(READERS)}",
            found=_describe(head),
            fix="name it with --format, or give the file the usual suffix",
        )
    return form


def recognise_table(path: Path) -> str:
    """Recognise the format of a table with any number of columns; returns a name in `READERS`."""
    head = _head(path, expected="a table with a row for each entity")
    if _is_parquet(head):
        return "parquet"
    first = head.lstrip(b"\r\n").partition(b"\n")[0]
    return _named_format(plain_name(path).suffix.lower()) or ("tsv" if b"\t" in first else "csv")


def _head(path: Path, expected: str) -> bytes:
    head = read_head(path, _HEAD)
    if not head.strip() and len(head) < _HEAD:
        raise InputError("the file is empty", where=str(path), expected=expected)
    return head


def looks_like_triples(path: Path) -> bool:
    """Whether the first lines of a file are N-Triples, whatever it is called."""
    return _content_format(read_head(path, _HEAD), num_columns=3) == "nt"


def _named_format(suffix: str) -> str | None:
    """Find the first format in `READERS` whose reader lists a suffix; our formats come before those of packages."""
    if not suffix:
        return None
    for name in READERS:
        try:
            if suffix in READERS[name].suffixes:
                return name
        except InputError as error:  # a package that cannot be loaded must not prevent reading other formats
            _log.warning("%s", error)
    return None


def _content_format(head: bytes, num_columns: int) -> str | None:
    text = head.decode("utf-8", "replace").lstrip("\ufeff")
    all_lines = re.split(r"\r\n|\r|\n", text)
    complete = all_lines[:-1] if len(head) >= _HEAD else all_lines
    lines = [line for line in complete if line.strip() and not line.lstrip().startswith("#")][:50]
    if not lines:
        lines = [line for line in complete if line.strip()][:50]
    if any(_TURTLE_LINE.match(line) for line in lines):
        return "ttl"
    if lines and all(_TRIPLE_LINE.match(line) for line in lines):
        return "nt"
    if lines and all(_TRIPLE_LINE.match(line) or _QUAD_LINE.match(line) for line in lines):
        return "nq"
    for separator, form in (("\t", "tsv"), (",", "csv")):
        # Most lines suffice: the reader reports a bad line with its number.
        if lines and sum(line.count(separator) == num_columns - 1 for line in lines) * 2 > len(lines):
            return form
    return "tsv" if any("\t" in line for line in lines) else None


def _is_parquet(head: bytes) -> bool:
    """Whether a file begins as Parquet and is not text; the last character of `head` may be incomplete."""
    is_text = not _CONTROL.search(head) and "\ufffd" not in head.decode("utf-8", "replace")[:-1]
    return head.startswith(b"PAR1") and not is_text


def _describe(head: bytes) -> str:
    if b"\0" in head:
        return "a binary file"
    first = head.strip().partition(b"\n")[0][:80]
    return repr(first.decode("utf-8", "replace")) if first else "blank lines"
