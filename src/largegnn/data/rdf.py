"""Read RDF with pyoxigraph: N-Triples and N-Quads in blocks of lines, Turtle as a stream.

In: a path. Out: batches of triples between names (IRIs without brackets, blank nodes as `_:label`) and of literals;
graph names and statements about triples are dropped and counted. IRIs are not validated: many in real dumps are
invalid. Links are the statements owl:sameAs and skos:exactMatch.
N-Triples and N-Quads must have one statement per line, so that a literal without its closing quote cannot swallow the
next lines. Short text may abbreviate long names (by a prefix or a base): a file is refused if its names take much
memory, and very much compared with its text. Cost: two seconds for a million triples, one second if most lines hold
three IRIs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pyoxigraph as ox

from largegnn.data.batch import Block, LinkBatch, LiteralBatch, ReadCounts, Reader, TripleBatch, check_names
from largegnn.data.columns import is_same_as
from largegnn.data.compression import as_stream, read_chunks, without_marks
from largegnn.data.iri import nameless
from largegnn.data.lines import LineBlock, line_blocks, location, with_line_feeds
from largegnn.data.literal_syntax import MAX_VALUE_CHARS
from largegnn.data.rdf_text import INVALID_TAG, MAX_DEPTH, TokenFilter
from largegnn.data.shown import shown
from largegnn.errors import InputError

__all__ = ["NQ", "NT", "TURTLE"]

_FORMS = {"nt": ox.RdfFormat.N_TRIPLES, "nq": ox.RdfFormat.N_QUADS, "ttl": ox.RdfFormat.TURTLE}
_IRI = r'<([^\x00-\x20<>"{}|^`\\]+)>'
_GAP = r"[ \t]*"
_BEGIN = rf"^{_GAP}{_IRI}{_GAP}{_IRI}{_GAP}{_IRI}{_GAP}"
# Three IRIs, as in most lines of most files: an expression takes half the time of the parser, which creates objects.
_PLAIN_LINE = {"nt": rf"{_BEGIN}\.{_GAP}$", "nq": rf"{_BEGIN}(?:{_IRI}{_GAP})?\.{_GAP}$"}
_BATCH = 250_000
_BATCH_BYTES = 1 << 25
# With prefixes of a hundred bytes and all abbreviations of Turtle, names take about fifty times the text.
_MAX_EXPANSION = 200
_ALWAYS_ALLOWED = 1 << 26
_POSITION = re.compile(r"^Parser error at line \d+ (between columns|column) [\d and]+: ")
# Escapes of half a surrogate pair, or of no character. What the group `kept` matches is valid and stays as it is.
_INVALID_ESCAPE = re.compile(
    rb"(?P<kept>\\\\|\\u[Dd][89ABab]\w\w\\u[Dd][C-Fc-f]\w\w)"
    rb"|\\u[Dd][89A-Fa-f][0-9A-Fa-f]{2}|\\U(?!000[0-9A-Fa-f]|0010)[0-9A-Fa-f]{8}|\\U0000[Dd][89A-Fa-f][0-9A-Fa-f]{2}"
)
# Random labels that the parser gives nodes without a label, and labels in a file that look like random labels.
_RANDOM_LABEL = re.compile(r"[0-9a-f]{20,32}")
_SIMILAR_LABEL = re.compile(rb"_:([0-9a-f]{20,32})")
_OVERLAP = 64  # bytes of a chunk that are searched again with the next chunk

BlankName = Callable[[str], str]


def read_line_block(path: Path, block: LineBlock, form: str) -> list[TripleBatch]:
    """Parse a block of N-Triples or N-Quads: plain lines by a regular expression, all other lines by pyoxigraph."""
    text = with_line_feeds(block.text)[:-1].decode("utf-8")
    lines = pl.Series("line", [text]).str.split("\n").explode()
    groups = lines.str.extract_groups(_PLAIN_LINE[form]).struct.unnest()
    plain = groups.filter(groups["1"].is_not_null())
    is_other = groups["1"].is_null()
    check_names({"head": plain["1"], "relation": plain["2"], "tail": plain["3"]}, lambda _: str(path))
    rest = pl.DataFrame({"line": lines.filter(is_other), "number": is_other.arg_true() + block.first_line})
    is_blank = rest["line"].str.contains(r"^[ \t]*$")
    is_comment = rest["line"].str.contains(r"^[ \t]*#")
    counts = ReadCounts(
        block.num_marks,
        blank_lines=int(is_blank.sum()),
        comment_lines=int(is_comment.sum()),
        graph_names=plain["4"].count() if "4" in plain.columns else 0,
    )
    batch = TripleBatch(plain["1"], plain["2"], plain["3"], counts=counts)
    return [batch, *_parse_lines(path, rest.filter(~(is_blank | is_comment)), form)]


def _parse_lines(path: Path, lines: pl.DataFrame, form: str) -> list[TripleBatch]:
    """Parse lines (`line`, `number`) of one statement each: all at once, or line by line if that fails."""
    for line, number in lines.filter(pl.col("line").str.count_matches("<<", literal=True) > MAX_DEPTH).rows():
        TokenFilter(location(path, number)).feed(line.encode("utf-8"))  # refuses terms nested too deep
    text = "\n".join(lines["line"]).encode("utf-8")
    try:
        parsed = list(batches(path, ox.parse(input=text, format=_FORMS[form], lenient=True)))
        if sum(map(_num_statements, parsed)) == len(lines):
            return [_closed(path, batch) for batch in parsed]
    except (SyntaxError, ValueError, MemoryError):
        pass
    broken: list[int] = []
    parsed = [_closed(path, batch) for batch in batches(path, _parse_each(path, lines, form, broken))]
    return [*parsed, TripleBatch(counts=ReadCounts(broken_languages=len(broken)))]


def _num_statements(batch: TripleBatch) -> int:
    return len(batch.heads) + len(batch.literals) + batch.counts.triple_terms


def _parse_each(path: Path, lines: pl.DataFrame, form: str, broken: list[int]) -> Iterator[Any]:
    """Parse line by line, and fix invalid language tags and escapes; `broken` gets the line number of each such tag."""
    for text, number in lines.iter_rows():
        line = text.encode("utf-8")
        try:
            yield from _statement(line, form)
        except (SyntaxError, ValueError, MemoryError):
            tokens = TokenFilter(location(path, number))
            fixed = tokens.feed(line + b"  ") + tokens.finish()
            fixed = _INVALID_ESCAPE.sub(lambda match: match["kept"] or rb"\uFFFD", fixed)
            broken += [number] * tokens.num_broken
            with _refusing(path, form, number):
                statement = _statement(fixed, form)
            yield from statement


def _statement(line: bytes, form: str) -> list[Any]:
    statements = list(ox.parse(input=line, format=_FORMS[form], lenient=True))
    if not statements:
        raise SyntaxError("the statement does not end on its line")
    return statements


@contextmanager
def _refusing(path: Path, form: str, line: int | None = None) -> Iterator[None]:
    """Turn errors of the parser into `InputError`; `line` is given if the parser reads a single line."""
    problem = f"the file is not valid {_FORMS[form].name}"
    try:
        yield
    except SyntaxError as error:
        raise InputError(
            problem,
            where=location(path, line or error.lineno or 1),
            found=shown(_POSITION.sub("", str(error.msg)), 200),
            fix="fix the line, or name the right format with --format",
        ) from None
    except MemoryError as error:
        if "buffer" not in str(error):
            raise
        problem = "a literal, name or comment is longer than the parser accepts"
        raise InputError(problem, where=str(path), found=str(error)) from None
    except (ValueError, OSError) as error:
        raise InputError(problem, where=str(path), found=shown(str(error), 200)) from None


def batches(
    path: Path,
    quads: Iterator[Any],
    name_blank: BlankName = "_:{}".format,
    num_bytes_read: Callable[[], int] | None = None,
) -> Iterator[TripleBatch]:
    """Group statements into batches; `num_bytes_read` returns how much text was read so far."""
    total = 0
    while True:
        batch, size = _next_batch(path, quads, name_blank)
        if not _num_statements(batch):
            return
        total += size
        if num_bytes_read is not None and total > max(_ALWAYS_ALLOWED, _MAX_EXPANSION * num_bytes_read()):
            raise InputError(
                "the names take far more memory than the text they are written in",
                where=str(path),
                expected=f"at most {_MAX_EXPANSION} times the text, once they take more than "
                f"{_ALWAYS_ALLOWED >> 20} MiB",
                found=f"{total >> 20:,} MiB of names in {num_bytes_read():,} bytes",
                fix="check the prefixes and the base of the file: one of them is very long",
            )
        yield batch


def _next_batch(path: Path, quads: Iterator[Any], name_blank: BlankName) -> tuple[TripleBatch, int]:
    """Collect the next statements as columns, and check them; returns the number of characters in their names too."""
    heads: list[str] = []
    relations: list[str] = []
    tails: list[str] = []
    literals: list[tuple[str, str, str, str, str]] = []
    size = num_graphs = num_terms = 0
    named_node, literal, default_graph = ox.NamedNode, ox.Literal, ox.DefaultGraph
    for num_statements, (head, relation, tail, graph) in enumerate(quads, start=1):
        head_name = head.value if type(head) is named_node else name_blank(head.value)
        kind = type(tail)
        if kind is literal:
            # One character more than is kept, so that `tidied` notices and counts the cut.
            value, datatype = tail.value[: MAX_VALUE_CHARS + 1], tail.datatype.value
            literals.append((head_name, relation.value, value, datatype, tail.language or ""))
            size += len(value) + len(datatype)
        elif kind is ox.Triple:
            num_terms += 1
        else:
            tail_name = tail.value if kind is named_node else name_blank(tail.value)
            heads.append(head_name)
            relations.append(relation.value)
            tails.append(tail_name)
            size += len(tail_name) + len(relations[-1])
        size += len(head_name)
        if type(graph) is not default_graph:
            num_graphs += 1
        if num_statements >= _BATCH or size >= _BATCH_BYTES:
            break
    columns = {"head": pl.Series(heads, dtype=pl.String), "relation": pl.Series(relations, dtype=pl.String)}
    columns["tail"] = pl.Series(tails, dtype=pl.String)
    check_names(columns, lambda _: str(path))
    texts = (pl.Series(column, dtype=pl.String) for column in zip(*literals, strict=True))
    counts = ReadCounts(graph_names=num_graphs, triple_terms=num_terms)
    batch = TripleBatch(columns["head"], columns["relation"], columns["tail"], LiteralBatch(*texts), counts=counts)
    return batch, size


def _closed(path: Path, batch: TripleBatch) -> TripleBatch:
    """Refuse names with line breaks: if an IRI lacks its closing bracket, the parser continues on the next line."""
    for names in (batch.heads, batch.relations, batch.tails):
        broken = names.filter(names.str.contains("[\r\n]"))
        if len(broken):
            raise InputError(
                "an IRI is not closed on its line",
                where=str(path),
                found=shown(repr(broken[0])),
                fix="close it with >, and write no line breaks in names",
            )
    return batch


class _BlankNames:
    """Names of blank nodes: the label in the file, or a number for a node without a label.

    The parser gives nodes without a label (`[]`, collections) random labels; they are replaced by numbers in order of
    appearance, so that names do not change from run to run.
    """

    def __init__(self, written: set[str]) -> None:
        self._written = written
        self._number_of: dict[str, int] = {}

    def __call__(self, label: str) -> str:
        if not _RANDOM_LABEL.fullmatch(label) or label in self._written:
            return f"_:{label}"
        return nameless(self._number_of.setdefault(label, len(self._number_of) + 1))


class _Stream:
    """The text of a file as chunks for the parser; counts the bytes read and the language tags dropped.

    A first pass collects the labels in the file, and finds whether the text must be filtered, since filtering takes
    several times as long as reading.
    """

    def __init__(self, path: Path) -> None:
        self.num_bytes = self.num_broken = 0
        self.written: set[str] = set()
        self._path = path
        self._needs_filter = False
        num_terms, end = 0, b""
        for chunk in read_chunks(path):
            text = end + chunk
            num_terms += text.count(b"<<") - end.count(b"<<")
            self._needs_filter |= num_terms > MAX_DEPTH or INVALID_TAG.search(text) is not None
            self.written.update(label.decode() for label in _SIMILAR_LABEL.findall(text))
            end = text[-_OVERLAP:]
        self.num_marks, self._chunks = without_marks(read_chunks(path))

    def __iter__(self) -> Iterator[bytes]:
        tokens = TokenFilter(str(self._path))
        for chunk in self._chunks:
            self.num_bytes += len(chunk)
            yield tokens.feed(chunk) if self._needs_filter else chunk
        self.num_broken = tokens.num_broken
        yield tokens.finish()


def read_stream(path: Path, form: str) -> Iterator[TripleBatch]:
    """Read the statements of a file in a format that must be read from beginning to end."""
    text = _Stream(path)
    yield TripleBatch(counts=ReadCounts(byte_order_marks=text.num_marks))
    with as_stream(text) as stream, _refusing(path, form):
        quads = ox.parse(input=stream, format=_FORMS[form], lenient=True)
        for batch in batches(path, quads, _BlankNames(text.written), lambda: text.num_bytes):
            yield _closed(path, batch)
    yield TripleBatch(counts=ReadCounts(broken_languages=text.num_broken))


def _read_blocks(path: Path, form: str) -> Iterator[Block]:
    return (partial(read_line_block, path, block, form) for block in line_blocks(path))


def _read_lines(path: Path, form: str) -> Iterator[TripleBatch]:
    for block in _read_blocks(path, form):
        yield from block()


def _links_of(batch: TripleBatch) -> LinkBatch:
    chosen = is_same_as(batch.relations)
    num_others = len(chosen) - int(chosen.sum()) + len(batch.literals)
    counts = ReadCounts.total([batch.counts, ReadCounts(other_statements=num_others)])
    return LinkBatch(batch.heads.filter(chosen), batch.tails.filter(chosen), counts)


def _reader(form: str, *suffixes: str, in_lines: bool = False) -> Reader:
    triples = partial(_read_lines if in_lines else read_stream, form=form)
    blocks = partial(_read_blocks, form=form) if in_lines else None

    def links(path: Path) -> Iterator[LinkBatch]:
        return map(_links_of, triples(path))

    return Reader(triples, links, suffixes, names=triples, blocks=blocks)


NT = _reader("nt", ".nt", ".ntriples", in_lines=True)
NQ = _reader("nq", ".nq", ".nquads", in_lines=True)
TURTLE = _reader("ttl", ".ttl", ".turtle")
