"""Mutated files that two readers accept give both the same triples: nothing is dropped, added or changed in silence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz import corpus
from tests.fuzz.judge import Judge, Trial, require
from tests.fuzz.mutate import generator, mutate
from tests.fuzz.seed import num_inputs
from tests.fuzz.test_fuzz_readers import valid_file
from tests.fuzz.tokens import FORMATS

# Our format, and as what the other reader reads the file: every N-Triples file is N-Quads and Turtle too.
PAIRS = [("nt", "nt"), ("nq", "nq"), ("ttl", "ttl"), ("nt", "ttl"), ("nt", "nq"), ("tsv", "tsv"), ("csv", "csv")]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    valid = valid_file(tmp_path_factory.mktemp("valid"), "triples", "nt")
    with Judge("tests.fuzz.differential:same_triples", [valid, "nt", "nt"]) as started:
        yield started


def mutated_files(folder: Path, form: str, also: str) -> Iterator[Trial]:
    documents = corpus.files()["triples"][form]
    for number in range(num_inputs(150)):
        rng = generator("misreading", form, also, number)
        path = folder / f"{number}.{form}"
        path.write_bytes(mutate(rng, rng.choice(documents), documents, FORMATS[form]))
        yield Trial(f"{also}-{path.name}", [str(path), form, also], path)
        path.unlink()


@pytest.mark.parametrize(("form", "also"), PAIRS)
def test_strict_readers_read_the_same(judge: Judge, form: str, also: str, tmp_path: Path) -> None:
    ended = require(judge.ask_all(mutated_files(tmp_path, form, also)), "misreading")
    assert any(outcome.result == "compared" for outcome in ended)
