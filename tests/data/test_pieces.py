"""Test that blocks of large files give the same batches if they are parsed by a pool, which passes only bytes."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largegnn.data import lines, readers, tables
from largegnn.data.coding import code_batches
from largegnn.data.readers import coded_attributes, coded_triples
from largegnn.errors import InputError
from largegnn.machine.pieces import use_workers
from tests.pickled_pool import PickledPool


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make blocks of a few lines, and send every block to the pool."""
    monkeypatch.setattr(readers, "_WORTH_SENDING", 1)
    monkeypatch.setattr(lines, "_BLOCK", 300)


def read(path: Path, pool: PickledPool | None, form: str = "auto", attributes: bool = False) -> tuple[Any, ...]:
    """Return all triples and literals of a file, sorted."""

    def batches() -> Iterator[Any]:
        return coded_attributes(path, True) if attributes else coded_triples(path, form, True)

    if pool is None:
        graph = code_batches(batches(), True)
    else:
        with use_workers(pool):
            graph = code_batches(batches(), True)
        assert sum(pool.made.values()) > 3
    literals = graph.literals
    assert literals is not None
    names, relations = graph.entity_names.to_list(), graph.relation_names.to_list()
    return (
        sorted((names[head], relations[relation], names[tail]) for head, relation, tail in graph.triples.tolist()),
        sorted((literals.head_names[row[0]], *row[1:]) for row in literals.rows.rows()),
        sorted(graph.attribute_entities.to_list()),
        graph.num_attribute_triples,
        graph.counts,
    )


def triples(count: int = 60) -> list[str]:
    """Lines of N-Triples: links, literals, comments, a blank line and an escape."""
    rng = np.random.default_rng(0)
    made = []
    for number, (head, relation, tail) in enumerate(rng.integers(20, size=(count, 3)).tolist()):
        tails = (
            f"<http://x.org/e{tail}>",
            f'"name {tail}"@en',
            f'"{tail}"^^<http://x.org/int>',
            f'"a\\t\\u00e9{tail}"',
        )
        made.append(f"<http://x.org/e{head}> <http://x.org/r{relation % 4}> {tails[number % 4]} .")
    return [*made[:9], "# a comment", "", *made[9:]]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_n_triples(tmp_path: Path, end: str) -> None:
    path = tmp_path / "graph.nt"
    path.write_bytes(b"\xef\xbb\xbf" + end.join(triples()).encode())
    found = read(path, PickledPool(1_000))
    assert found == read(path, None)
    assert found[4].byte_order_marks == 1


def test_compressed_files(tmp_path: Path) -> None:
    path = tmp_path / "graph.nt.gz"
    path.write_bytes(gzip.compress("\n".join(triples()).encode()))
    assert read(path, PickledPool(1_000)) == read(path, None)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("first", ["tail\thead\trelation", "", "\n" * 700 + "tail\thead\trelation"])
def test_tables_know_their_columns(tmp_path: Path, end: str, first: str) -> None:
    rows = [f"entity {number % 7}\tentity {number % 11}\trelation {number % 3}" for number in range(80)]
    path = tmp_path / "graph.tsv"
    path.write_bytes(end.join([first, *rows[:50], first, *rows[50:]]).replace("\n\n", end * 2).encode())
    assert read(path, PickledPool(1_000)) == read(path, None)


def test_quoted_line_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_QUOTED_ROWS", 7)
    rows = [f'"entity\n{number % 7}",relation,"entity ""{number % 11}"""' for number in range(80)]
    path = tmp_path / "graph.csv"
    path.write_text("head,relation,tail\n" + "\n".join(rows), encoding="utf-8", newline="")
    found = read(path, PickledPool(1_000))
    assert found == read(path, None)
    assert len(found[0]) == 80


@pytest.mark.parametrize("is_rdf", [False, True])
def test_attributes(tmp_path: Path, is_rdf: bool) -> None:
    path = tmp_path / "attr_triples_1"
    rows = [f"entity {number % 9}\tname\tvalue\twith tab {number}" for number in range(60)]
    path.write_text("\n".join(triples() if is_rdf else [*rows, "half a row"]), encoding="utf-8")
    found = read(path, PickledPool(1_000), attributes=True)
    assert found == read(path, None, attributes=True)
    assert len(found[1]) > 40


def test_the_first_mistake_is_named_by_its_line(tmp_path: Path) -> None:
    made = triples()
    made[30], made[50] = "<http://x.org/e1> <http://x.org/r1> .", "no triple at all"
    path = tmp_path / "graph.nt"
    path.write_text("\n".join(made), encoding="utf-8")
    errors = []
    for pool in (None, PickledPool(1_000)):
        with pytest.raises(InputError) as error:
            read(path, pool)
        errors.append((str(error.value), error.value.where))
    assert errors[0] == errors[1]
    assert "line 31" in str(errors[0][1])


def test_small_files_are_read_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.nt"
    path.write_text("\n".join(triples()), encoding="utf-8")
    monkeypatch.setattr(readers, "_WORTH_SENDING", 1 + path.stat().st_size)
    pool = PickledPool(1_000)
    with use_workers(pool):
        assert len(list(coded_triples(path, "auto", True))) > 3
    assert sum(pool.made.values()) == 0
