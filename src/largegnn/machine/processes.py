"""A process beside the program's own, and what becomes of both when one of them is interrupted or killed.

In: functions that can be imported, with arguments that can be pickled. Out: futures of what they return.

A helper never outlives its parent: on Linux the kernel kills it, elsewhere (and there too) it ends when the pipe its
tasks come from is closed. It ignores Ctrl-C and SIGTERM: the parent decides. It imports what the function needs and
never the program's main script, which therefore needs no `if __name__ == "__main__"`; functions of that script cannot
be sent. Where a helper is killed, out of memory say, the future has a `HelperError`, and the caller may do the work
itself; the next task gets a new helper.

`install_signal_handlers` makes SIGTERM and Ctrl-C an `Interrupted` exception in the main thread, so that everything
is cleaned up on the way out. Cost: starting a helper takes as long as importing the package.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from types import FrameType
from typing import IO, Any, Self, TypeVar

from largegnn.errors import LargeGNNError

__all__ = ["HelperError", "HelperProcess", "Interrupted", "Task", "install_signal_handlers"]

_Result = TypeVar("_Result")
Task = Future
_SIZE_BYTES = 8
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_DEATH_OF_PARENT = 1  # PR_SET_PDEATHSIG
_PATIENCE = 1.0  # seconds in which a second signal is an echo of the first, as some launchers send
_START = "import sys; sys.path[:] = {path!r}; from largegnn.machine.processes import _serve; _serve({pid})"


class HelperError(LargeGNNError, ChildProcessError):
    """A helper process ended before its work was done, or could not be given it; the caller may do it itself."""

    exit_code = 3


class Interrupted(KeyboardInterrupt):
    """The program was asked to end, by Ctrl-C or SIGTERM."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.signal_number = signal_number

    @property
    def exit_code(self) -> int:
        """What a shell expects of a program ended by this signal: 130 or 143."""
        return 128 + self.signal_number


def install_signal_handlers() -> None:
    """Raise `Interrupted` in the main thread on Ctrl-C and SIGTERM; a second one, after a moment, ends all at once.

    What the program was started to ignore, as background jobs are, it goes on ignoring.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    handler = _InterruptOnce()
    for number in _SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


class HelperProcess:
    """One process that does what it is given, in order; it is killed on leaving the `with`, or by `close`."""

    def __init__(self, name: str = "helper") -> None:
        """`name` says in messages what it is for; the process starts with its first task."""
        self._name = name
        self._tasks: queue.SimpleQueue[tuple[Task[Any], bytes] | None] = queue.SimpleQueue()
        self._child: subprocess.Popen[bytes] | None = None
        self._guard, self._closed = threading.Lock(), False
        # The kernel kills a child with the thread that started it: that one must live as long as the helper.
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, function: Callable[..., _Result], *arguments: Any) -> Task[_Result]:
        """Have a function called in the helper; the future has what it returns or raises, or a `HelperError`."""
        if self._closed:
            raise RuntimeError(f"the process for {self._name} was closed")
        future: Task[_Result] = Future()
        self._tasks.put((future, pickle.dumps((function, arguments))))
        return future

    def close(self) -> None:
        """Kill the helper, whatever it is doing, and cancel what it has not begun."""
        with self._guard:
            self._closed = True
            if self._child is not None:
                self._child.kill()
        with contextlib.suppress(queue.Empty):
            while True:
                task = self._tasks.get_nowait()
                if task is not None:
                    task[0].cancel()
        self._tasks.put(None)
        self._thread.join()

    def _work(self) -> None:
        _block_signals()
        while (task := self._tasks.get()) is not None:
            future, payload = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                succeeded, value = self._ask(payload)
            except BaseException as error:  # noqa: BLE001 - whoever waits for the future must hear of it
                succeeded, value = False, error
            if succeeded:
                future.set_result(value)
            else:
                future.set_exception(value)
            del task, future, payload, value
        self._discard()

    def _ask(self, payload: bytes) -> tuple[bool, Any]:
        child = self._started()
        try:
            _send(child.stdin, payload)
            return _received(child.stdout)
        except (OSError, EOFError) as error:
            raise HelperError(_ending(self._name, self._discard())) from error

    def _started(self) -> subprocess.Popen[bytes]:
        with self._guard:
            if self._closed:
                raise HelperError(f"the process for {self._name} was closed")
            if self._child is None:
                path = [entry for entry in sys.path if isinstance(entry, str)]
                command = [sys.executable, "-c", _START.format(path=path, pid=os.getpid())]
                try:
                    self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                except OSError as error:
                    raise HelperError(
                        f"no process for {self._name} can be started: {error.strerror or error}"
                    ) from error
            return self._child

    def _discard(self) -> int | None:
        """Make sure that the helper has ended; returns its exit code."""
        with self._guard:
            child, self._child = self._child, None
        if child is None:
            return None
        child.kill()
        code = child.wait()
        for pipe in (child.stdin, child.stdout):
            with contextlib.suppress(OSError):  # a pipe nobody reads refuses what is still to be written
                assert pipe is not None
                pipe.close()
        return code


class _InterruptOnce:
    """A handler of signals that raises once."""

    def __init__(self) -> None:
        self._first: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = now
            raise Interrupted(number)
        if now - self._first > _PATIENCE:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)


def _serve(parent: int) -> None:
    """What a helper process does: tasks from its input, answers to its output, until its parent is gone."""
    _die_with_parent(parent)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    _unblock_signals()
    tasks, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What a function prints must not get between the answers.
    with contextlib.suppress(OSError), open(os.devnull, "rb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
    received: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_tasks, args=(tasks, received), daemon=True).start()
    while True:
        _send(answers, _answer(received.get()))


def _read_tasks(tasks: IO[bytes], received: queue.SimpleQueue[bytes]) -> None:
    with contextlib.suppress(OSError):
        while size := tasks.read(_SIZE_BYTES):
            received.put(tasks.read(int.from_bytes(size, "little")))
    os._exit(0)


def _answer(payload: bytes) -> bytes:
    """The answer to one task: whether it succeeded, and its result or exception."""
    try:
        function, arguments = pickle.loads(payload)
    except Exception as error:  # noqa: BLE001 - importing may fail in any way
        return pickle.dumps((False, HelperError(f"another process cannot be given this work: {error}")))
    try:
        return pickle.dumps((True, function(*arguments)))
    except BaseException as error:  # noqa: BLE001 - it is raised in the parent
        error.add_note(f"In the helper process:\n{traceback.format_exc()}")
        try:
            answer = pickle.dumps((False, error))
            pickle.loads(answer)
        except Exception:  # noqa: BLE001 - an exception that is more than its arguments
            return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
        return answer


def _send(pipe: IO[bytes] | None, data: bytes) -> None:
    assert pipe is not None
    pipe.write(len(data).to_bytes(_SIZE_BYTES, "little") + data)
    pipe.flush()


def _received(pipe: IO[bytes] | None) -> tuple[bool, Any]:
    assert pipe is not None
    size = int.from_bytes(pipe.read(_SIZE_BYTES), "little")
    data = pipe.read(size)
    if not size or len(data) < size:
        raise EOFError
    succeeded, value = pickle.loads(data)
    return succeeded, value


def _ending(name: str, code: int | None) -> str:
    if code is not None and code < 0:
        by = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        more = ", perhaps because memory ran out" if by == "SIGKILL" else ""
        return f"the process for {name} was ended by {by}{more}"
    return f"the process for {name} ended with exit code {code} before its work was done"


def _die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when its parent ends: a loop that holds the interpreter sees no closed pipe."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_DEATH_OF_PARENT, signal.SIGKILL)
        if os.getppid() != parent:  # it was gone before we asked
            os._exit(1)


def _block_signals() -> None:
    """Keep signals from this thread, and from a process it starts until that one says how it takes them."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)


def _unblock_signals() -> None:
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
