"""Test that written files are read back as the same task."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from largegnn import api
from largegnn.artifacts import AlignmentTask, StringTable, TaskNames
from largegnn.data.inputs import DataInput
from largegnn.data.load import LoadedPair, load_pair
from largegnn.data.write import WRITERS, write_pair
from largegnn.errors import InputError, StorageError
from largegnn.settings import DataSettings
from tests.small_world import WORLD

COMPRESSIONS = ["gzip", "bzip2", "zstd"]


def assert_same(one: LoadedPair, other: LoadedPair) -> None:
    for names in ("entities", "relations"):
        assert list(getattr(one.names, names)) == list(getattr(other.names, names))
    for count in ("num_source_entities", "num_target_entities", "num_source_relations", "num_target_relations"):
        assert getattr(one.task, count) == getattr(other.task, count)
    for array in ("triples", "train_links", "valid_links", "test_links"):
        assert np.array_equal(getattr(one.task, array), getattr(other.task, array)), array


@pytest.fixture(scope="module")
def real_pair(real_data: Callable[[str], Path]) -> LoadedPair:
    return load_pair(DataInput(folder=real_data("EN_FR_15K_V1")))


@pytest.fixture(scope="module")
def small_pair(tmp_path_factory: pytest.TempPathFactory) -> LoadedPair:
    folder = tmp_path_factory.mktemp("small") / "pair"
    api.generate(WORLD, folder=folder)
    return load_pair(DataInput(folder=folder))


def assert_kept(original: LoadedPair, folder: Path, form: str, compression: str | None) -> None:
    files = write_pair(original.task, original.names, folder, form, compression)
    assert all(path.stat().st_size for path in files)
    assert_same(original, load_pair(DataInput(folder=folder)))


@pytest.mark.parametrize("form", WRITERS)
def test_real_data_in_every_form(real_pair: LoadedPair, tmp_path: Path, form: str) -> None:
    assert_kept(real_pair, tmp_path / "out", form, None)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_real_data_in_every_compression(real_pair: LoadedPair, tmp_path: Path, compression: str) -> None:
    assert_kept(real_pair, tmp_path / "out", "nt", compression)


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_every_form_in_every_compression(small_pair: LoadedPair, tmp_path: Path, form: str, compression: str) -> None:
    assert_kept(small_pair, tmp_path / "out", form, compression)


@pytest.mark.parametrize("form", WRITERS)
def test_odd_names_in_every_form(toy_task: AlignmentTask, tmp_path: Path, form: str) -> None:
    odd = ["a b", "é,ü", 'q"uo"te', "http://x/y?z=%20#f", "_:blank", "a|b{c}^`", "ünï-çødé 漢字", "R14", "-", "0"]
    names = TaskNames(
        StringTable.from_strings([*odd, "back\\slash"]), StringTable.from_strings(["r 1", "s", "p", "q>"])
    )
    write_pair(toy_task, names, tmp_path / "one", form)
    first = load_pair(DataInput(folder=tmp_path / "one"))
    assert set(first.names.entities) == set(names.entities)
    assert set(first.names.relations) == set(names.relations)
    write_pair(first.task, first.names, tmp_path / "two", form)
    assert_same(first, load_pair(DataInput(folder=tmp_path / "two")))


@pytest.mark.parametrize("form", ["tsv", "openea", "dbpedia1m", "dbp15k"])
@pytest.mark.parametrize("name", ["a\tb", "a\nb", "<a>", '"a"', ""])
def test_names_a_table_cannot_hold_are_refused(toy_task: AlignmentTask, tmp_path: Path, form: str, name: str) -> None:
    names = TaskNames(StringTable.from_strings([name, *"bcdeABCDEF"]), StringTable.from_strings("rspq"))
    with pytest.raises(InputError, match="cannot hold a name"):
        write_pair(toy_task, names, tmp_path / "out", form)


def test_two_file_form_reads_what_was_written(toy_task: AlignmentTask, toy_names: TaskNames, tmp_path: Path) -> None:
    write_pair(toy_task, toy_names, tmp_path / "out", "nt", "gzip")
    folder = load_pair(DataInput(folder=tmp_path / "out"))
    given = DataInput(
        source=tmp_path / "out/source.nt.gz",
        target=tmp_path / "out/target.nt.gz",
        seeds=tmp_path / "out/train_links.nt.gz",
        valid_links=tmp_path / "out/valid_links.nt.gz",
        test_links=tmp_path / "out/test_links.nt.gz",
    )
    assert_same(folder, load_pair(given, DataSettings()))


def test_what_is_there_is_never_overwritten(toy_task: AlignmentTask, toy_names: TaskNames, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with pytest.raises(InputError, match="not empty"):
        write_pair(toy_task, toy_names, tmp_path, "nt")
    with pytest.raises(InputError, match="no writer"):
        write_pair(toy_task, toy_names, tmp_path / "out", "xml")
    with pytest.raises(StorageError, match="cannot write"):
        write_pair(toy_task, toy_names, Path("/proc/nowhere/out"), "nt")
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
