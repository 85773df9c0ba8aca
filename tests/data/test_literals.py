"""Test literals of every format: values without quotes and escapes, datatypes, languages, and invalid input."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import polars as pl
import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.data.batch import LiteralBatch
from largegnn.data.literal_syntax import MAX_VALUE_CHARS, parse_literals, tidied, unescaped
from largegnn.data.rdf_text import INVALID_TAG, TokenFilter
from largegnn.data.readers import read_links
from largegnn.errors import InputError
from tests.data.literal_sets import literals_of_file

XSD = "http://www.w3.org/2001/XMLSchema#"
LINES = [
    '<a:a> <a:label> "Zo\\u00EB \\"x\\"\\t#1 \\\\n"@fr-BE .',
    f'<a:a> <a:age> "3"^^<{XSD}integer> .',
    f'_:b <a:label> "plain" .\n<a:a> <a:label> "typed"^^<{XSD}string> .',
    '<a:a> <a:born> "31 February"^^<http://www.w3.org/2001/XMLSchema#date> .  # no such day',
    "<a:a> <a:r> <a:c> .",
    '<a:caf\\u00E9> <a:label> "\\U0001F600 \\uD83D\\uDE00" .',
]
EXPECTED = [
    ("_:b", "a:label", "plain", "", ""),
    ("a:a", "a:age", "3", f"{XSD}integer", ""),
    ("a:a", "a:born", "31 February", f"{XSD}date", ""),
    ("a:a", "a:label", 'Zoë "x"\t#1 \\n', "", "fr-be"),
    ("a:a", "a:label", "typed", "", ""),
    ("a:café", "a:label", "😀 😀", "", ""),
]


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return path


class TestRdf:
    @pytest.mark.parametrize("form", ["nt", "nq", "ttl"])
    def test_every_form_gives_the_same(self, tmp_path: Path, form: str) -> None:
        path = write(tmp_path / f"t.{form}", "\n".join(LINES) + "\n")
        rows, counts = literals_of_file(path, form)
        assert sorted(rows) == EXPECTED
        assert (counts.cut_values, counts.broken_languages, counts.dropped_literals) == (0, 0, 0)

    def test_turtle_in_its_own_ways(self, tmp_path: Path) -> None:
        text = """@prefix x: <http://x/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
x:a x:label "A"@EN , 'B' ; x:num 3 , 4.5 , true ; x:note \"\"\"two
"lines" \"\"\" ; x:day "2020-01-01"^^xsd:date .
"""
        assert sorted(literals_of_file(write(tmp_path / "t.ttl", text))[0]) == [
            ("http://x/a", "http://x/day", "2020-01-01", f"{XSD}date", ""),
            ("http://x/a", "http://x/label", "A", "", "en"),
            ("http://x/a", "http://x/label", "B", "", ""),
            ("http://x/a", "http://x/note", 'two\n"lines" ', "", ""),
            ("http://x/a", "http://x/num", "3", f"{XSD}integer", ""),
            ("http://x/a", "http://x/num", "4.5", f"{XSD}decimal", ""),
            ("http://x/a", "http://x/num", "true", f"{XSD}boolean", ""),
        ]

    @pytest.mark.parametrize("tag", ["en_US", "", "1", "en-", "e n".replace(" ", "~"), "toolonglanguage", "en--"])
    def test_broken_languages_are_counted_and_their_values_kept(self, tmp_path: Path, tag: str) -> None:
        text = f'<a:a> <a:p> "x"@{tag} .\n<a:a> <a:p> "y"@en .\n'
        for form in ("nt", "nq", "ttl"):
            rows, counts = literals_of_file(write(tmp_path / f"t.{form}", text), form)
            assert sorted(rows) == [("a:a", "a:p", "x", "", ""), ("a:a", "a:p", "y", "", "en")]
            assert counts.broken_languages == 1

    @pytest.mark.parametrize("size", [1, 7, 64, 65, 1000])
    def test_broken_languages_in_turtle_wherever_chunks_end(self, size: int) -> None:
        text = rb"""@prefix x: <http://x/> . # "x"@not_here
x:a x:p "a"@en_US , 'b'@en_US, "c"@de ; x:q '''keep "@this_one " and '@that_one .''' , "no \"@tag_here"@fr.
x:b x:p '''long'''@x_y . <a:"@b_c> x:p "e"@ .
x:c x:p "f"@en--ltr , "g"@1 .
"""
        chunks = [text[first : first + size] for first in range(0, len(text), size)]
        tokens = TokenFilter("a file")
        expected = text
        for broken in (b'"a"@en_US', b"'b'@en_US", b"long'''@x_y", b'"e"@ ', b'"g"@1'):
            expected = expected.replace(broken, re.sub(rb"@\w*", b"", broken))
        assert b"".join([*map(tokens.feed, chunks), tokens.finish()]) == expected
        assert tokens.num_broken == 5
        assert INVALID_TAG.search(text)

    def test_turtle_without_broken_languages_stays_as_it_is(self) -> None:
        text = b'x:a x:p \'a\'@en , "b"@en-GB-x1;x:q "c"@de.\n' * 100
        assert INVALID_TAG.search(text) is None
        for size in (1, 50, 64, 10_000):
            tokens = TokenFilter("a file")
            found = [tokens.feed(text[first : first + size]) for first in range(0, len(text), size)]
            assert (b"".join([*found, tokens.finish()]), tokens.num_broken) == (text, 0)

    def test_directions_are_no_part_of_a_language(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.nt", '<a:a> <a:p> "x"@ar--rtl .\n')
        assert literals_of_file(path)[0] == [("a:a", "a:p", "x", "", "ar")]

    def test_dots_quads_and_no_blanks(self, tmp_path: Path) -> None:
        text = '<a:a><a:p>"x"@en.\n<a:a><a:p>"y"@en<a:g>.\n<a:a><a:p>"z"_:g.\n<a:a><a:p>"w"@en_:g.\n'
        rows, counts = literals_of_file(write(tmp_path / "t.nq", text))
        assert [row[2:] for row in rows] == [("x", "", "en"), ("y", "", "en"), ("z", "", ""), ("w", "", "en")]
        assert counts.graph_names == 3

    def test_long_values_are_cut_and_counted(self, tmp_path: Path) -> None:
        values = [
            "é" * MAX_VALUE_CHARS,
            "é" * (MAX_VALUE_CHARS + 1),
            "x" * 1_000_000,
            "\\u00E9" * 20_000,
            '\\"' * 10_000,
        ]
        text = "".join(f'<a:a> <a:p{number}> "{value}" .\n' for number, value in enumerate(values))
        for form in ("nt", "ttl"):
            rows, counts = literals_of_file(write(tmp_path / f"t.{form}", text))
            lengths = {predicate: len(value) for _, predicate, value, *_ in rows}
            assert lengths == {f"a:p{number}": MAX_VALUE_CHARS for number in range(len(values))}
            assert counts.cut_values == 3, "the second to the fourth"

    def test_names_without_end_and_without_letters_are_dropped(self, tmp_path: Path) -> None:
        text = f'<> <a:p> "x" .\n<a:{"x" * 70_000}> <a:p> "y" .\n<a:a> <a:p> "z"^^<a:{"x" * 70_000}> .\n'
        rows, counts = literals_of_file(write(tmp_path / "t.nt", text + '<a:a> <a:p> "w" .\n'))
        assert (rows, counts.dropped_literals) == ([("a:a", "a:p", "w", "", "")], 3)

    def test_literals_in_a_link_file_are_no_links(self, tmp_path: Path) -> None:
        same = "<http://www.w3.org/2002/07/owl#sameAs>"
        found = read_links(write(tmp_path / "l.nt", f'<a:a> {same} <a:b> .\n<a:a> {same} "b" .\n<a:a> <a:p> "x" .\n'))
        assert (len(found.sources), found.counts.other_statements) == (1, 2)


class TestTables:
    TAILS = (
        ('"Paris"@FR', ("Paris", "", "fr")),
        ('"3"^^<http://int>', ("3", "http://int", "")),
        ('"3"^^xsd:int', ("3", "xsd:int", "")),
        ('"typed"^^xsd:string', ("typed", "", "")),
        ('"say "hi" now"', ('say "hi" now', "", "")),
        ('"two\\nlines \\u00e9 \\\\"', ("two\nlines é \\", "", "")),
        ('"US"@en_US', ("US", "", "")),
        ('""', ("", "", "")),
    )

    @pytest.mark.parametrize(("tail", "expected"), TAILS)
    def test_literal_syntax(self, tmp_path: Path, tail: str, expected: tuple[str, str, str]) -> None:
        rows = [("<http://x/a>", "<p>", tail), ("a", "r", "b")]
        write(tmp_path / "t.tsv", "".join("\t".join(row) + "\n" for row in rows))
        pl.DataFrame(rows, schema=["head", "relation", "tail"], orient="row").write_parquet(tmp_path / "t.parquet")
        pl.DataFrame(rows, schema=["head", "relation", "tail"], orient="row").write_csv(tmp_path / "t.csv")
        for name in ("t.tsv", "t.parquet", "t.csv"):
            found, counts = literals_of_file(tmp_path / name)
            assert found == [("http://x/a", "p", *expected)]
            assert counts.broken_languages == (tail == '"US"@en_US')

    def test_quotes_in_names_do_not_make_literals(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.tsv", 'a\tr\t"Heroes"_(album)\na\tr\tx"y"\na\tr\t"a" b\n')
        assert literals_of_file(path)[0] == []


class TestSyntax:
    def test_what_is_not_in_literal_syntax_is_a_value(self) -> None:
        found = parse_literals(pl.Series(["1955-06-13", '"x"@en', '"open', "say \\n", '"a"^^<t>']))
        assert found.rows() == [
            ("1955-06-13", "", ""),
            ("x", "", "en"),
            ('"open', "", ""),
            ("say \\n", "", ""),
            ("a", "t", ""),
        ]

    def test_escapes_that_stand_for_nothing(self) -> None:
        values = pl.Series(["\\uD800", "\\uDE00\\uD83D", "\\U00110000", "\\q \\", None, "plain"])
        assert unescaped(values).to_list() == ["�", "��", "�", "q \\", None, "plain"]

    @given(st.text())
    def test_escapes_are_those_of_the_parser(self, text: str) -> None:
        term = str(pyoxigraph.Literal(text))
        assert unescaped(pl.Series([term[1:-1]])).to_list() == [text]

    def test_missing_columns_are_filled_and_uneven_ones_refused(self) -> None:
        one = pl.Series(["a"])
        batch, _ = tidied(LiteralBatch(one, one, one))
        assert (batch.datatypes.to_list(), batch.languages.to_list()) == ([""], [""])
        with pytest.raises(ValueError, match="rows"):
            LiteralBatch(one, one, pl.Series(["a", "b"]))


@given(st.lists(st.text(alphabet='"\\@^<>ue0\nD8\t\r.# é', max_size=40), max_size=5))
def test_no_literal_ends_in_a_traceback(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("nasty")
    for form, between, ending in (("nt", " ", " ."), ("ttl", " ", " ."), ("tsv", "\t", ""), ("csv", ",", "")):
        lines = (f'<a:a>{between}<a:p>{between}"{text}"{ending}\n' for text in texts)
        with contextlib.suppress(InputError):
            literals_of_file(write(folder / f"t.{form}", "".join(lines)))
