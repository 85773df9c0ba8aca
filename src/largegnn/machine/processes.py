"""Run functions in one helper process, and end cleanly on Ctrl-C and SIGTERM.

In: functions that can be imported, with arguments that can be pickled. Out: futures of their results.

The helper is killed when the `with` ends, and on Linux by the kernel when its parent ends; elsewhere it ends after the
task it is at. It ignores Ctrl-C and SIGTERM, which its parent handles. Unlike those of `multiprocessing`, it never
imports the program's main script, which therefore needs no `if __name__ == "__main__"`; functions of that script cannot
be sent. If it fails or is killed, out of memory for example, the future has a `HelperError`, and the caller may do the
work itself; the next task starts a new helper if need be. Cost: starting one takes as long as importing the package.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType
from typing import Any, Self, TypeVar

from largegnn.errors import HelperError
from largegnn.machine.devices import spin_variables

__all__ = ["HelperProcess", "Interrupted", "install_signal_handlers"]

_Result = TypeVar("_Result")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_DEATH_OF_PARENT = 1  # PR_SET_PDEATHSIG
_PATIENCE = 1.0  # seconds in which a second signal is an echo of the first, as some launchers send
_START = "import sys; sys.path[:] = {path!r}; from largegnn.machine.processes import _serve; _serve({pid})"


class Interrupted(KeyboardInterrupt):
    """The program was interrupted by Ctrl-C or SIGTERM."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.signal_number = signal_number

    @property
    def exit_code(self) -> int:
        """The code a shell expects of a program ended by this signal: 130 or 143."""
        return 128 + self.signal_number


def install_signal_handlers() -> None:
    """Raise `Interrupted` in the main thread on Ctrl-C and SIGTERM; a second one, after a moment, ends all at once.

    Signals that the program was started to ignore, as background jobs are, stay ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    handler = _InterruptOnce()
    for number in _SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


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


class HelperProcess:
    """One process that computes what is submitted, in order; it is killed on leaving the `with`, or by `close`."""

    def __init__(self, name: str = "helper") -> None:
        """`name` is its purpose, for messages; the process starts with its first task."""
        self._name = name
        self._child: subprocess.Popen[bytes] | None = None
        self._guard, self._closed = threading.Lock(), False
        # The kernel kills a child with the thread that started it: this one lives as long as the helper.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name, initializer=_block_signals)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, function: Callable[..., _Result], *arguments: Any) -> Future[_Result]:
        """Call a function in the helper; the future has what it returns or raises, or a `HelperError`."""
        if self._closed:
            raise RuntimeError(f"the process for {self._name} was closed")
        return self._thread.submit(self._compute, pickle.dumps((function, arguments)))

    def close(self) -> None:
        """Kill the helper, whatever it is doing, and cancel what it has not begun."""
        with self._guard:
            self._closed = True
            if self._child is not None:
                self._child.kill()
        self._thread.shutdown(cancel_futures=True)
        self._discard()

    def _compute(self, task: bytes) -> Any:
        child = self._started()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            pickle.dump(task, child.stdin)
            child.stdin.flush()
            succeeded, value = pickle.loads(pickle.load(child.stdout))
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            raise HelperError(_ending(self._name, self._discard())) from error
        if not succeeded:
            failure = HelperError(f"the process for {self._name} failed: {value.splitlines()[-1]}")
            failure.add_note(value)
            raise failure
        return value

    def _started(self) -> subprocess.Popen[bytes]:
        with self._guard:
            if self._closed:
                raise HelperError(f"the process for {self._name} was closed")
            if self._child is None:
                path = [entry for entry in sys.path if isinstance(entry, str)]
                command = [sys.executable, "-c", _START.format(path=path, pid=os.getpid())]
                pipe, environment = subprocess.PIPE, os.environ | spin_variables()
                try:
                    self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment)
                except OSError as error:
                    raise HelperError(
                        f"no process for {self._name} can be started: {error.strerror or error}"
                    ) from error
            return self._child

    def _discard(self) -> int | None:
        """End the helper, if there is one; returns its exit code."""
        with self._guard:
            child, self._child = self._child, None
        if child is None:
            return None
        child.kill()
        code = child.wait()
        for pipe in (child.stdin, child.stdout):
            with contextlib.suppress(OSError):  # a closed pipe refuses what is still to be written
                assert pipe is not None
                pipe.close()
        return code


def _serve(parent: int) -> None:
    """Compute tasks from standard input in a helper process, until its parent is gone."""
    _die_with_parent(parent)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    tasks, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What a function prints must not get between the answers.
    with contextlib.suppress(OSError), open(os.devnull, "rb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
    with contextlib.suppress(OSError, EOFError):
        while True:
            answer = _answer(pickle.load(tasks))
            pickle.dump(answer, answers)
            answers.flush()
    os._exit(0)


def _answer(task: bytes) -> bytes:
    """The answer to one task, pickled: whether it succeeded, and its result or the traceback."""
    try:
        function, arguments = pickle.loads(task)
        return pickle.dumps((True, function(*arguments)))
    except BaseException:  # noqa: BLE001 - it is reported to the parent
        return pickle.dumps((False, traceback.format_exc()))


def _ending(name: str, code: int | None) -> str:
    if code is not None and code < 0:
        by = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        more = ", perhaps because memory ran out" if by == "SIGKILL" else ""
        return f"the process for {name} was ended by {by}{more}"
    return f"the process for {name} ended with exit code {code} before its work was done"


def _die_with_parent(parent: int) -> None:
    """Let Linux kill this process when its parent ends: a loop that holds the interpreter notices no closed pipe."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_DEATH_OF_PARENT, signal.SIGKILL)
        if os.getppid() != parent:  # it was gone before
            os._exit(1)


def _block_signals() -> None:
    """Keep signals from this thread, and from a process it starts until that one has set its handlers."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
