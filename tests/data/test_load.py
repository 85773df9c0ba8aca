"""Test loading a task from files: both calling forms, every check on seeds, and the counts."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from largegnn.artifacts import AlignmentTask
from largegnn.data.inputs import DataInput
from largegnn.data.load import LoadedPair, load_pair
from largegnn.errors import InputError
from largegnn.settings import DataSettings
from tests.conftest import tabbed


def named_links(pair: LoadedPair, split: str) -> set[tuple[str, str]]:
    return {(pair.names.entities[s], pair.names.entities[t]) for s, t in getattr(pair.task, f"{split}_links").tolist()}


def named_triples(pair: LoadedPair) -> set[tuple[str, str, str]]:
    entities, relations = pair.names.entities, pair.names.relations
    return {(entities[h], relations[r], entities[t]) for h, r, t in pair.task.triples.tolist()}


def pair_input(folder: Path, **files: Path) -> DataInput:
    return DataInput(
        source=folder / "rel_triples_1", target=folder / "rel_triples_2", seeds=folder / "train_links", **files
    )


def test_the_toy_by_hand(toy_folder: Path) -> None:
    pair = load_pair(DataInput(folder=toy_folder))
    task = pair.task
    assert (task.num_source_entities, task.num_target_entities) == (5, 6)
    assert (task.num_source_relations, task.num_target_relations) == (2, 2)
    assert set(list(pair.names.entities)[:5]) == set("abcde")
    assert set(list(pair.names.relations)[:2]) == set("rs")
    assert named_links(pair, "train") == {("a", "A"), ("c", "C")}
    assert named_links(pair, "valid") == {("b", "B")}
    assert named_links(pair, "test") == {("d", "D"), ("e", "E")}
    assert ("c", "s", "d") in named_triples(pair)
    assert ("E", "q", "F") in named_triples(pair)
    assert len(named_triples(pair)) == len(task.triples) == 11
    assert task.num_source_triples == 5
    assert task.seeds("train+valid").tolist() == sorted(task.train_links.tolist() + task.valid_links.tolist())


def test_the_order_of_lines_does_not_matter(toy_folder: Path) -> None:
    before = load_pair(DataInput(folder=toy_folder))
    for path in toy_folder.iterdir():
        path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    after = load_pair(DataInput(folder=toy_folder))
    assert list(before.names.entities) == list(after.names.entities)
    for field in ("triples", "train_links", "valid_links", "test_links"):
        assert np.array_equal(getattr(before.task, field), getattr(after.task, field))


def test_both_calling_forms_give_the_same_task(toy_folder: Path) -> None:
    folder = load_pair(DataInput(folder=toy_folder))
    files = load_pair(
        pair_input(toy_folder, valid_links=toy_folder / "valid_links", test_links=toy_folder / "test_links")
    )
    assert list(folder.names.entities) == list(files.names.entities)
    assert np.array_equal(folder.task.triples, files.task.triples)
    assert np.array_equal(folder.task.valid_links, files.task.valid_links)


def test_valid_links_are_held_out_of_the_seeds(toy_folder: Path) -> None:
    every = (toy_folder / "train_links").read_text() + (toy_folder / "valid_links").read_text()
    (toy_folder / "train_links").write_text(every + tabbed("d D\n"))
    held = load_pair(pair_input(toy_folder), DataSettings(valid_share=0.5))
    assert (len(held.task.train_links), len(held.task.valid_links), held.summary.num_held_out_links) == (2, 2, 2)
    assert named_links(held, "train").isdisjoint(named_links(held, "valid"))
    none = load_pair(pair_input(toy_folder), DataSettings(valid_share=0.0))
    assert (len(none.task.train_links), len(none.task.valid_links)) == (4, 0)


def test_unsplit_links_are_split(toy_folder: Path) -> None:
    links = [f"a{number}\tA{number}\n" for number in range(100)]
    (toy_folder / "rel_triples_1").write_text("".join(f"a{n}\tr\ta{n + 1}\n" for n in range(99)))
    (toy_folder / "rel_triples_2").write_text("".join(f"A{n}\tr\tA{n + 1}\n" for n in range(99)))
    for split in ("train", "valid", "test"):
        (toy_folder / f"{split}_links").unlink()
    (toy_folder / "ent_links").write_text("".join(links))
    pair = load_pair(DataInput(folder=toy_folder))
    assert [len(getattr(pair.task, f"{split}_links")) for split in ("train", "valid", "test")] == [20, 10, 70]
    assert len(named_links(pair, "train") | named_links(pair, "valid") | named_links(pair, "test")) == 100


def test_folds_and_packed_files(toy_folder: Path) -> None:
    for fold in ("1", "2"):
        (toy_folder / "721_5fold" / fold).mkdir(parents=True)
        for split in ("train", "valid", "test"):
            shutil.copy(toy_folder / f"{split}_links", toy_folder / "721_5fold" / fold)
    for split in ("train", "valid", "test"):
        (toy_folder / f"{split}_links").unlink()
    (toy_folder / "721_5fold/2/valid_links").write_text(tabbed("d D\n"))
    (toy_folder / "721_5fold/2/test_links").write_text(tabbed("b B\ne E\n"))
    assert named_links(load_pair(DataInput(folder=toy_folder)), "valid") == {("b", "B")}
    assert named_links(load_pair(DataInput(folder=toy_folder), DataSettings(fold=2)), "valid") == {("d", "D")}
    with pytest.raises(InputError, match="no fold 3") as error:
        load_pair(DataInput(folder=toy_folder), DataSettings(fold=3))
    assert error.value.expected == "--fold 1 or 2"


def test_what_is_counted(toy_folder: Path) -> None:
    with (toy_folder / "rel_triples_1").open("a") as file:
        file.write('a\tr\tb\na\tname\t"A"\nlonely\tname\t"L"\n')
    (toy_folder / "attr_triples_1").write_text("b\tlabel\tsome\tthing\nghost\tlabel\tx\n")
    with (toy_folder / "train_links").open("a") as file:
        file.write("a\tA\nlonely\tF\n")
    (toy_folder / "test_links").write_text("d\tD\ne\tG\n")
    summary = load_pair(DataInput(folder=toy_folder), keep_literals=False).summary
    assert summary.num_duplicate_triples == (1, 0)
    assert summary.num_attribute_triples == (4, 0)
    assert summary.num_attribute_only_entities == (1, 0), "ghost has attributes alone; lonely is linked"
    assert summary.num_isolated_entities == (1, 1), "lonely, and G of the test links"
    assert summary.num_repeated_links == 1


def test_id_folders(tmp_path: Path) -> None:
    files = {
        "ent_ids_1": "0 a\n1 b\n2 c\n9 lonely\n",
        "ent_ids_2": "3 A\n4 B\n5 C\n",
        "triples_1": "0 0 1\n1 1 2\n",
        "triples_2": "3 0 4\n4 0 5\n",
        "sup_ent_ids": "0 3\n",
        "ref_ent_ids": "1 4\n2 5\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(tabbed(text))
    pair = load_pair(DataInput(folder=tmp_path), DataSettings(valid_share=0.0))
    assert pair.summary.layout == "dbp15k"
    assert named_triples(pair) == {("a", "0", "b"), ("b", "1", "c"), ("A", "0", "B"), ("B", "0", "C")}
    assert named_links(pair, "test") == {("b", "B"), ("c", "C")}
    assert pair.task.num_source_entities == 4, "an entity the id file lists stays, in triples or not"
    (tmp_path / "rel_ids").write_text(tabbed("0 near\n1 far\n"))
    assert ("b", "far", "c") in named_triples(load_pair(DataInput(folder=tmp_path), DataSettings(valid_share=0.0)))
    (tmp_path / "triples_1").write_text(tabbed("0 0 77\n"))
    with pytest.raises(InputError, match="1 ids have no name") as error:
        load_pair(DataInput(folder=tmp_path))
    assert error.value.found == "77"
    (tmp_path / "ent_ids_1").write_text(tabbed("0 a\n0 b\n"))
    with pytest.raises(InputError, match="duplicate id in the id file"):
        load_pair(DataInput(folder=tmp_path))


class TestSeeds:
    def test_unknown_entities_are_counted_and_shown(self, toy_folder: Path) -> None:
        with (toy_folder / "train_links").open("a") as file:
            file.writelines(f"unknown{number}\tB\n" for number in range(7))
        with pytest.raises(InputError, match="7 of 9 links name entities") as error:
            load_pair(pair_input(toy_folder))
        assert "unknown0, unknown1, unknown2, unknown3, unknown4" in str(error.value.found)
        assert "unknown5" not in str(error.value.found)
        assert "--skip-unknown" in str(error.value.fix)
        pair = load_pair(pair_input(toy_folder), DataSettings(skip_unknown=True, valid_share=0.0))
        assert named_links(pair, "train") == {("a", "A"), ("c", "C")}
        assert pair.summary.num_skipped_links == 7

    def test_unknown_test_links_stay_as_misses(self, toy_folder: Path) -> None:
        (toy_folder / "test_links").write_text(tabbed("d D\nunknown E\n"))
        given = pair_input(toy_folder, test_links=toy_folder / "test_links")
        with pytest.raises(InputError, match="1 of 2 links"):
            load_pair(given)
        pair = load_pair(given, DataSettings(skip_unknown=True, valid_share=0.0))
        assert named_links(pair, "test") == {("d", "D"), ("unknown", "E")}
        assert pair.summary.num_isolated_entities == (1, 0)

    def test_swapped_columns_are_recognised(self, toy_folder: Path) -> None:
        (toy_folder / "train_links").write_text(tabbed("A a\nC c\n"))
        with pytest.raises(InputError, match="columns of the links are swapped"):
            load_pair(DataInput(folder=toy_folder))
        with pytest.raises(InputError, match="columns of the links are swapped"):
            load_pair(pair_input(toy_folder), DataSettings(skip_unknown=True))

    def test_nothing_known_at_all(self, toy_folder: Path) -> None:
        (toy_folder / "train_links").write_text(tabbed("x y\n"))
        with pytest.raises(InputError, match="1 of 1 links") as error:
            load_pair(pair_input(toy_folder), DataSettings(skip_unknown=True))
        assert "--skip-unknown" not in str(error.value.fix)

    def test_seeds_that_are_not_one_to_one_are_said(self, toy_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        (toy_folder / "train_links").write_text(tabbed("a A\na B\nc C\n"))
        (toy_folder / "valid_links").write_text(tabbed("d D\n"))
        (toy_folder / "test_links").write_text(tabbed("e E\n"))
        assert load_pair(DataInput(folder=toy_folder)).summary.num_many_to_one_links == 2
        assert "not one-to-one" in caplog.text

    @pytest.mark.parametrize(("one", "other"), [("train", "test"), ("valid", "test"), ("train", "valid")])
    def test_links_in_two_splits_are_refused(self, toy_folder: Path, one: str, other: str) -> None:
        with (toy_folder / f"{other}_links").open("a") as file:
            file.write((toy_folder / f"{one}_links").read_text())
        with pytest.raises(InputError, match=f"{one} links are {other} links too") as error:
            load_pair(DataInput(folder=toy_folder))
        assert " = " in str(error.value.found)

    def test_no_seeds(self, toy_folder: Path) -> None:
        (toy_folder / "train_links").write_text("")
        with pytest.raises(InputError, match="file is empty"):
            load_pair(DataInput(folder=toy_folder))
        with pytest.raises(InputError, match="no seeds were given"):
            load_pair(
                DataInput(source=toy_folder / "rel_triples_1", target=toy_folder / "rel_triples_2"), keep_literals=False
            )

    def test_all_seeds_held_out(self, toy_folder: Path) -> None:
        (toy_folder / "train_links").write_text(tabbed("a A\n"))
        with pytest.raises(InputError, match="no seeds were given"):
            load_pair(pair_input(toy_folder), DataSettings(valid_share=0.9))


class TestFiles:
    def test_the_same_file_twice(self, toy_folder: Path) -> None:
        one = toy_folder / "rel_triples_1"
        with pytest.raises(InputError, match="same file was given as source and as target"):
            load_pair(DataInput(source=one, target=one, seeds=toy_folder / "train_links"))
        link = toy_folder / "another_name"
        link.symlink_to(toy_folder / "train_links")
        with pytest.raises(InputError, match="same file was given as seeds and as test links"):
            load_pair(pair_input(toy_folder, test_links=link))

    def test_folders_that_are_none(self, toy_folder: Path, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no such folder"):
            load_pair(DataInput(folder=tmp_path / "nowhere"))
        with pytest.raises(InputError, match="this is a file"):
            load_pair(DataInput(folder=toy_folder / "train_links"))
        (tmp_path / "empty").mkdir()
        with pytest.raises(InputError, match="not a data set in a known layout") as error:
            load_pair(DataInput(folder=tmp_path / "empty"))
        assert error.value.found == "an empty folder"
        (toy_folder / "rel_triples_2").unlink()
        with pytest.raises(InputError, match="has no file rel_triples_2"):
            load_pair(DataInput(folder=toy_folder))

    def test_forms_are_not_mixed(self, toy_folder: Path) -> None:
        with pytest.raises(InputError, match="--seeds needs two triple files"):
            load_pair(DataInput(folder=toy_folder, seeds=toy_folder / "train_links"))
        with pytest.raises(InputError, match="two triple files or one data set folder"):
            load_pair(DataInput(source=toy_folder / "rel_triples_1"))

    def test_a_file_without_structure(self, toy_folder: Path) -> None:
        (toy_folder / "rel_triples_2").write_text('A\tname\t"x"\n')
        with pytest.raises(InputError, match="target graph has no triples between entities"):
            load_pair(DataInput(folder=toy_folder), keep_literals=False)

    def test_two_candidates_for_one_role(self, toy_folder: Path, tmp_path: Path) -> None:
        folder = tmp_path / "pair"
        folder.mkdir()
        shutil.copy(toy_folder / "rel_triples_1", folder / "source.tsv")
        shutil.copy(toy_folder / "rel_triples_1", folder / "source.csv")
        shutil.copy(toy_folder / "rel_triples_2", folder / "target.tsv")
        with pytest.raises(InputError, match="several files called source"):
            load_pair(DataInput(folder=folder))
        (folder / "source.csv").unlink()
        with pytest.raises(InputError, match=r"no train_links\.\* or seeds\.\*"):
            load_pair(DataInput(folder=folder), keep_literals=False)
        shutil.copy(toy_folder / "train_links", folder / "seeds.tsv")
        assert load_pair(DataInput(folder=folder)).summary.layout == "pair"

    def test_format_can_be_named(self, toy_folder: Path) -> None:
        for side in (1, 2):
            path = toy_folder / f"rel_triples_{side}"
            path.write_text(path.read_text().replace("\t", ","))
        assert len(load_pair(pair_input(toy_folder), DataSettings(format="csv")).task.triples) == 11
        with pytest.raises(InputError, match="wrong number of columns"):
            load_pair(pair_input(toy_folder), DataSettings(format="tsv"))


@pytest.mark.parametrize(
    ("name", "entities", "relations", "triples", "links"),
    [
        ("EN_FR_15K_V1", (15_000, 15_000), (267, 210), (47_334, 40_864), 15_000),
        ("EN_DE_15K_V1", (15_000, 15_000), (215, 131), (47_676, 50_419), 15_000),
        ("ContEA_FR_EN", (94_451, 142_234), (903, 1_208), (318_115, 465_126), 43_182),
    ],
)
def test_real_data_sets_have_their_published_counts(
    real_data: Callable[[str], Path],
    name: str,
    entities: tuple[int, int],
    relations: tuple[int, int],
    triples: tuple[int, int],
    links: int,
) -> None:
    task: AlignmentTask = load_pair(DataInput(folder=real_data(name))).task
    assert (task.num_source_entities, task.num_target_entities) == entities
    assert (task.num_source_relations, task.num_target_relations) == relations
    assert (task.num_source_triples, len(task.triples) - task.num_source_triples) == triples
    counts = [len(task.train_links), len(task.valid_links), len(task.test_links)]
    assert sum(counts) == links
    assert counts[0] == pytest.approx(0.2 * links, abs=1)
    assert counts[1] == pytest.approx(0.1 * links, abs=1)
