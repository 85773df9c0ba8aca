"""Mutated files that two readers accept give both the same triples: nothing is dropped, added or changed in silence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz import corpus
from tests.fuzz.judge import Trial, judge, require
from tests.fuzz.mutate import generator, mutate
from tests.fuzz.seed import num_inputs
from tests.fuzz.test_fuzz_readers import valid_file
from tests.fuzz.tokens import FORMATS


def mutated_files(folder: Path, form: str, *arguments: str) -> Iterator[Trial]:
    documents = corpus.files()["triples"][form]
    for number in range(num_inputs(300)):
        rng = generator("misreading", form, *arguments, number)
        path = folder / f"{number}.{form}"
        path.write_bytes(mutate(rng, rng.choice(documents), documents, FORMATS[form]))
        yield Trial(path.name, [str(path), form, *arguments], path)
        path.unlink()


@pytest.mark.parametrize(("form", "also"), [("nt", "nt"), ("nq", "nq"), ("ttl", "ttl"), ("nt", "ttl"), ("nt", "nq")])
def test_rdf_as_a_strict_parser_reads_it(form: str, also: str, tmp_path: Path) -> None:
    valid = [valid_file(tmp_path, "triples", form), form, also]
    trials = mutated_files(tmp_path, form, also)
    ended = require(judge("tests.fuzz.differential:same_as_oxigraph", valid, trials), "misreading")
    assert any(outcome.result == "compared" for outcome in ended)


@pytest.mark.parametrize("form", ["tsv", "csv"])
def test_tables_as_plain_readers_read_them(form: str, tmp_path: Path) -> None:
    valid = [valid_file(tmp_path, "triples", form), form]
    ended = require(judge("tests.fuzz.differential:same_as_csv", valid, mutated_files(tmp_path, form)), "misreading")
    assert any(outcome.result == "compared" for outcome in ended)
