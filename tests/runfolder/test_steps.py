"""A step is reused for what it was handed, and for nothing else."""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from largegnn.errors import InputError
from largegnn.runfolder.steps import LastStepError, Steps, derived_seed, versioned
from largegnn.runfolder.store import RunStore
from largegnn.settings import SearchSettings

NAMES = ("first", "second", "third")
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table:
    """An artifact."""

    numbers: Numbers


@dataclass(frozen=True)
class Facts:
    """What a step found out."""

    total: int


@dataclass(frozen=True)
class TableResult:
    """What a step returns."""

    table: Table
    outcome: Facts
    extra: Table | None = None


CALLS: list[str] = []


def make(start: int, settings: SearchSettings) -> TableResult:
    CALLS.append("make")
    return TableResult(Table(np.arange(start, start + settings.k)), Facts(settings.k))


def double(table: Table, seed: int = 0, *, device: str = "cpu", work: Path | None = None) -> TableResult:
    CALLS.append(f"double on {device}")
    if work is not None:
        (work / "kept").write_text("x")
    return TableResult(Table(table.numbers * 2), Facts(int(table.numbers.sum()) + seed))


@pytest.fixture(autouse=True)
def calls() -> list[str]:
    CALLS.clear()
    return CALLS


def steps_in(folder: Path, **options: str) -> Steps:
    store = RunStore(folder)
    folder.mkdir(exist_ok=True)
    store.update_manifest(made_by="test")
    return Steps(store, NAMES, **options)  # type: ignore[arg-type]


def two_steps(step: Steps, start: int = 3, k: int = 4, device: str = "cpu") -> TableResult:
    first = step("first", make, start, SearchSettings(k=k))
    return step("second", double, first.table, device=device)


def test_a_result_comes_back_mapped_with_what_it_found(tmp_path: Path, calls: list[str]) -> None:
    made = two_steps(steps_in(tmp_path))
    again = two_steps(steps_in(tmp_path), device="cuda")
    for found in (made, again):
        assert found.table.numbers.tolist() == [6, 8, 10, 12]
        assert not found.table.numbers.flags.writeable, "mapped, not kept"
        assert found.outcome == Facts(18)
        assert found.extra is None
    assert calls == ["make", "double on cpu"], "the device makes no difference"


@pytest.mark.parametrize(
    ("change", "name"), [({"start": 4}, "start was 3, is 4"), ({"k": 5}, "settings.k was 4, is 5")]
)
def test_other_arguments_are_refused_until_forced(
    change: dict[str, int], name: str, tmp_path: Path, calls: list[str]
) -> None:
    two_steps(steps_in(tmp_path))
    with pytest.raises(InputError, match="holds another run") as error:
        two_steps(steps_in(tmp_path), **change)  # type: ignore[arg-type]
    assert error.value.found == name
    assert "--force first" in str(error.value.fix)
    calls.clear()
    two_steps(steps_in(tmp_path, force="first"), **change)  # type: ignore[arg-type]
    assert calls == ["make", "double on cpu"]


def test_equal_artifacts_are_the_same_argument(tmp_path: Path, calls: list[str]) -> None:
    """An artifact counts by its arrays: one derived from a mapped one, too."""
    step = steps_in(tmp_path)
    first = step("first", make, 3, SearchSettings(k=4))
    step("second", double, dataclasses.replace(first.table))
    calls.clear()
    step = steps_in(tmp_path)
    first = step("first", make, 3, SearchSettings(k=4))
    step("second", double, first.table)
    assert calls == []
    changed = Table(np.array([3, 4, 5, 7]))
    with pytest.raises(InputError, match="holds another run"):
        steps_in(tmp_path)("second", double, changed)


def test_a_mapped_array_is_not_hashed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_steps(steps_in(tmp_path))
    monkeypatch.setattr(np, "ascontiguousarray", None)
    assert two_steps(steps_in(tmp_path)).outcome == Facts(18)


def test_another_version_of_a_function_is_another_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_steps(steps_in(tmp_path))
    monkeypatch.setattr(make, "version", 2, raising=False)
    with pytest.raises(InputError, match="another version of the program"):
        two_steps(steps_in(tmp_path))
    monkeypatch.undo()
    assert versioned(2)(lambda: None).version == 2  # type: ignore[attr-defined]


def test_a_step_that_is_computed_again_takes_those_after_it_along(tmp_path: Path, calls: list[str]) -> None:
    two_steps(steps_in(tmp_path))
    path = tmp_path / "01-table" / "numbers.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    calls.clear()
    two_steps(steps_in(tmp_path))
    assert calls == ["make", "double on cpu"]


def test_what_is_refused_changes_nothing(tmp_path: Path) -> None:
    two_steps(steps_in(tmp_path))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    begun: list[int] = []
    step = Steps(RunStore(tmp_path), NAMES, force="second", before_computing=lambda: begun.append(1))
    with pytest.raises(InputError, match="holds another run"):
        two_steps(step, start=9)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert not begun
    two_steps(Steps(RunStore(tmp_path), NAMES, force="first", before_computing=lambda: begun.append(1)))
    assert begun == [1], "once, before the first step"


def test_first_last_and_force(tmp_path: Path, calls: list[str]) -> None:
    with pytest.raises(InputError, match=r"no intact step first, which --from second needs"):
        two_steps(steps_in(tmp_path, first="second"))
    with pytest.raises(LastStepError):
        two_steps(steps_in(tmp_path, last="first"))
    assert calls == ["make"]
    assert list(RunStore(tmp_path).steps) == ["first"]
    with pytest.raises(InputError, match=r"no step is called 'fist'") as error:
        steps_in(tmp_path, force="fist")
    assert error.value.expected == "one of first, second, third"
    with pytest.raises(InputError, match="comes after"):
        steps_in(tmp_path, first="second", last="first")


def test_another_way_to_compute_a_step(tmp_path: Path, calls: list[str]) -> None:
    """What is computed instead has the fingerprint that the pipeline expects."""
    store = RunStore(tmp_path)
    store.update_manifest(made_by="test")
    made = TableResult(Table(np.array([1])), Facts(1))
    step = Steps(store, NAMES, overrides={"first": lambda start, settings: made})
    assert two_steps(step).table.numbers.tolist() == [2]
    assert two_steps(steps_in(tmp_path)).table.numbers.tolist() == [2]
    assert calls == ["double on cpu"]
    assert step.computed == ["first", "second"]


def test_a_work_folder_is_kept_for_the_same_arguments(tmp_path: Path) -> None:
    step = steps_in(tmp_path)
    first = step("first", make, 3, SearchSettings(k=4))
    work = step.work_folder("second")

    def dying(table: Table, seed: int = 0, *, work: Path) -> TableResult:
        left.append(sorted(path.name for path in work.iterdir()))
        (work / "checkpoint").write_text("x")
        raise KeyboardInterrupt

    left: list[list[str]] = []
    for seed in (0, 0, 1):
        with pytest.raises(KeyboardInterrupt):
            step("second", dying, first.table, seed, work=work)
    assert left == [["fingerprint"], ["checkpoint", "fingerprint"], ["fingerprint"]]
    step("second", double, first.table, 1, work=work)
    assert not work.exists()


def test_what_has_no_fingerprint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a object has no fingerprint"):
        steps_in(tmp_path)("first", make, object(), SearchSettings())  # type: ignore[arg-type]


def test_reuse_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="largegnn"):
        two_steps(steps_in(tmp_path))
        two_steps(steps_in(tmp_path))
    messages = [message.split(" in ")[0] for message in caplog.messages]
    assert messages == [
        *("first: started", "first: done", "second: started", "second: done"),
        *(f"first: reused from {tmp_path}", f"second: reused from {tmp_path}"),
    ]


def test_seeds_of_steps() -> None:
    assert derived_seed(0, "train") == derived_seed(0, "train") != derived_seed(0, "search")
    assert derived_seed(0, "train") != derived_seed(1, "train")
