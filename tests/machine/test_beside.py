"""Work beside other work: started where processors are many, done when asked for where they are few."""

from __future__ import annotations

import contextvars
import threading

import pytest

from largegnn.machine import beside as module
from largegnn.machine.beside import beside

VALUE: contextvars.ContextVar[str] = contextvars.ContextVar("VALUE", default="none")


@pytest.mark.parametrize("processors", [1, 64])
def test_the_result_is_given_and_errors_are_raised(monkeypatch: pytest.MonkeyPatch, processors: int) -> None:
    monkeypatch.setattr(module, "num_processors", lambda: processors)
    assert beside(lambda: 7)() == 7

    def fail() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        beside(fail)()


def test_with_many_processors_it_runs_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "num_processors", lambda: 64)
    VALUE.set("of the caller")
    done = threading.Event()
    seen: list[str] = []

    def work() -> None:
        seen.append(VALUE.get())
        done.set()

    wait = beside(work)
    assert done.wait(10)
    wait()
    assert seen == ["of the caller"]  # a cluster's pool is such a variable


def test_with_few_it_waits_until_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "num_processors", lambda: 2)
    seen: list[int] = []
    wait = beside(lambda: seen.append(1))
    assert seen == []
    wait()
    assert seen == [1]
