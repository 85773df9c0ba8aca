"""Test every format with small files: what is read, and which line an error names."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import ClassVar

import polars as pl
import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.data import lines as lines_module
from largegnn.data.readers import read_links, read_triples
from largegnn.errors import InputError
from largegnn.parts import READERS

Triples = list[tuple[str, str, str]]


def read(path: Path, form: str = "auto") -> tuple[Triples, list[str], int]:
    """Read the triples, the heads of attributes and the number of dropped graph names of a file."""
    triples: Triples = []
    attributes: list[str] = []
    named = 0
    for batch in read_triples(path, form):
        triples += zip(batch.heads, batch.relations, batch.tails, strict=True)
        attributes += batch.literals.heads.to_list()
        named += batch.counts.graph_names
    return triples, attributes, named


def links(path: Path) -> list[tuple[str, str]]:
    found = read_links(path)
    return list(zip(found.sources, found.targets, strict=True))


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return path


class TestTsv:
    def test_quotes_and_commas_are_part_of_names(self, tmp_path: Path) -> None:
        path = write(tmp_path / "rel_triples_1", 'http://x/"Heroes"_(album)\tr,1\tb "c"\n')
        assert read(path)[0] == [('http://x/"Heroes"_(album)', "r,1", 'b "c"')]

    def test_literals_are_attributes(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.tsv", 'a\tname\t"Paris"@fr\na\tr\tb\nb\tage\t"3"^^<http://int>\nc\tx\t"plain"\n')
        assert read(path) == ([("a", "r", "b")], ["a", "b", "c"], 0)

    def test_crlf_mark_blank_lines_and_no_last_line_break(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.tsv", b"\xef\xbb\xbfa\tr\tb\r\n\r\n\nb\tr\tc")
        assert read(path)[0] == [("a", "r", "b"), ("b", "r", "c")]

    def test_a_header_row_is_no_triple(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.tsv", "Head\tRelation\tTail\na\tr\tb\n")
        assert read(path)[0] == [("a", "r", "b")]

    def test_brackets_go(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.tsv", "<http://a>\t<r>\t<http://b>\n<c\tr>\td\n")
        assert read(path)[0] == [("http://a", "r", "http://b"), ("<c", "r>", "d")]

    @pytest.mark.parametrize(("bad", "found"), [("a\tb", 2), ("a\tb\tc\td", 4), ("just words", 1)])
    def test_wrong_columns_are_named_with_their_line(self, tmp_path: Path, bad: str, found: int) -> None:
        path = write(tmp_path / "t.tsv", f"a\tr\tb\n\na\tr\tc\n{bad}\na\tr\td\n")
        with pytest.raises(InputError, match="wrong number of columns") as error:
            read(path)
        assert error.value.where == f"{path}, line 4"
        assert str(error.value.found).startswith(f"{found} in")

    def test_a_header_does_not_shift_line_numbers(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.tsv", "head\trelation\ttail\na\tr\tb\na\tr\n")
        with pytest.raises(InputError) as error:
            read(path)
        assert error.value.where == f"{path}, line 3"

    def test_an_empty_name_is_named_with_its_line(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.tsv", 'a\tr\tb\na\tr\t"x"\n\na\t\tc\n')
        with pytest.raises(InputError, match="relation is empty") as error:
            read(path)
        assert error.value.where == f"{path}, line 4"

    def test_bytes_that_are_no_text_are_named_with_their_line(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="not valid UTF-8") as error:
            read(write(tmp_path / "t.tsv", b"a\tr\tb\nc\tr\t\xff\xfe\n"))
        assert error.value.where == f"{tmp_path / 't.tsv'}, line 2"
        with pytest.raises(InputError, match="binary file"):
            read(write(tmp_path / "u.tsv", b"a\tr\tb\n\x00\x01\x02\n"))

    def test_a_line_of_ten_megabytes(self, tmp_path: Path) -> None:
        long = "x" * 10_000_000
        with pytest.raises(InputError, match="wrong number of columns"):
            read(write(tmp_path / "t.tsv", f"a\tr\tb\n{long}\n"))
        with pytest.raises(InputError, match="tail is 10,000,000 bytes long") as error:
            read(write(tmp_path / "t.tsv", f"a\tr\tb\na\tr\t{long}\n"))
        assert error.value.where == f"{tmp_path / 't.tsv'}, line 2"
        assert read(write(tmp_path / "t.tsv", f'a\tr\tb\na\tr\t"{long}"\n')) == ([("a", "r", "b")], ["a"], 0)

    def test_blocks_do_not_show(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = [(f"entity {number}", f"r{number % 3}", f"é{number}") for number in range(500)]
        path = write(tmp_path / "t.tsv", "".join("\t".join(row) + "\n" for row in rows) + "bad\n")
        monkeypatch.setattr(lines_module, "_BLOCK", 64)
        with pytest.raises(InputError) as error:
            read(path)
        assert error.value.where == f"{path}, line 501"
        write(path, "\n".join("\t".join(row) for row in rows))
        assert read(path)[0] == rows

    def test_a_line_without_end_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lines_module, "_BLOCK", 64)
        monkeypatch.setattr(lines_module, "_MAX_LINE_BYTES", 1000)
        path = write(tmp_path / "t.tsv", "a\tr\tb\n" + "x" * 5000)
        with pytest.raises(InputError, match="longer than 1,000 bytes") as error:
            read(path)
        assert error.value.where == f"{path}, line 2"


class TestCsv:
    def test_quoting(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lines_module, "_BLOCK", 16)
        text = 'head,relation,tail\n"a, b",r,"say ""x"" now"\n"two\nlines",r,c\nplain,r,d\n'
        expected = [("a, b", "r", 'say "x" now'), ("two\nlines", "r", "c"), ("plain", "r", "d")]
        assert read(write(tmp_path / "t.csv", text))[0] == expected

    @pytest.mark.parametrize(
        ("text", "line"),
        [("a,r,b\na,r\n", 2), ('a,r,b\n"x",r,c,d\n', 2), ('"a\nb",r,c\n"x",r\n', 3), ('a,r,"b"c"\n', 1)],
    )
    def test_bad_rows_are_named_with_their_line(self, tmp_path: Path, text: str, line: int) -> None:
        path = write(tmp_path / "t.csv", text)
        with pytest.raises(InputError, match=r"wrong number of columns|not valid CSV") as error:
            read(path)
        assert error.value.where == f"{path}, line {line}"


class TestRdf:
    TEXT = """# a comment
<http://a> <http://r> <http://b> .
_:x <http://r> <http://a>.
<http://a> <http://name> "Zo\\u00EB \\"x\\" #1"@fr-BE .\t
<http://a> <http://age> "3"^^<http://int> .

<http://a>\t<http://r>\t_:x.y . # trailing comment
<http://caf\\u00E9> <http://r> <http://b c> .
"""
    TRIPLES: ClassVar[Triples] = [
        ("http://a", "http://r", "http://b"),
        ("_:x", "http://r", "http://a"),
        ("http://a", "http://r", "_:x.y"),
        ("http://café", "http://r", "http://b c"),
    ]

    def test_n_triples(self, tmp_path: Path) -> None:
        triples, attributes, _ = read(write(tmp_path / "t.nt", self.TEXT))
        assert sorted(triples) == sorted(self.TRIPLES)
        assert attributes == ["http://a", "http://a"]

    def test_n_quads_lose_their_graphs_and_say_so(self, tmp_path: Path) -> None:
        text = '<a:a> <a:r> <a:b> <a:g> .\n<a:a> <a:r> <a:c> .\n<a:a> <a:r> _:b _:g .\n<a:a> <a:n> "x" <a:g> .\n'
        triples, attributes, named = read(write(tmp_path / "t.nq", text + "<a:\\u0061> <a:r> <a:d> <a:g> .\n"))
        expected = [("a:a", "a:r", tail) for tail in ("a:b", "a:c", "_:b", "a:d")]
        assert sorted(triples) == sorted(expected)
        assert (attributes, named) == (["a:a"], 4)

    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["<http://a>", "_:b", "_:b.", "<a\\u0041>", "<a b>", "<>", '"x"', "<http://é>"]),
                st.sampled_from(["<http://r>", "_:r", "<r>", " "]),
                st.sampled_from(
                    ["<http://b>", "_:c-1", '"x"', '"x"@en', '"x"^^<t>', '"x\\q"', '"a\\nb"', '"', "<b", "'x'", '"x"@']
                ),
                st.sampled_from([" .", ".", " . # end", "", " . .", " <g> ."]),
                st.sampled_from([" ", "\t", "", "  "]),
            ),
            min_size=1,
            max_size=6,
        )
    )
    def test_the_quick_way_and_the_parser_agree(
        self, tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, ...]]
    ) -> None:
        text = "".join(gap.join([head, relation, tail]) + end + "\n" for head, relation, tail, end, gap in rows)
        path = write(tmp_path_factory.mktemp("rdf") / "t.nt", text)
        try:
            quads = list(pyoxigraph.parse(text.encode(), pyoxigraph.RdfFormat.N_TRIPLES, lenient=True))
        except SyntaxError:
            with pytest.raises(InputError, match="not valid N-Triples"):
                read(path)
            return
        expected = []
        for quad in quads:
            head = ("_:" if isinstance(quad.subject, pyoxigraph.BlankNode) else "") + quad.subject.value
            if not isinstance(quad.object, pyoxigraph.Literal):
                tail = ("_:" if isinstance(quad.object, pyoxigraph.BlankNode) else "") + quad.object.value
                expected.append((head, quad.predicate.value, tail))
        if any("" in triple for triple in expected):
            with pytest.raises(InputError, match="is empty"):
                read(path)
        else:
            assert sorted(read(path)[0]) == sorted(expected)

    @pytest.mark.parametrize("form", ["nt", "nq"])
    def test_syntax_errors_have_the_line_of_the_file(self, tmp_path: Path, form: str) -> None:
        path = write(tmp_path / f"t.{form}", "<a:a> <a:r> <a:b> .\n# odd\n<a:\\u0061> <a:r> <a:c> .\n\n<a:a> <a:r .\n")
        with pytest.raises(InputError, match="not valid N-") as error:
            read(path)
        assert error.value.where == f"{path}, line 5"

    def test_turtle(self, tmp_path: Path) -> None:
        text = """@prefix x: <http://x/> .
x:a x:r x:b , [ x:r x:c ] ; x:name "A" .
_:label x:r x:a .
"""
        triples, attributes, _ = read(write(tmp_path / "t.ttl", b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()))
        assert ("http://x/a", "http://x/r", "_:[1]") in triples
        assert ("_:[1]", "http://x/r", "http://x/c") in triples
        assert ("_:label", "http://x/r", "http://x/a") in triples
        assert (len(triples), attributes) == (4, ["http://x/a"])
        assert read(tmp_path / "t.ttl")[0] == triples, "nameless nodes must get the same names every time"

    def test_turtle_errors_have_a_line(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.ttl", "@prefix x: <http://x/> .\nx:a x:r x:b .\nx:a y:r x:b .\n")
        with pytest.raises(InputError, match="not valid Turtle") as error:
            read(path)
        assert error.value.where == f"{path}, line 3"


class TestParquet:
    def test_columns_are_found_by_name_and_numbers_are_names(self, tmp_path: Path) -> None:
        path = tmp_path / "t.parquet"
        pl.DataFrame({"object": [3, 4], "note": [None, "x"], "Subject": [1, 2], "predicate": ["r", "s"]}).write_parquet(
            path
        )
        assert read(path)[0] == [("1", "r", "3"), ("2", "s", "4")]

    def test_missing_columns_are_named(self, tmp_path: Path) -> None:
        path = tmp_path / "t.parquet"
        pl.DataFrame({"head": ["a"], "tail": ["b"]}).write_parquet(path)
        with pytest.raises(InputError, match="does not have the columns") as error:
            read(path)
        assert error.value.found == "head, tail"

    def test_other_types_nulls_and_damage(self, tmp_path: Path) -> None:
        path = tmp_path / "t.parquet"
        pl.DataFrame({"head": [1.5], "relation": ["r"], "tail": ["b"]}).write_parquet(path)
        with pytest.raises(InputError, match="holds no names"):
            read(path)
        pl.DataFrame({"head": ["a", None], "relation": ["r", "r"], "tail": ["b", "c"]}).write_parquet(path)
        with pytest.raises(InputError, match="head is missing") as error:
            read(path)
        assert error.value.where == f"{path}, row 2"
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(InputError, match=r"not valid Parquet|damaged"):
            read(path)


class TestLinks:
    def test_every_form(self, tmp_path: Path) -> None:
        expected = [("a:a", "a:A"), ("a:b", "a:B")]
        same_as = "<http://www.w3.org/2002/07/owl#sameAs>"
        forms: dict[str, str] = {
            "l.tsv": "a:a\ta:A\na:b\ta:B\n",
            "l": "a:a\ta:A\na:b\ta:B\n",
            "l.csv": "source,target\na:a,a:A\na:b,a:B\n",
            "l.nt": f"<a:a> {same_as} <a:A> .\n<a:a> <a:other> <a:B> .\n<a:b> {same_as} <a:B> .\n",
            "l.ttl": "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
            f"<a:a> owl:sameAs <a:A> .\n<a:b> {same_as} <a:B> .\n",
        }
        for name, text in forms.items():
            assert links(write(tmp_path / name, text)) == expected, name
        pl.DataFrame({"e1": ["a:a", "a:b"], "e2": ["a:A", "a:B"]}).write_parquet(tmp_path / "l.parquet")
        assert links(tmp_path / "l.parquet") == expected

    def test_no_links(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="empty"):
            read_links(write(tmp_path / "l.tsv", "\n\n"))
        with pytest.raises(InputError, match="no links") as error:
            read_links(write(tmp_path / "l.nt", "<a:a> <a:r> <a:b> .\n"))
        assert error.value.expected == "owl:sameAs or skos:exactMatch statements"


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("x", "<a:a> <a:r> <a:b> .\n", "nt"),
        ("x", "<a:a> <a:r> <a:b> <a:g> .\n<a:a> <a:r> <a:b> .\n", "nq"),
        ("x", "@prefix x: <http://x/> .\nx:a x:r x:b .\n", "ttl"),
        ("x", "a\tr\tb\n", "tsv"),
        ("x", "a,r,b\n", "csv"),
        ("x.ttl", "<a:a> <a:r> <a:b> .\n", "ttl"),
    ],
)
def test_formats_are_told_from_content(tmp_path: Path, name: str, text: str, form: str) -> None:
    path = write(tmp_path / name, text)
    assert sorted(read(path)[0]) == sorted(read(path, form)[0]) != []


def test_what_is_no_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not recognised"):
        read(write(tmp_path / "x", "one two three four\n"))
    with pytest.raises(InputError, match="binary file"):
        read(write(tmp_path / "x", bytes(range(256)) * 10))
    with pytest.raises(InputError, match="not recognised") as error:
        read(write(tmp_path / "x", bytes(9) * 10))
    assert error.value.found == "a binary file"
    with pytest.raises(InputError, match="empty"):
        read(write(tmp_path / "x", ""))


@pytest.mark.parametrize("form", list(READERS))
@given(
    data=st.one_of(
        st.binary(max_size=300),
        st.text(alphabet='<>_:"\\ab\t\n\r,.@^#é \x00', max_size=120).map(lambda text: text.encode("utf-8")),
    )
)
def test_no_reader_ever_ends_in_a_traceback(tmp_path_factory: pytest.TempPathFactory, form: str, data: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "file"
    path.write_bytes(data)
    for reader in (lambda: read(path, form), lambda: read(path), lambda: read_links(path)):
        with contextlib.suppress(InputError):
            reader()
