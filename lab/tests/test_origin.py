"""Where figures come from: what a record says, and that nothing in it names a host, a user or a folder."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import pytest

import largegnn
from lab import origin as origins
from lab.origin import Origin, data_checksum, machine_name, origin_of, origin_of_run
from lab.runs import DataInput, Run, RunStore
from largegnn.settings import Settings
from largegnn.version import __version__


@pytest.fixture
def origin(toy_folder: Path) -> Origin:
    chosen = Settings.model_validate({"seed": 7, "train": {"dim": 32}, "match": {"weights": {"support": 0.5}}})
    return origin_of(chosen, [toy_folder], channels=["structure"], protocol={"seeds": "drawn at random"})


def test_an_origin_says_what_a_figure_follows_from(origin: Origin) -> None:
    assert (origin.version, origin.random_seed, origin.channels) == (__version__, 7, ["structure"])
    assert origin.settings == {"train.dim": 32, "match.weights.support": 0.5}
    assert origin.protocol == {"seeds_from": "train", "fold": 1, "rounds": 0, "seeds": "drawn at random"}
    assert {"python", "numpy", "torch"} <= set(origin.libraries)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", origin.date)
    assert origin.commit is None or re.fullmatch(r"[0-9a-f]{40}\+?", origin.commit)
    assert origin.machine.cores >= 1
    assert set(origin.data) == {"toy"}


def test_an_origin_names_no_host_user_or_folder(origin: Origin, toy_folder: Path) -> None:
    text = origin.model_dump_json()
    for private in (platform.node(), str(toy_folder.parent), str(Path.home()), str(Path.cwd())):
        assert not private or f'"{private}' not in text


def test_figures_of_a_run_come_from_its_settings_and_files(toy_folder: Path, tmp_path: Path) -> None:
    settings = Settings.of({"seed": 3, "channels": ["structure"]})
    names = toy_folder / "rel_triples_1"
    run = Run(settings, RunStore(tmp_path / "run"), DataInput(folder=toy_folder, source_names=names))
    found = origin_of_run(run, {"client": "one"})
    assert found == origin_of(settings, [toy_folder, names], channels=["structure"], protocol={"client": "one"})
    assert set(found.data) == {"toy", "rel_triples_1"}
    assert origin_of_run(Run(settings, RunStore(tmp_path / "run")), {}).data == {}, "arrays and frames have no file"


def test_without_a_repository_the_commit_is_not_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(largegnn, "__file__", str(tmp_path / "largegnn" / "__init__.py"))
    (tmp_path / "largegnn").mkdir()
    assert origins._committed() == (None, None)


def test_the_program_is_known_by_its_files_and_not_where_it_was_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "src" / "largegnn"
    package.mkdir(parents=True)
    (package / "version.py").write_text("one")
    monkeypatch.setattr(largegnn, "__file__", str(package / "__init__.py"))

    def git(*words: str) -> str:
        who = ("-c", "user.name=x", "-c", "user.email=x@x")
        return subprocess.run(["git", "-C", tmp_path, *who, *words], check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    commit, tree = origins._committed()
    git("commit", "-q", "--amend", "-m", "another name")
    later, same = origins._committed()
    assert commit != later == git("rev-parse", "HEAD").strip()
    assert tree == same == git("rev-parse", "HEAD:src/largegnn").strip()
    (package / "version.py").write_text("two")
    assert origins._committed() == (f"{later}+", None)


def test_a_checksum_tells_names_and_contents_apart(tmp_path: Path) -> None:
    sums = set()
    folders = {"a": {"x": "1", "y": "2"}, "b": {"x": "2", "y": "1"}, "c": {"x": "12"}, "d": {"y": "1"}}
    for name, files in folders.items():
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(text)
        sums.add(data_checksum(tmp_path / name))
    assert len(sums) == 4
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "y").write_text("1")
    assert data_checksum(tmp_path / "e") == data_checksum(tmp_path / "d"), "the folder's own name does not matter"


def test_a_machine_in_words() -> None:
    assert "CPU cores" in machine_name("cpu")
