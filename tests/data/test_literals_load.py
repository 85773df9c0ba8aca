"""Test loading with and without literals: which entities and literals are kept, their order, and the memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import AlignmentTask, StringTable, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.data.batch import LiteralBatch
from largegnn.data.coding import CodedLiterals, join_literals
from largegnn.data.enlarge import Additions, enlarge_task
from largegnn.data.inputs import DataInput
from largegnn.data.load import LoadedPair, load_pair
from largegnn.data.write import WRITERS, write_pair
from largegnn.errors import ArtifactError, InputError
from largegnn.runfolder.artifact_files import load_artifact, pack, save_arrays
from tests.conftest import tabbed
from tests.data.literal_sets import literals_of_pair


@pytest.fixture
def toy_with_literals(toy_folder: Path) -> Path:
    """Write the toy pair with literals: a and b are in triples, lonely only in a link, ghost only in literals."""
    with (toy_folder / "rel_triples_1").open("a") as file:
        file.write('a\tname\t"A"@en\na\tname\t"A"@en\nb\tage\t"3"^^<int>\nlonely\tname\t"L"\n')
    (toy_folder / "attr_triples_1").write_text('b\tlabel\tsome\tthing\nghost\tlabel\t"G"@de\nbroken\n\tlabel\tx\n')
    (toy_folder / "attr_triples_2").write_text('<A>\t<name>\t"a"\n')
    with (toy_folder / "test_links").open("a") as file:
        file.write("lonely\tF\n")
    return toy_folder


def same_structure(one: LoadedPair, other: LoadedPair) -> bool:
    arrays = ("triples", "train_links", "valid_links", "test_links")
    return list(one.names.entities) == list(other.names.entities) and all(
        np.array_equal(getattr(one.task, name), getattr(other.task, name)) for name in arrays
    )


class TestLoading:
    def test_by_hand(self, toy_with_literals: Path) -> None:
        pair = load_pair(DataInput(folder=toy_with_literals))
        assert sorted(literals_of_pair(pair)) == [
            ("A", "name", "a", "", ""),
            ("a", "name", "A", "", "en"),
            ("b", "age", "3", "int", ""),
            ("b", "label", "some\tthing", "", ""),
            ("ghost", "label", "G", "", "de"),
            ("lonely", "name", "L", "", ""),
        ]
        task, summary = pair.task, pair.summary
        assert (task.num_source_entities, task.num_target_entities) == (7, 6), "ghost is an entity, broken is none"
        assert (summary.num_literals, summary.num_predicates) == ((5, 1), (3, 1))
        assert (summary.num_attribute_triples, summary.num_attribute_only_entities) == ((6, 1), (1, 0))
        assert summary.num_isolated_entities == (2, 0)
        assert [side.dropped_literals for side in summary.read] == [2, 0]
        assert np.all(np.diff(pair.literals.entities) >= 0)
        assert list(pair.literals.predicate_names) == ["age", "label", "name"]
        ptr = pair.literals.entity_ptr(task.num_entities)
        b = list(pair.names.entities).index("b")
        assert pair.literals.values.take(range(ptr[b], ptr[b + 1])) == ["3", "some\tthing"]

    def test_without_literals_all_is_as_it_was(self, toy_with_literals: Path) -> None:
        pair = load_pair(DataInput(folder=toy_with_literals), keep_literals=False)
        assert len(pair.literals) == 0
        assert pair.summary.num_literals == (0, 0)
        assert pair.summary.num_attribute_only_entities == (1, 0)
        assert "ghost" not in pair.names.entities
        for side in (1, 2):
            (toy_with_literals / f"attr_triples_{side}").unlink()
        path = toy_with_literals / "rel_triples_1"
        path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if '"' not in line))
        assert same_structure(pair, load_pair(DataInput(folder=toy_with_literals), keep_literals=False))
        assert same_structure(pair, load_pair(DataInput(folder=toy_with_literals)))

    def test_ids_are_the_same_where_every_entity_is_in_a_triple(self, toy_folder: Path) -> None:
        (toy_folder / "attr_triples_1").write_text("b\tlabel\tx\n")
        one, other = (load_pair(DataInput(folder=toy_folder), keep_literals=keep) for keep in (True, False))
        assert same_structure(one, other)
        assert (len(one.literals), len(other.literals)) == (1, 0)

    def test_the_order_of_lines_does_not_matter(self, toy_with_literals: Path) -> None:
        before = load_pair(DataInput(folder=toy_with_literals))
        for path in toy_with_literals.iterdir():
            path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
        assert literals_of_pair(before) == literals_of_pair(load_pair(DataInput(folder=toy_with_literals)))

    def test_attribute_files_may_be_n_triples(self, toy_folder: Path) -> None:
        (toy_folder / "attr_triples_1").write_text('<a> <a:p> "x"@en .\n# comment\n<b> <a:p> "y" .\n')
        pair = load_pair(DataInput(folder=toy_folder))
        assert sorted(literals_of_pair(pair)) == [("a", "a:p", "x", "", "en"), ("b", "a:p", "y", "", "")]
        assert [side.comment_lines for side in pair.summary.read] == [0, 0], "the lines of the graph alone are counted"

    def test_graphs_of_literals_alone_and_no_seeds(self, tmp_path: Path) -> None:
        for side in ("source", "target"):
            (tmp_path / f"{side}.nt").write_text(f'<a:{side}> <a:p> "x" .\n')
        (tmp_path / "links.tsv").write_text("a:source\ta:target\n")
        pair = load_pair(DataInput(folder=tmp_path))
        assert (pair.task.num_entities, len(pair.task.triples), pair.task.num_relations) == (2, 0, 0)
        assert (len(pair.task.train_links), len(pair.task.test_links)) == (0, 1), "links that are not split only judge"
        given = DataInput(source=tmp_path / "source.nt", target=tmp_path / "target.nt")
        assert len(load_pair(given).literals) == 2
        with pytest.raises(InputError, match="no seeds were given"):
            load_pair(given, keep_literals=False)

    def test_id_folders(self, tmp_path: Path) -> None:
        files = {
            "ent_ids_1": "0 a\n1 b\n2 c\n",
            "ent_ids_2": "3 A\n4 B\n5 C\n",
            "triples_1": "0 0 1\n1 1 2\n",
            "triples_2": "3 0 4\n4 0 5\n",
            "sup_ent_ids": "0 3\n",
            "ref_ent_ids": "1 4\n",
            "ent_names_1": "0 Anna\nb Berta\n",
            "ent_names_2": "A anna\nB berta\nC c\n",
        }
        for name, text in files.items():
            (tmp_path / name).write_text(tabbed(text))
        pair = load_pair(DataInput(folder=tmp_path))
        assert sorted(row[::2] for row in literals_of_pair(pair)) == [
            ("A", "anna", ""),
            ("B", "berta", ""),
            ("C", "c", ""),
            ("a", "Anna", ""),
            ("b", "Berta", ""),
        ]

    @pytest.mark.parametrize(
        ("name", "literals", "entities"),
        [
            ("OAEI_anatomy", (3_108, 9_406), (2_760, 3_318)),
            ("ER_imdb-tmdb", (23_908, 24_346), (5_119, 6_057)),
            ("DBP15K_FR_EN_names", (19_660, 19_993), (19_661, 19_993)),
        ],
    )
    def test_real_data_sets_have_their_published_counts(
        self,
        real_data: Callable[[str], Path],
        name: str,
        literals: tuple[int, int],
        entities: tuple[int, int],
    ) -> None:
        pair = load_pair(DataInput(folder=real_data(name)))
        assert pair.summary.num_literals == literals
        assert (pair.task.num_source_entities, pair.task.num_target_entities) == entities


class TestWriting:
    VALUES = ("two\nlines\r\t\\n \\", 'say "hi"', "", " ", "\0\x01\x7f\u2028", "é漢😀", "@en", '"x"@en', "'", "# no .")

    @pytest.mark.parametrize("form", [form for form in WRITERS if form != "dbp15k"])
    def test_what_is_written_is_read_back(
        self, toy_task: AlignmentTask, toy_names: TaskNames, tmp_path: Path, form: str
    ) -> None:
        number = len(self.VALUES)
        literals = Literals(
            np.sort(np.arange(number) % 11),
            np.arange(number) % 2,
            StringTable.from_strings(self.VALUES),
            np.arange(number) % 3,
            np.where(np.arange(number) % 3, 0, np.arange(number) % 2),
            StringTable.from_strings(["a predicate", "urn:largegnn:name"]),
            StringTable.from_strings(["", "a type", "http://www.w3.org/2001/XMLSchema#date"]),
            StringTable.from_strings(["", "en-gb"]),
        )
        write_pair(toy_task, toy_names, tmp_path / "out", form, "gzip", literals)
        first = load_pair(DataInput(folder=tmp_path / "out"))
        assert sorted(literals_of_pair(first)) == sorted(
            literals_of_pair(LoadedPair(toy_task, toy_names, literals, first.summary))
        )
        write_pair(first.task, first.names, tmp_path / "again", form, None, first.literals)
        assert literals_of_pair(load_pair(DataInput(folder=tmp_path / "again"))) == literals_of_pair(first)

    def test_id_folders_have_no_place_for_them(
        self, toy_task: AlignmentTask, toy_names: TaskNames, tmp_path: Path
    ) -> None:
        one, table = np.zeros(1), StringTable.from_strings([""])
        literals = Literals(one, one, table, one, one, table, table, table)
        with pytest.raises(InputError, match="cannot hold literals"):
            write_pair(toy_task, toy_names, tmp_path / "out", "dbp15k", None, literals)


class TestEnlarging:
    def test_literals_come_too(self, toy_with_literals: Path, tmp_path: Path) -> None:
        pair = load_pair(DataInput(folder=toy_with_literals))
        (tmp_path / "source.tsv").write_text('e\tr\tf\nf\tname\t"F"\na\tname\t"A"@en\nalone\tname\t"N"\n')
        (tmp_path / "target.tsv").write_text('B\tname\t"b"\n')
        added = Additions((tmp_path / "source.tsv",), (tmp_path / "target.tsv",))
        grown = enlarge_task(pair.task, pair.names, added, literals=pair.literals)
        now = LoadedPair(grown.task, grown.names, grown.literals, pair.summary)
        expected = {("f", "name", "F", "", ""), ("alone", "name", "N", "", ""), ("B", "name", "b", "", "")}
        assert set(literals_of_pair(now)) == set(literals_of_pair(pair)) | expected
        assert len(now.literals) == len(pair.literals) + 3
        assert grown.num_added_entities == (2, 0)

    def test_without_literals_they_are_left_out(
        self, toy_task: AlignmentTask, toy_names: TaskNames, tmp_path: Path
    ) -> None:
        (tmp_path / "source.tsv").write_text('e\tr\tf\nf\tname\t"F"\nalone\tname\t"N"\n')
        grown = enlarge_task(toy_task, toy_names, Additions((tmp_path / "source.tsv",)))
        assert (len(grown.literals), grown.num_added_entities) == (0, (1, 0))
        (tmp_path / "source.tsv").write_text('e\tname\t"E"\n')
        with pytest.raises(InputError, match="no triples between entities to add"):
            enlarge_task(toy_task, toy_names, Additions((tmp_path / "source.tsv",)))


class TestRows:
    @given(
        st.lists(
            st.tuples(
                st.integers(-1, 4),
                st.sampled_from("pq"),
                st.sampled_from(["", "t"]),
                st.sampled_from(["", "en"]),
                st.text(max_size=3),
            ),
            max_size=30,
        ),
        st.integers(0, 30),
    )
    def test_parts_are_joined_in_order_and_once(self, rows: list[tuple[int, str, str, str, str]], split: int) -> None:
        joined = join_literals([_part(rows[:split]), _part(rows[split:])])
        expected = sorted({row for row in rows if row[0] >= 0}, key=lambda row: (*row[:4], row[4].encode("utf-8")))
        columns = (
            joined.entities.tolist(),
            joined.predicate_names.take(joined.predicates),
            joined.datatype_names.take(joined.datatypes),
            joined.language_names.take(joined.languages),
            joined.values,
        )
        assert list(zip(*columns, strict=True)) == expected

    def test_the_artifact_refuses_a_wrong_state(self) -> None:
        nothing, one, two = (StringTable.from_strings(texts) for texts in ([""], ["x"], "ab"))
        zero, zeros = np.zeros(1), np.zeros(2)
        with pytest.raises(ArtifactError, match="ascending"):
            Literals(np.array([1, 0]), zeros, two, zeros, zeros, one, nothing, nothing)
        with pytest.raises(ArtifactError, match="2 values for 1"):
            Literals(zero, zero, two, zero, zero, one, nothing, nothing)
        with pytest.raises(ArtifactError, match="predicates"):
            Literals(zero, np.ones(1), one, zero, zero, one, nothing, nothing)


def _part(rows: list[tuple[int, str, str, str, str]]) -> pl.DataFrame:
    columns = [pl.Series([str(row[index]) for row in rows], dtype=pl.String) for index in range(5)]
    entities, predicates, datatypes, languages, values = columns
    coded = CodedLiterals.joined([CodedLiterals.of(LiteralBatch(entities, predicates, values, datatypes, languages))])
    return coded.with_ids(coded.head_names.cast(pl.Int32).to_numpy())


MEMORY = """
import json, resource, sys
from pathlib import Path
from largegnn.data import lines
from largegnn.data.inputs import DataInput
lines._BLOCK = 1 << 20  # so that small files have as many blocks as large files
from largegnn.data.load import load_pair
source, target = map(Path, sys.argv[1:])
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
pair = load_pair(DataInput(source=source, target=target))
print(json.dumps([len(pair.literals), len(pair.literals.values.data), before, peak()]))
"""


def test_memory_of_many_literals(tmp_path: Path) -> None:
    """Ten million literals fit into 4 GB, extrapolated from the memory of 200,000 more literals."""
    found = []
    for number in (100_000, 300_000):
        for side in ("source", "target"):
            with (tmp_path / f"{side}.nt").open("w", encoding="utf-8") as file:
                file.writelines(
                    f"<http://example.org/{side}/entity/{row // 5}> <http://example.org/predicate/{row % 5}> "
                    f'"the value of row {row} with \\"some\\" more words in it"@en .\n'
                    for row in range(number // 2)
                )
        command = [sys.executable, "-c", MEMORY, str(tmp_path / "source.nt"), str(tmp_path / "target.nt")]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
        found.append(json.loads(done.stdout))
    (few, _, _, small), (many, size, _, large) = found
    assert (few, many) == (100_000, 300_000)
    assert size > 40 * many
    assert small + (large - small) / (many - few) * 10_000_000 < 4_000


def test_a_run_folder_keeps_them(toy_with_literals: Path, tmp_path: Path) -> None:
    literals = load_pair(DataInput(folder=toy_with_literals)).literals
    for number, artifact in enumerate((literals, Literals.empty())):
        folder = tmp_path / str(number)
        folder.mkdir()
        arrays, scalars = pack(artifact)
        files = [folder / name for name in save_arrays(arrays, folder)]
        again = load_artifact(Literals, files, scalars)
        assert list(again.values) == list(artifact.values)
        assert np.array_equal(again.entities, artifact.entities)
        assert list(again.predicate_names) == list(artifact.predicate_names)
