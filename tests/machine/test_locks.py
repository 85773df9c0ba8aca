"""Test that one process at a time holds a lock, and that the lock of a killed process is released."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from largegnn.errors import InputError, StorageError
from largegnn.machine.locks import hold, hold_folder, hold_place

HOLDER = """
import sys, time
from pathlib import Path
from largegnn.machine.locks import hold
with hold(Path(sys.argv[1]), wait=False) as held:
    print(held, flush=True)
    time.sleep(60)
"""


def test_one_holder(tmp_path: Path) -> None:
    file = tmp_path / "new" / ".lock"
    with hold(file, wait=False) as first, hold(file, wait=False) as second:
        assert (first, second) == (True, False)
    with hold(file, wait=False) as third:
        assert third
    assert file.exists()


def test_an_error_inside_releases_the_lock(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="mine"), hold(tmp_path / ".lock", wait=False):
        raise RuntimeError("mine")
    with hold(tmp_path / ".lock", wait=False) as held:
        assert held


def test_the_lock_of_a_killed_process_is_released(tmp_path: Path) -> None:
    file = tmp_path / ".lock"
    other = subprocess.Popen([sys.executable, "-c", HOLDER, str(file)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        with hold(file, wait=False) as held:
            assert not held
        other.send_signal(signal.SIGKILL)
        other.wait()
        with hold(file, wait=True) as held:
            assert held
    finally:
        other.kill()
        other.communicate()


def test_a_waiting_thread_gets_the_lock_next(tmp_path: Path) -> None:
    file, order = tmp_path / ".lock", list[str]()

    def wait() -> None:
        with hold(file, wait=True):
            order.append("second")

    with hold(file, wait=False):
        waiter = threading.Thread(target=wait)
        waiter.start()
        time.sleep(0.2)
        order.append("first")
    waiter.join(10)
    assert order == ["first", "second"]


def test_folders_and_places_are_refused_to_others(tmp_path: Path) -> None:
    with hold_folder(tmp_path / "run"):
        with pytest.raises(StorageError, match=r"another process is working in .*run"), hold_folder(tmp_path / "run"):
            pass
        with hold_place(tmp_path / "run"), hold_place(tmp_path / "other"):
            with pytest.raises(StorageError, match="another process"), hold_place(tmp_path / "run"):
                pass
            assert not (tmp_path / "other").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"], "the lock file of a path is removed"
    for refuse in (hold_folder, hold_place):
        with pytest.raises(InputError, match="cannot be written"), refuse(Path("/proc/nowhere/run")):
            pass


def test_places_are_held_by_one_of_many(tmp_path: Path) -> None:
    """Each thread removes the lock file while it holds the lock; still no two threads are inside at the same time."""
    inside, max_inside, done = 0, 0, 0
    guard = threading.Lock()

    def work() -> None:
        nonlocal inside, max_inside, done
        count = 0
        while count < 20:
            try:
                with hold_place(tmp_path / "run"):
                    with guard:
                        inside += 1
                        max_inside = max(max_inside, inside)
                    time.sleep(0.0005)
                    with guard:
                        inside -= 1
                        done += 1
                count += 1
            except StorageError:
                time.sleep(0.0002)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert (max_inside, done) == (1, 80)
