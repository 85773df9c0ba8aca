"""Test that messages about input name the likely cause in few words, and that left-out items are summed up."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from largegnn.data.batch import ReadCounts
from largegnn.data.enlarge import Additions, enlarge_task
from largegnn.data.inputs import DataInput
from largegnn.data.load import load_pair
from largegnn.data.readers import read_triples
from largegnn.errors import InputError
from largegnn.settings import DataSettings

NONE_HELD_OUT = DataSettings(valid_share=0.0)


def pair(folder: Path, source: str, target: str, seeds: str, names: tuple[str, str, str] | None = None) -> DataInput:
    """Write three files, and return the input that names them."""
    paths = [folder / name for name in names or ("source.tsv", "target.tsv", "seeds.tsv")]
    for path, text in zip(paths, (source, target, seeds), strict=True):
        path.write_text(text, encoding="utf-8")
    return DataInput(source=paths[0], target=paths[1], seeds=paths[2])


def iris(side: str) -> str:
    names = ["Paris", "Berlin", "Rome", "Madrid"]
    space = f"http://{side}.org/resource/"
    return "".join(f"{space}{one}\t{space}near\t{space}{other}\n" for one in names for other in names if one != other)


def refused(given: DataInput, settings: DataSettings = NONE_HELD_OUT) -> InputError:
    with pytest.raises(InputError) as error:
        load_pair(given, settings, keep_literals=False)
    assert len(str(error.value)) < 2_000
    return error.value


class TestSeeds:
    def test_prefixes_in_the_seeds(self, tmp_path: Path) -> None:
        error = refused(pair(tmp_path, iris("one"), iris("two"), "dbr:Paris\thttp://two.org/resource/Paris\n"))
        assert "1 of 1 links name entities that are not in the graphs" in error.problem
        assert "write the names in full: the links have the prefix dbr:" in str(error.fix)
        assert "dbr:Paris may be http://one.org/resource/Paris" in str(error.fix)

    def test_near_names(self, tmp_path: Path) -> None:
        seeds = "http://one.org/resource/Parris\thttp://two.org/resource/Paris\n"
        error = refused(pair(tmp_path, iris("one"), iris("two"), seeds))
        assert error.fix == (
            "fix the names; similar names are http://one.org/resource/Paris for http://one.org/resource/Parris"
        )

    def test_a_header_in_words_of_its_own(self, tmp_path: Path) -> None:
        seeds = "DBpedia\tWikidata\nhttp://one.org/resource/Paris\thttp://two.org/resource/Paris\n"
        error = refused(pair(tmp_path, iris("one"), iris("two"), seeds))
        assert "the first line, which looks like a header (DBpedia, Wikidata)" in str(error.fix)

    def test_names_of_any_length(self, tmp_path: Path) -> None:
        error = refused(pair(tmp_path, iris("one"), iris("two"), f"{'x' * 60_000}\ty\n"))
        assert "... (60,000 characters)" in str(error.found)
        long = "x" * 60_000
        links = f"{long}\tA\n"
        given = pair(tmp_path, f"{long}\tr\tb\n", "A\tr\tB\n", links)
        (tmp_path / "test.tsv").write_text(links)
        with pytest.raises(InputError, match="train links are test links too") as found:
            load_pair(
                DataInput(None, given.source, given.target, given.seeds, None, tmp_path / "test.tsv"), NONE_HELD_OUT
            )
        assert len(str(found.value)) < 1_000

    def test_statements_that_are_no_links(self, tmp_path: Path) -> None:
        given = pair(tmp_path, iris("one"), iris("two"), "<a:a> <a:r> <a:b> .\n", ("s.tsv", "t.tsv", "seeds.nt"))
        error = refused(given)
        assert (error.problem, error.found) == ("the file holds no links", "1 statements of other kinds")


class TestGraphs:
    def test_literals_only(self, tmp_path: Path) -> None:
        error = refused(pair(tmp_path, 'a\tname\t"A"\nb\tname\t"B"\n', iris("two"), "a\tb\n"))
        assert error.problem == "the source graph has no triples between entities"
        assert error.found == "2 triples, all with literals (tails in quotes)"
        assert "give the file of the relations" in str(error.fix)

    def test_all_names_in_quotes(self, tmp_path: Path) -> None:
        error = refused(pair(tmp_path, '"a"\t"r"\t"b"\n', iris("two"), "a\tb\n"))
        assert "take the quotes away" in str(error.fix)

    def test_a_forgotten_target(self, tmp_path: Path) -> None:
        given = pair(tmp_path, iris("one"), iris("two"), "a\tb\n")
        error = refused(DataInput(folder=given.source))
        assert "the target graph and the seeds are missing" in error.problem
        assert error.fix == "give the other files too: source.tsv TARGET --seeds FILE"

    @pytest.mark.parametrize("role", ["folder", "source", "seeds"])
    def test_paths_too_long_for_the_system(self, tmp_path: Path, role: str) -> None:
        given = pair(tmp_path, iris("one"), iris("two"), "a\tb\n")
        path = tmp_path / ("x" * 300)
        paths = {"source": given.source, "target": given.target, "seeds": given.seeds, role: path}
        assert "too long" in str(refused(DataInput(folder=path) if role == "folder" else DataInput(**paths)).found)


class TestCounts:
    def test_what_was_left_out_is_in_the_summary_and_the_log(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        source = "\ufeffrelation\thead\ttail\nr\ta\tb\n\nr\ta\tb\n"
        target = "# one\n<a:A> <a:r> <a:B> <a:g> .\n<a:A> <a:r> <<( <a:A> <a:r> <a:B> )>> .\n"
        seeds = "<a> <http://www.w3.org/2002/07/owl#sameAs> <a:A> .\n<a:A> <a:r> <a:B> .\n"
        summary = load_pair(pair(tmp_path, source, target, seeds, ("s.tsv", "t.nq", "l.nt")), NONE_HELD_OUT).summary
        source_counts = ReadCounts(header_rows=1, blank_lines=1, byte_order_marks=1)
        assert summary.read == (source_counts, ReadCounts(comment_lines=1, graph_names=1, triple_terms=1))
        assert summary.num_duplicate_triples == (1, 0)
        assert summary.num_other_link_statements == 1
        for words in ("header rows", "blank lines", "byte-order marks", "duplicate triples", "comment lines"):
            assert f"{words} " in caplog.text
        for words in ("graph names of quads dropped", "statements about triples", "that are not links, dropped: 1"):
            assert words in caplog.text


def test_nameless_nodes_of_added_files_are_new(tmp_path: Path) -> None:
    turtle = "<a:{0}> <a:r> [ <a:s> <a:x> ] .\n"
    names = ("source.ttl", "target.ttl", "seeds.tsv")
    given = pair(tmp_path, turtle.format("a"), turtle.format("A"), "a:a\ta:A\n", names)
    loaded = load_pair(given, NONE_HELD_OUT)
    added = tuple(tmp_path / name for name in ("more.ttl", "even_more.ttl"))
    for path in added:
        path.write_text(turtle.format("a"))
    enlarged = enlarge_task(loaded.task, loaded.names, Additions(source_triples=added))
    assert enlarged.num_added_entities == (2, 0)
    assert {name for name in enlarged.names.entities if "[" in name} == {"_:[1]", "_:[2]", "_:[3]"}


def test_turtle_that_begins_like_n_triples_names_the_flag(tmp_path: Path) -> None:
    file = tmp_path / "a.ttl"
    lines = [f"<x:a{number}> <x:r> <x:b> .\n" for number in range(60)]
    file.write_text("".join(lines) + "<x:a> <x:r> <x:b> , <x:c> .\n")
    with pytest.raises(InputError, match="--format ttl"):
        list(read_triples(file))
    assert sum(len(batch.heads) for batch in read_triples(file, "ttl")) == 62
