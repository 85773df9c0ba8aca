"""Mutated files of every kind and mutated data set folders: read, or refused in words."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from largegnn.parts import READERS
from tests.fuzz import corpus
from tests.fuzz.judge import Judge, Trial, require
from tests.fuzz.mutate import generator, mutate
from tests.fuzz.seed import num_inputs
from tests.fuzz.tokens import FORMATS

KINDS = [(kind, form) for kind, forms in corpus.files().items() for form in forms]


def mutated_files(kind: str, form: str, folder: Path) -> Iterator[Trial]:
    """Files of one format under a name that says so, under none, or compressed."""
    files = corpus.files()
    documents, others = files[kind][form], [data for forms in files.values() for data in forms.get(form, [])]
    # Parquet is read in a process of its own, half a second each.
    usual = 100 if form != "parquet" else 8
    for number in range(num_inputs(usual) if kind == "triples" else num_inputs(usual // 4, 1 / 4)):
        rng = generator(kind, form, number)
        data = mutate(rng, rng.choice(documents), others, FORMATS[form])
        suffix = rng.choice((f".{form}", f".{form}", f".{form}", "", ".txt"))
        if rng.random() < 0.15:
            ending, compress = rng.choice(list(corpus.COMPRESSIONS.items()))
            data, suffix = compress(data), suffix + rng.choice((ending, ending, ""))
            data = mutate(rng, data, [data], FORMATS["archive"]) if rng.random() < 0.5 else data
        path = folder / f"{number}{suffix}"
        path.write_bytes(data)
        yield Trial(f"{form}-{path.name}", [str(path), kind, form if rng.random() < 0.5 else "auto"], path)
        path.unlink()


def valid_file(folder: Path, kind: str, form: str) -> str:
    path = folder / f"valid.{form}"
    path.write_bytes(corpus.files()[kind][form][0])
    return str(path)


@pytest.fixture(scope="module")
def file_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    valid = valid_file(tmp_path_factory.mktemp("valid"), "triples", "nt")
    with Judge("tests.fuzz.checks:read_file", [valid, "triples", "nt"]) as judge:
        yield judge


@pytest.fixture(scope="module")
def folder_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    valid = tmp_path_factory.mktemp("valid") / "openea"
    write_folder(valid, corpus.folders()["openea"])
    with Judge("tests.fuzz.checks:load_folder", [str(valid)]) as judge:
        yield judge


@pytest.mark.parametrize(("kind", "form"), KINDS)
def test_files(file_judge: Judge, kind: str, form: str, tmp_path: Path) -> None:
    ended = require(file_judge.ask_all(mutated_files(kind, form, tmp_path)), kind)
    if len(ended) >= 100:  # neither too mild nor too wild
        assert {outcome.ended for outcome in ended} == {"accepted", "refused"}


def write_folder(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def mutated_folders(layout: str, home: Path) -> Iterator[Trial]:
    """Folders with a file mutated, exchanged for another, emptied, removed, or turned into a folder."""
    files = corpus.folders()[layout]
    for number in range(num_inputs(60, 1 / 5)):
        rng, folder = generator("folder", layout, number), home / str(number)
        write_folder(folder, files)
        for name in rng.sample(list(files), rng.choice((1, 1, 2))):
            _damage(rng, folder / name, files[name], list(files.values()))
        yield Trial(f"{layout}-{number}", [str(folder)], folder)
        shutil.rmtree(folder)


def _damage(rng: random.Random, path: Path, data: bytes, others: list[bytes]) -> None:
    way = rng.choice(("mutate", "mutate", "mutate", "mutate", "exchange", "empty", "twice", "remove", "folder", "link"))
    if way == "mutate":
        form = path.suffix.removeprefix(".") if path.suffix in {".nt", ".csv"} else "tsv"
        path.write_bytes(mutate(rng, data, others, FORMATS[form]))
    elif way == "exchange":
        path.write_bytes(rng.choice(others))
    elif way == "empty":
        path.write_bytes(b"")
    elif way == "twice":
        path.with_name(path.name + rng.choice((".gz", ".tsv", ".nt"))).write_bytes(data)
    else:
        path.unlink()
        if way == "folder":
            path.mkdir()
        elif way == "link":
            path.symlink_to(rng.choice((path.name, "nowhere", "/dev/null", ".")))


@pytest.mark.parametrize("layout", list(corpus.folders()))
def test_folders(folder_judge: Judge, layout: str, tmp_path: Path) -> None:
    require(folder_judge.ask_all(mutated_folders(layout, tmp_path)), "folders")


def test_the_corpus_itself_is_valid(file_judge: Judge, folder_judge: Judge, tmp_path: Path) -> None:
    """Otherwise mutations would only ever meet the first check."""
    assert set(READERS) <= set(corpus.files()["triples"]), "a reader without examples in the corpus is not fuzzed"
    trials = []
    for kind, form in KINDS:
        for number, data in enumerate(corpus.files()[kind][form]):
            path = tmp_path / f"{kind}-{number}.{form}"
            path.write_bytes(data)
            trials.append(Trial(path.name, [str(path), kind, "auto"], path))
    for layout, files in corpus.folders().items():
        write_folder(tmp_path / layout, files)
    folders = [Trial(layout, [str(tmp_path / layout)]) for layout in corpus.folders()]
    outcomes = [*file_judge.ask_all(trials), *folder_judge.ask_all(folders)]
    assert [f"{outcome.trial.name}: {outcome.detail}" for outcome in outcomes if outcome.ended != "accepted"] == []
