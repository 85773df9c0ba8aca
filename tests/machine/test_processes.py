"""Test with real processes and signals that helpers compute, fail and end with their parents."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

import largegnn
from largegnn.errors import HelperError, InputError
from largegnn.machine.processes import HelperProcess, Interrupted, install_signal_handlers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


def add(first: int, second: int) -> int:
    return first + second


def own_pid() -> int:
    return os.getpid()


def talk() -> str:
    os.write(1, b"this goes to standard error\n")
    sys.stdout.write("this too\n")
    return "quiet"


def sleep(seconds: float, file: str | None = None) -> None:
    if file is not None:
        Path(file).write_text(str(os.getpid()))
    time.sleep(seconds)


def refuse() -> None:
    raise InputError("a bad file", where="here", fix="repair it")


def answer_unpicklable() -> Any:
    return threading.Lock()


def hold_the_interpreter(seconds: int) -> None:
    """Hold the GIL, as METIS does: no other thread of the process runs."""
    ctypes.PyDLL(None).sleep(seconds)


def wait_until(true: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


@pytest.fixture
def helper() -> Iterator[HelperProcess]:
    with HelperProcess("adding") as process:
        yield process


def test_tasks_are_computed_in_another_process_in_order(
    helper: HelperProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    futures = [helper.submit(add, number, 1) for number in range(20)]
    assert [future.result(30) for future in futures] == list(range(1, 21))
    pids = {helper.submit(own_pid).result(30) for _ in range(3)}
    assert len(pids) == 1
    assert os.getpid() not in pids
    assert helper.submit(talk).result(30) == "quiet"
    assert len(helper.submit(bytes, 3_000_000).result(30)) == 3_000_000
    assert helper.submit(len, bytes(3_000_000)).result(30) == 3_000_000
    assert capfd.readouterr().out == ""


def test_an_error_has_its_traceback(helper: HelperProcess) -> None:
    with pytest.raises(HelperError, match="the process for adding failed: ") as caught:
        helper.submit(refuse).result(30)
    assert "a bad file" in "".join(caught.value.__notes__)
    assert "in refuse" in "".join(caught.value.__notes__)
    for function, arguments in ((answer_unpicklable, ()), (sys.exit, (3,))):
        with pytest.raises(HelperError, match=r"TypeError|SystemExit"):
            helper.submit(function, *arguments).result(30)
    assert helper.submit(add, 1, 1).result(30) == 2, "the helper is still usable"


def test_a_killed_helper_is_a_clear_error_and_a_new_one_is_started(helper: HelperProcess) -> None:
    pid = helper.submit(own_pid).result(30)
    waiting, next_one = helper.submit(sleep, 60), helper.submit(add, 1, 1)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(HelperError, match="process for adding was ended by SIGKILL, perhaps because memory ran out"):
        waiting.result(30)
    assert next_one.result(30) == 2
    with pytest.raises(HelperError, match="exit code 7"):
        helper.submit(os._exit, 7).result(30)
    assert helper.submit(own_pid).result(30) != pid


def test_leaving_kills_within_a_second(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    with HelperProcess() as helper:
        running, waiting = helper.submit(sleep, 60, str(file)), helper.submit(add, 1, 1)
        assert wait_until(lambda: file.exists() and bool(file.read_text()), 30)
        start = time.monotonic()
    assert time.monotonic() - start < 1
    with pytest.raises(ProcessLookupError):
        os.kill(int(file.read_text()), 0)
    with pytest.raises(HelperError):
        running.result(1)
    with pytest.raises((HelperError, CancelledError)):
        waiting.result(1)
    with pytest.raises(RuntimeError, match="closed"):
        helper.submit(add, 1, 1)
    helper.close()


def test_a_helper_that_was_never_used_can_be_closed() -> None:
    with HelperProcess():
        pass


def test_a_helper_outlives_the_thread_that_first_used_it(helper: HelperProcess) -> None:
    """Linux kills a child when the thread that started it ends."""
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(helper.submit(own_pid).result(30)))
    thread.start()
    thread.join()
    time.sleep(0.1)
    assert helper.submit(own_pid).result(30) == found[0]


# A script without `if __name__ == "__main__"`, with a function that cannot be sent.
SCRIPT = """
import os, sys, time
from pathlib import Path
from largegnn.errors import HelperError
from largegnn.machine.processes import HelperProcess, Interrupted, install_signal_handlers
from tests.machine.test_processes import hold_the_interpreter, own_pid, sleep

folder, mode = Path(sys.argv[1]), sys.argv[2]
with (folder / "starts").open("a") as file:
    file.write("started\\n")
def mine():
    return 7

try:
    install_signal_handlers()
    with HelperProcess() as helper:
        if mode == "mine":
            try:
                helper.submit(mine).result()
            except HelperError as error:
                print("refused", error)
        elif mode == "early":
            helper.submit(sleep, 60)
            (folder / "ready").write_text("0")
            time.sleep(60)
        else:
            (folder / "ready").write_text(str(helper.submit(own_pid).result()))
            busy = helper.submit(hold_the_interpreter if mode == "deaf" else sleep, 60)
            time.sleep(0.2)
            busy.result() if mode == "waiting" else time.sleep(60)
except Interrupted as interrupted:
    print("interrupted by", interrupted, flush=True)
    sys.exit(interrupted.exit_code)
"""


@contextlib.contextmanager
def program(folder: Path, mode: str) -> Iterator[subprocess.Popen[str]]:
    """The script in a process group of its own, once it is ready."""
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(folder / "script.py"), str(folder), mode]
    folders = Path(__file__).parents[2], Path(largegnn.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))}
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True, cwd=folder
    )
    try:
        if mode != "mine":
            assert wait_until(lambda: (folder / "ready").exists() and bool((folder / "ready").read_text()), 60)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def members(group: int) -> set[int]:
    """The processes of a group that have not ended."""
    listed = subprocess.run(["ps", "-eo", "pid=,pgid=,stat="], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return {int(row[0]) for row in rows if int(row[1]) == group and not row[2].startswith("Z")}


@pytest.mark.parametrize("mode", ["waiting", "busy", "deaf", "early"])
def test_a_killed_parent_leaves_no_child(tmp_path: Path, mode: str) -> None:
    with program(tmp_path, mode) as process:
        if mode == "early":
            assert wait_until(lambda: len(members(process.pid)) == 2, 10)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert wait_until(lambda: not members(process.pid), 2)


@pytest.mark.parametrize("mode", ["waiting", "busy", "deaf", "early"])
@pytest.mark.parametrize(("number", "whole_group"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_signal_ends_all_without_a_traceback(
    tmp_path: Path, mode: str, number: signal.Signals, whole_group: bool
) -> None:
    with program(tmp_path, mode) as process:
        (os.killpg if whole_group else os.kill)(process.pid, number)
        out, errors = process.communicate(timeout=20)
        assert process.returncode == 128 + number
        assert out == f"interrupted by {number.name}\n"
        assert errors == ""
        assert wait_until(lambda: not members(process.pid), 2)


def test_the_main_script_is_not_run_again(tmp_path: Path) -> None:
    with program(tmp_path, "mine") as process:
        out, errors = process.communicate(timeout=60)
    assert out.startswith("refused the process for helper failed: AttributeError")
    assert errors == ""
    assert (tmp_path / "starts").read_text() == "started\n"


TWICE = """
import signal, sys, time
from largegnn.machine.processes import Interrupted, install_signal_handlers
install_signal_handlers()
try:
    print("ready", flush=True)
    time.sleep(60)
except Interrupted:
    print("cleaning up", flush=True)
    time.sleep(60)
"""


def test_a_second_signal_ends_the_process_but_a_repetition_does_not(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", TWICE], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "cleaning up\n"
        process.send_signal(signal.SIGINT)
        time.sleep(1.2)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == -signal.SIGTERM


def test_ignored_signals_stay_ignored_and_only_the_main_thread_sets_handlers() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        thread = threading.Thread(target=install_signal_handlers)
        thread.start()
        thread.join()
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        install_signal_handlers()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        with pytest.raises(Interrupted) as caught:
            signal.raise_signal(signal.SIGTERM)
        assert caught.value.exit_code == 143
        assert isinstance(caught.value, KeyboardInterrupt)
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
            signal.signal(number, handler)
