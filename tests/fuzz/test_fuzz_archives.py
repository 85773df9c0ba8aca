"""Mutated archives: unpacked as before, or refused in words, with nothing left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz import corpus
from tests.fuzz.judge import Judge, Trial, require
from tests.fuzz.mutate import generator, mutate
from tests.fuzz.seed import num_inputs
from tests.fuzz.tokens import FORMATS


def mutated_archives(folder: Path) -> Iterator[Trial]:
    """Archives changed from outside, or changed inside and compressed again."""
    archives = corpus.archives()
    for number in range(num_inputs(50, 1 / 10)):
        rng = generator("archive", number)
        suffix = rng.choice(list(archives))
        data = mutate(rng, archives[suffix], list(archives.values()), FORMATS["archive"])
        if suffix in {"tar", "pax.tar"} and rng.random() < 0.5:
            ending, compress = rng.choice(list(corpus.COMPRESSIONS.items()))
            suffix, data = suffix + ending, compress(data)
        path = folder / f"{number}.{suffix}"
        path.write_bytes(data)
        yield Trial(path.name, [str(path)], path)
        path.unlink()


@pytest.fixture(scope="module")
def archive_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    valid = tmp_path_factory.mktemp("valid") / "valid.zip"
    valid.write_bytes(corpus.archives()["zip"])
    with Judge("tests.fuzz.checks:unpack_archive", [str(valid)]) as judge:
        yield judge


def test_archives(archive_judge: Judge, tmp_path: Path) -> None:
    require(archive_judge.ask_all(mutated_archives(tmp_path)), "archives")
    assert list(tmp_path.iterdir()) == [], "a refused archive leaves nothing behind"


def test_the_corpus_itself_is_valid(archive_judge: Judge, tmp_path: Path) -> None:
    trials = []
    for suffix, data in corpus.archives().items():
        path = tmp_path / f"a.{suffix}"
        path.write_bytes(data)
        trials.append(Trial(suffix, [str(path)], path))
    files = [f"out/EN_FR/{name}" for name in sorted(corpus.folders()["dbpedia1m"])]
    for outcome in archive_judge.ask_all(trials):
        assert (outcome.ended, outcome.result) == ("accepted", files), outcome
