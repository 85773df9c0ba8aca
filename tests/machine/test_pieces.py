"""Test pieces of work: results in order, few pieces in progress, by threads or by the workers of a cluster."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from largegnn.machine import pieces as module
from largegnn.machine.pieces import (
    by_all_processors,
    current_workers,
    in_background,
    map_pieces,
    num_workers,
    piece_device,
    piece_size,
    pieces,
    use_workers,
)
from tests.pickled_pool import PickledPool

VALUE: contextvars.ContextVar[str] = contextvars.ContextVar("VALUE", default="none")


@pytest.fixture(params=[1, 3])
def processors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    number: int = request.param
    monkeypatch.setattr(module, "num_processors", lambda: number)
    return number


def total(start: int, stop: int, values: list[int]) -> int:
    return sum(values[start:stop])


def refuse(number: int) -> int:
    if number == 2:
        raise ValueError(f"not {number}")
    return number


def test_ranges_cover_all_rows() -> None:
    assert list(pieces(7, 3)) == [(0, 3), (3, 6), (6, 7)]
    assert list(pieces(6, 6)) == [(0, 6)]
    assert list(pieces(0, 3)) == []


def test_results_are_in_the_order_of_the_pieces(processors: int) -> None:
    values, go_on = list(range(50)), threading.Event()
    assert list(map_pieces(total, pieces(50, 3), values)) == [
        sum(values[start : start + 3]) for start in range(0, 50, 3)
    ]
    assert by_all_processors(lambda start, stop: stop - start, 50, 20) == [20, 20, 10]
    assert by_all_processors(lambda start, stop: stop - start, 0, 20) == []
    assert list(map_pieces(total, [], values)) == []
    here = threading.get_ident()
    assert by_all_processors(lambda *_: threading.get_ident(), 9, 10) == [here], "no thread for one piece"

    def first_waits_for_last(start: int, stop: int) -> int:
        if start == 0:
            go_on.wait(10)
        elif start == 1:
            go_on.set()
        return start

    if processors > 1:
        assert by_all_processors(first_waits_for_last, 3, 1) == [0, 1, 2]


def test_pieces_are_made_when_their_turn_comes_and_cancelled_when_unwanted(processors: int) -> None:
    made: list[int] = []
    done: list[int] = []

    def numbers() -> Iterator[tuple[int]]:
        for number in range(1_000):
            made.append(number)
            yield (number,)

    results = map_pieces(lambda number: done.append(number) or number, numbers())  # type: ignore[func-returns-value]
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    assert len(made) <= 3 + 4 * processors
    results.close()  # type: ignore[attr-defined]
    assert set(done) <= set(made)
    assert len(made) <= 3 + 4 * processors


@pytest.mark.usefixtures("processors")
def test_a_function_with_threads_of_its_own_computes_one_piece_at_a_time() -> None:
    here = threading.get_ident()
    assert set(map_pieces(lambda *_: threading.get_ident(), pieces(9, 1), own_threads=True)) == {here}
    assert num_workers(own_threads=True) == 1


@pytest.mark.usefixtures("processors")
def test_an_error_of_a_piece_is_raised_in_its_place() -> None:
    results = map_pieces(refuse, ((number,) for number in range(9)))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="not 2"):
        next(results)


def test_workers_of_a_cluster_are_used_where_they_are_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    values, workers = list(range(40)), PickledPool(num_workers=2)
    expected = [sum(values[start : start + 7]) for start in range(0, 40, 7)]

    def computed(**options: Any) -> int:
        """The number of pieces that the workers computed."""
        before = workers.made["total"]
        assert list(map_pieces(total, pieces(40, 7), values, **options)) == expected
        return workers.made["total"] - before

    monkeypatch.setattr(module, "num_processors", lambda: 1)
    assert computed() == 0
    with use_workers(workers):
        assert current_workers() is workers
        assert computed() == len(expected)
        assert computed(send=False) == 0
        assert (num_workers(), num_workers(send=False), num_workers(own_threads=True)) == (2, 1, 2)
        assert piece_size(10**6, send=True) == 125_000
        monkeypatch.setattr(module, "num_processors", lambda: 2)
        assert computed() == 0, "as many processors here"
        assert computed(gpus=True) == 0, "workers without a GPU"
        monkeypatch.setattr(PickledPool, "device", "cuda")
        assert computed(gpus=True) == len(expected)
        assert (piece_device("cpu"), piece_device("cpu", send=False)) == ("cuda", "cpu")
    assert current_workers() is None
    assert computed() == 0


@pytest.mark.parametrize("number", [1, 64])
def test_results_and_errors_of_background_work(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(module, "num_processors", lambda: number)
    assert in_background(lambda: 7)() == 7
    with pytest.raises(ValueError, match="not 2"):
        in_background(lambda: refuse(2))()


def test_with_many_processors_the_background_begins_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "num_processors", lambda: 64)
    VALUE.set("of the caller")
    done = threading.Event()
    found: list[str] = []

    def work() -> None:
        found.append(VALUE.get())
        done.set()

    wait = in_background(work)
    assert done.wait(10)
    wait()
    assert found == ["of the caller"], "context variables are passed on, such as the workers in use"


def test_with_few_processors_the_work_begins_when_its_result_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "num_processors", lambda: 2)
    found: list[int] = []
    wait = in_background(lambda: found.append(1))
    assert found == []
    wait()
    assert found == [1]
