"""Files read in pieces give what they give in one: by a pool that works in this process, and hands over bytes alone."""

from __future__ import annotations

import gzip
import logging
import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largegnn.data import block_pieces, lines
from largegnn.data.block_pieces import shared_attributes, shared_triples
from largegnn.data.coded_batch import CodedBatch
from largegnn.data.literal_rows import LiteralCoder
from largegnn.data.vocabulary import code_batches
from largegnn.errors import InputError
from largegnn.machine.worker_pool import using_pool
from largegnn.parts import READERS


class PoolHere:
    """A pool of one worker, which is this process; a blind one sees no files."""

    num_workers, device = 1, "cpu"

    def __init__(self, is_blind: bool = False) -> None:
        self.is_blind, self.num_run = is_blind, 0

    def on_processors(self) -> PoolHere:
        return self

    def share(self, value: object) -> Any:
        return value

    def run(self, function: Callable[..., Any], pieces: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        numbered = [(number, pickle.dumps(arguments)) for number, arguments in enumerate(pieces)]
        for number, sent in reversed(numbered):  # the last one is done first
            self.num_run += 1
            with pytest.MonkeyPatch.context() as patch:
                if self.is_blind:
                    patch.setattr(block_pieces._Range, "read", lambda _: None)
                result = pickle.dumps(function(*pickle.loads(sent)))
            yield number, pickle.loads(result)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of some lines, each of which is worth sending."""
    monkeypatch.setattr(block_pieces, "_WORTH_SENDING", 1)
    monkeypatch.setattr(block_pieces, "_RANGE", 300)
    monkeypatch.setattr(block_pieces, "_STEP", 7)
    monkeypatch.setattr(lines, "_BLOCK", 300)


def read(path: Path, pool: PoolHere | None, form: str = "auto", attributes: bool = False) -> tuple[Any, ...]:
    """All that a file says, sorted."""

    def batches() -> Iterator[Any]:
        return shared_attributes(path, True) if attributes else shared_triples(path, form, True)

    coder = LiteralCoder()
    if pool is None:
        graph = code_batches(batches(), coder.add)
    else:
        with using_pool(pool):
            graph = code_batches(batches(), coder.add)
        assert pool.num_run > 3
    literals = coder.finish()
    names, relations = graph.entity_names.to_list(), graph.relation_names.to_list()
    rows = literals.rows
    columns = (rows.entities, rows.predicates, rows.datatypes, rows.languages)
    tables = (literals.head_names, rows.predicate_names, rows.datatype_names, rows.language_names)
    said = [[table[int(code)] for code in column] for column, table in zip(columns, tables, strict=True)]
    return (
        sorted((names[head], relations[relation], names[tail]) for head, relation, tail in graph.triples.tolist()),
        sorted(zip(*said, list(rows.values), strict=True)),
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
@pytest.mark.parametrize("is_blind", [False, True])
def test_n_triples(tmp_path: Path, end: str, is_blind: bool, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "graph.nt"
    path.write_bytes(b"\xef\xbb\xbf" + end.join(triples()).encode())
    if end == "\r":
        # Nothing shows where a range could end: the blocks are read here, and sent.
        form = READERS["nt"].blocks
        assert form is not None
        assert block_pieces._ranges(path, form) is None
    with caplog.at_level(logging.INFO):
        found = read(path, PoolHere(is_blind))
    assert found == read(path, None)
    assert found[4].byte_order_marks == 1
    assert ("not every node sees" in caplog.text) == (is_blind and end != "\r")


def test_packed_files(tmp_path: Path) -> None:
    path = tmp_path / "graph.nt.gz"
    path.write_bytes(gzip.compress("\n".join(triples()).encode()))
    assert read(path, PoolHere()) == read(path, None)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("first", ["tail\thead\trelation", "", "\n" * 700 + "tail\thead\trelation"])
def test_tables_know_their_columns(tmp_path: Path, end: str, first: str) -> None:
    rows = [f"entity {number % 7}\tentity {number % 11}\trelation {number % 3}" for number in range(80)]
    path = tmp_path / "graph.tsv"
    path.write_bytes(end.join([first, *rows[:50], first, *rows[50:]]).replace("\n\n", end * 2).encode())
    assert read(path, PoolHere()) == read(path, None)


def test_quoted_line_breaks(tmp_path: Path) -> None:
    rows = [f'"entity\n{number % 7}",relation,"entity ""{number % 11}"""' for number in range(80)]
    path = tmp_path / "graph.csv"
    path.write_text("head,relation,tail\n" + "\n".join(rows), encoding="utf-8", newline="")
    found = read(path, PoolHere())
    assert found == read(path, None)
    assert len(found[0]) == 80


@pytest.mark.parametrize("is_rdf", [False, True])
def test_attributes(tmp_path: Path, is_rdf: bool) -> None:
    path = tmp_path / "attr_triples_1"
    rows = [f"entity {number % 9}\tname\tvalue\twith tab {number}" for number in range(60)]
    path.write_text("\n".join(triples() if is_rdf else [*rows, "half a row"]), encoding="utf-8")
    found = read(path, PoolHere(), attributes=True)
    assert found == read(path, None, attributes=True)
    assert len(found[1]) > 40


def test_the_first_mistake_is_named_by_its_line(tmp_path: Path) -> None:
    made = triples()
    made[30], made[50] = "<http://x.org/e1> <http://x.org/r1> .", "no triple at all"
    path = tmp_path / "graph.nt"
    path.write_text("\n".join(made), encoding="utf-8")
    told = []
    for pool in (None, PoolHere()):
        with pytest.raises(InputError) as error:
            read(path, pool)
        told.append((str(error.value), error.value.where))
    assert told[0] == told[1]
    assert "line 31" in str(told[0][1])


def test_small_files_are_read_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.nt"
    path.write_text("\n".join(triples()), encoding="utf-8")
    monkeypatch.setattr(block_pieces, "_WORTH_SENDING", 1 + path.stat().st_size)
    pool = PoolHere()
    with using_pool(pool):
        batches = list(shared_triples(path, "auto", True))
    assert pool.num_run == 0
    assert not any(isinstance(batch, CodedBatch) for batch in batches)
