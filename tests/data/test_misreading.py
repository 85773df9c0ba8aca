"""Test that files are read exactly: no triple is lost or invented, and left-out items are counted."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.data import lines as lines_module
from largegnn.data.batch import ReadCounts
from largegnn.data.readers import read_links, read_triples
from largegnn.errors import InputError

Triples = list[tuple[str, str, str]]
TRIPLES: Triples = [("a", "r", "b"), ("b", "s", "c")]


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return path


def read(path: Path) -> tuple[Triples, ReadCounts]:
    batches = list(read_triples(path))
    triples = [row for batch in batches for row in zip(batch.heads, batch.relations, batch.tails, strict=True)]
    return sorted(triples), ReadCounts.total(batch.counts for batch in batches)


def links(path: Path) -> list[tuple[str, str]]:
    found = read_links(path)
    return list(zip(found.sources, found.targets, strict=True))


class TestHeaders:
    @pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
    @pytest.mark.parametrize(
        "words",
        [
            "relation head tail",
            "tail relation head",
            "object subject predicate",
            "p s o",
            "?o ?p ?s",
            "t h r",
            "Relation Source TARGET",
            "subject relation object",
            "tail_entity relation head_entity",
        ],
    )
    def test_columns_are_read_by_their_names(self, tmp_path: Path, name: str, words: str) -> None:
        role = {"h": 0, "s": 0, "r": 1, "p": 1, "t": 2, "o": 2}
        roles = [0 if word.lower() == "source" else role[word.lower().lstrip("?")[0]] for word in words.split()]
        roles = [2 if word.lower() == "target" else index for word, index in zip(words.split(), roles, strict=True)]
        rows = [words.split(), *([triple[index] for index in roles] for triple in [("x", "y", "z"), ("z", "y", "x")])]
        separator = "," if name.endswith("csv") else "\t"
        path = write(tmp_path / name, "".join(separator.join(row) + "\n" for row in rows))
        assert read(path) == ([("x", "y", "z"), ("z", "y", "x")], ReadCounts(header_rows=1))

    def test_other_columns_may_stand_between(self, tmp_path: Path) -> None:
        text = 'id,tail,source,relation,head\n1,b,web,r,a\n2,c,"a, b",s,b\n'
        assert read(write(tmp_path / "t.csv", text))[0] == TRIPLES
        assert read(write(tmp_path / "t.csv", text.replace('"a, b"', "")))[0] == TRIPLES

    def test_short_words_that_stand_again_are_names(self, tmp_path: Path) -> None:
        assert read(write(tmp_path / "t.tsv", "o\tp\ts\nx\tp\to\n"))[0] == [("o", "p", "s"), ("x", "p", "o")]

    def test_headers_in_the_middle_go_too(self, tmp_path: Path) -> None:
        one = "head,relation,tail\na,r,b\n"
        for text in (one + one.replace("a,r,b", "b,s,c"), one + '"head",relation,tail\nb,s,c\n'):
            assert read(write(tmp_path / "t.csv", text)) == (TRIPLES, ReadCounts(header_rows=2))

    @pytest.mark.parametrize("text", ["target,source\nA,a\nB,b\n", "note,entity2,entity1\n,A,a\nx,B,b\n"])
    def test_links_by_name(self, tmp_path: Path, text: str) -> None:
        assert links(write(tmp_path / "l.csv", text)) == [("a", "A"), ("b", "B")]
        assert links(write(tmp_path / "l.tsv", text.replace(",", "\t"))) == [("a", "A"), ("b", "B")]

    def test_a_predicate_says_which_rows_are_links(self, tmp_path: Path) -> None:
        rows = ["subject_id predicate_id object_id", "a skos:exactMatch A", "b skos:broadMatch B", "c owl:sameAs C"]
        path = write(tmp_path / "l.tsv", "\n".join(rows).replace(" ", "\t"))
        assert links(path) == [("a", "A"), ("c", "C")]
        assert read_links(path).counts == ReadCounts(header_rows=1, other_statements=1)
        pl.read_csv(path, separator="\t").write_parquet(tmp_path / "l.parquet")
        assert links(tmp_path / "l.parquet") == [("a", "A"), ("c", "C")]

    def test_an_unknown_header_is_said(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        rows = "".join(f"http://x/{n}\thttp://x/r\thttp://x/{n + 1}\n" for n in range(9))
        read(write(tmp_path / "t.tsv", "Subjekt\tPrädikat\tObjekt\n" + rows))
        assert "looks like a header" in caplog.text
        caplog.clear()
        read(write(tmp_path / "t.tsv", rows))
        assert not caplog.text

    def test_the_separator_meant_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="wrong number of columns") as error:
            read(write(tmp_path / "t.csv", "head;relation;tail\na;r;b\n"))
        assert "separated by semicolons" in str(error.value.fix)
        assert "a header row that names them (head, relation, tail)" in str(error.value.expected)


class TestLineEnds:
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\r\r\n"])
    @pytest.mark.parametrize("block", [7, 1 << 25])
    def test_tables(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, block: int) -> None:
        monkeypatch.setattr(lines_module, "_BLOCK", block)
        text = "head,relation,tail\na,r,b\nb,s,c\n".replace("\n", end)
        for table in (text, text[: -len(end)]):
            assert read(write(tmp_path / "t.csv", table))[0] == TRIPLES
            assert read(write(tmp_path / "t.tsv", table.replace(",", "\t")))[0] == TRIPLES
            assert read(write(tmp_path / "t.csv", table.replace("a,", '"a",')))[0] == TRIPLES

    def test_quoted_line_breaks_are_kept(self, tmp_path: Path) -> None:
        for end in ("\n", "\r\n", "\r"):
            path = write(tmp_path / "t.csv", f'"x\ry",r,"x\r\ny"{end}"x\ny",s,b{end}')
            assert read(path)[0] == [("x\ny", "s", "b"), ("x\ry", "r", "x\r\ny")]

    def test_a_return_within_a_line_of_tsv_is_never_a_loss(self, tmp_path: Path) -> None:
        assert read(write(tmp_path / "t.tsv", "a\rx\tr\tb\nb\ts\tc\n"))[0] == [("a\rx", "r", "b"), ("b", "s", "c")]
        with pytest.raises(InputError, match="wrong number of columns"):
            read(write(tmp_path / "t.tsv", "a\tr\tb\nb\ts\tc\rd\tr\te\n"))

    @pytest.mark.parametrize("name", ["t.nt", "t.nq", "t.ttl"])
    @pytest.mark.parametrize("block", [5, 1 << 25])
    def test_rdf(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, block: int) -> None:
        monkeypatch.setattr(lines_module, "_BLOCK", block)
        text = "# one\r<a:a> <a:r> <a:b> .\r# two\r\n<a:b> <a:s> <a:c> . # three\r<a:c> <a:r> <a:d> .\n\r"
        triples, counts = read(write(tmp_path / name, text))
        assert triples == [("a:a", "a:r", "a:b"), ("a:b", "a:s", "a:c"), ("a:c", "a:r", "a:d")]
        assert name == "t.ttl" or counts == ReadCounts(comment_lines=2, blank_lines=1)

    def test_line_numbers_count_every_kind(self, tmp_path: Path) -> None:
        for name, text, line in (
            ("t.nt", "<a:a> <a:r> <a:b> .\r# x\r\n<a:a> <a:r .\n", 3),
            ("t.csv", "a,r,b\ra,r,c\r\na,r\n", 3),
            ("t.csv", '"a",r,b\ra,r,c\r\n"a\rb",r,c\na,r\n', 5),
            ("t.csv", '"a",r,b\r"b\rc",r,c\r\n"",r,c\n', 4),
            ("t.tsv", "a\tr\tb\r\ra\tr\r", 3),
        ):
            path = write(tmp_path / name, text)
            with pytest.raises(InputError) as error:
                read(path)
            assert error.value.where == f"{path}, line {line}"


class TestBlankNodes:
    LABELS = ("abcdef0123456789abcd", "deadbeef" * 4, "0" * 31 + "a", "abc", "0123456789abcdef01234567")

    @pytest.mark.parametrize("name", ["t.nt", "t.nq", "t.ttl"])
    def test_labels_stay_what_they_are(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        monkeypatch.setattr(lines_module, "_BLOCK", 64)
        text = "".join(
            f"_:{label} <a:r> <a:b> .\n_:{label} <a:s> _:{label} . # comment\n<a:\\u0061> <a:t> _:{label} .\n"
            for label in self.LABELS
        )
        names = {f"_:{label}" for label in self.LABELS}
        triples, _ = read(write(tmp_path / name, text))
        assert {head for head, relation, _ in triples if relation == "a:r"} == names
        assert {tail for _, relation, tail in triples if relation == "a:t"} == names
        assert [head for head, relation, tail in triples if relation == "a:s" and head != tail] == []

    def test_nameless_nodes_are_told_from_labels_that_look_alike(self, tmp_path: Path) -> None:
        text = "".join(f"_:{label} <a:r> [ <a:s> <a:b> ] .\n" for label in self.LABELS)
        triples, _ = read(write(tmp_path / "t.ttl", text))
        assert [row[0] for row in triples if row[1] == "a:r"] == sorted(f"_:{label}" for label in self.LABELS)
        assert {row[0] for row in triples if row[1] == "a:s"} == {f"_:[{number}]" for number in range(1, 6)}


class TestStatementsEndOnTheirLine:
    @pytest.mark.parametrize(
        "text",
        [
            '<a:a> <a:r> "x .\n<a:b> <a:r> <a:c> .\ny" .\n',
            "<a:a> <a:r> <a:b\n<a:b> <a:r> <a:c> .\n> .\n",
            '<a:a> <a:r> "x\ny" .\n',
        ],
    )
    def test_what_is_not_closed_takes_nothing_in(self, tmp_path: Path, text: str) -> None:
        path = write(tmp_path / "t.nt", text)
        with pytest.raises(InputError, match="not valid N-Triples") as error:
            read(path)
        assert error.value.where == f"{path}, line 1"

    def test_odd_white_space_is_no_blank_line(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="not valid N-Triples"):
            read(write(tmp_path / "t.nt", "<a:a> <a:r> <a:b> .\n\u00a0\n"))


class TestWhatIsLeftOut:
    def test_is_counted(self, tmp_path: Path) -> None:
        text = '\ufeff# c\n\n<a:a> <a:r> <a:b> <a:g> .\n \t\n<a:a> <a:n> "x" _:g .\n'
        text += "<a:a> <a:r> <<( <a:a> <a:r> <a:b> )>> .\n"
        triples, counts = read(write(tmp_path / "t.nq", text))
        assert triples == [("a:a", "a:r", "a:b")]
        assert counts == ReadCounts(1, blank_lines=2, comment_lines=1, graph_names=2, triple_terms=1)
        _, counts = read(write(tmp_path / "t.tsv", "\ufeff\n\nhead\trelation\ttail\na\tr\tb\n\n"))
        assert counts == ReadCounts(1, blank_lines=3, header_rows=1)
        _, counts = read(write(tmp_path / "t.csv", '\ufeff\n"head",relation,tail\r\na,r,b\r\r\n'))
        assert counts == ReadCounts(1, blank_lines=2, header_rows=1)
        _, counts = read(write(tmp_path / "t.ttl", "\ufeff<a:a> <a:r> <a:b> , <<( <a:a> <a:r> <a:b> )>> ."))
        assert counts == ReadCounts(1, triple_terms=1)
        same_as = "<http://www.w3.org/2002/07/owl#sameAs>"
        path = write(tmp_path / "l.nt", f'<a:a> {same_as} <a:A> .\n<a:a> <a:r> <a:b> .\n<a:a> {same_as} "x" .\n')
        assert read_links(path).counts == ReadCounts(other_statements=2)

    @pytest.mark.parametrize("suffix", ["tsv", "csv"])
    def test_second_byte_order_mark_is_no_name(self, tmp_path: Path, suffix: str) -> None:
        text = "\ufeff\ufeffhead\trelation\ttail\na\tr\tb\n"
        triples, counts = read(write(tmp_path / f"t.{suffix}", text.replace("\t", "," if suffix == "csv" else "\t")))
        assert triples == [("a", "r", "b")]
        assert counts == ReadCounts(2, header_rows=1)

    def test_mark_at_the_beginning_of_a_block_belongs_to_the_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("largegnn.data.lines._BLOCK", 16)
        rows = [(f"\ufeffa{number:02}", "r", "b") for number in range(20)]
        path = write(tmp_path / "t.tsv", "x\tr\tb\n" + "".join("\t".join(row) + "\n" for row in rows))
        assert read(path)[0] == [("x", "r", "b"), *rows]


class TestMagic:
    @pytest.mark.parametrize("name", ["BZh", "BZh91", "PAR1", "PAR1PAR1"])
    def test_text_is_text(self, tmp_path: Path, name: str) -> None:
        for path in (tmp_path / "rel_triples_1", tmp_path / "t.tsv"):
            assert read(write(path, f"{name}\tr\tb\nb\ts\té{name}"))[0] == [(name, "r", "b"), ("b", "s", f"é{name}")]

    def test_parquet_is_parquet_whatever_it_is_called(self, tmp_path: Path) -> None:
        for name in ("t.tsv", "t"):
            pl.DataFrame(TRIPLES, schema=["head", "relation", "tail"], orient="row").write_parquet(tmp_path / name)
            assert read(tmp_path / name)[0] == TRIPLES


def test_messages_cut_names(tmp_path: Path) -> None:
    long = "x" * 60_000
    for name, text in (
        ("t.tsv", f"a\tr\tb\n{long}\n"),
        ("t.csv", f'a,r,"b"\n{long}\n'),
        ("t.ttl", f"{long}:a <a:r> <a:b> ."),
    ):
        with pytest.raises(InputError) as error:
            read(write(tmp_path / name, text))
        assert len(str(error.value)) < 1_000
    pl.DataFrame({f"{number}{long}": [1] for number in range(20)}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="columns needed") as error:
        read(tmp_path / "t.parquet")
    assert len(str(error.value)) < 3_000


names = st.text(st.characters(codec="utf-8", exclude_characters="\0\t\r\n<>\"'"), min_size=1, max_size=8).filter(
    lambda name: not name.isspace()
)
rows = st.lists(st.tuples(names, names, names), min_size=1, max_size=8)


def as_csv(table: Iterable[Iterable[str]]) -> str:
    return "".join(",".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\n" for row in table)


@given(rows=rows, order=st.permutations(range(3)), end=st.sampled_from(["\n", "\r\n", "\r"]), block=st.integers(1, 80))
def test_any_order_any_line_end_any_block(
    tmp_path_factory: pytest.TempPathFactory, rows: Triples, order: list[int], end: str, block: int
) -> None:
    folder = tmp_path_factory.mktemp("orders")
    table = [[row[index] for index in order] for row in [("head", "relation", "tail"), *rows]]
    expected = [row for row in rows if row != ("head", "relation", "tail")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "_BLOCK", block)
        path = write(folder / "t.tsv", "".join("\t".join(row) + end for row in table))
        assert read(path)[0] == sorted(expected)
        path = write(folder / "t.csv", as_csv(table).replace("\n", end))
        assert read(path)[0] == sorted(expected)


@given(rows=rows, block=st.integers(1, 200), data=st.data())
def test_n_triples_with_comments_anywhere(
    tmp_path_factory: pytest.TempPathFactory, rows: Triples, block: int, data: st.DataObject
) -> None:
    terms = [tuple("a:" + re.sub(r"[^A-Za-z0-9]", "_", name) for name in row) for row in rows]
    ends = st.sampled_from(["\n", "\r", "\r\n", " # <a:x> .\n", "#\r", "\n\n# x\r", "\r\r\n"])
    text = "".join(f"<{head}> <{relation}> <{tail}> ." + data.draw(ends) for head, relation, tail in terms)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "_BLOCK", block)
        assert read(write(tmp_path_factory.mktemp("comments") / "t.nt", text))[0] == sorted(terms)


def test_logging_is_quiet_about_plain_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    read(write(tmp_path / "t.tsv", "a\tr\tb\n"))
    assert not caplog.records
