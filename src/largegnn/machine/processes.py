"""Run functions in one helper process, and end cleanly on Ctrl-C and SIGTERM.

In: functions that can be imported, with arguments that can be pickled. Out: futures of their results.
The helper is killed at the end of the `with` block, and on Linux by the kernel when its parent ends; on other systems
it then ends after its current task. It ignores Ctrl-C and SIGTERM, which its parent handles. Unlike a process of
`multiprocessing`, it never imports the main script, which therefore needs no `if __name__ == "__main__"`; functions of
that script cannot be sent. If the helper fails or is killed, for example because memory ran out, the future has a
`HelperError`, and the caller may do the work itself; the next task starts a new helper.
Cost: starting a helper takes as long as importing the package.
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
_PR_SET_PDEATHSIG = 1  # the number of this option of prctl
_ECHO_SECONDS = 1.0  # within this time a second signal is taken for a repetition, as some launchers send it
_START = "import sys; sys.path[:] = {path!r}; from largegnn.machine.processes import _serve; _serve({pid})"


class Interrupted(KeyboardInterrupt):
    """The program was interrupted by Ctrl-C or SIGTERM."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.signal_number = signal_number

    @property
    def exit_code(self) -> int:
        """The exit code that a shell expects after this signal: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + self.signal_number


def install_signal_handlers() -> None:
    """Raise `Interrupted` in the main thread on Ctrl-C and SIGTERM; a second signal, a second later, ends the process.

    A signal that was ignored when the program started, as in background jobs, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    handler = _InterruptOnce()
    for number in _SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


class _InterruptOnce:
    """A signal handler that raises `Interrupted` at the first signal."""

    def __init__(self) -> None:
        self._first: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = now
            raise Interrupted(number)
        if now - self._first > _ECHO_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)


class HelperProcess:
    """One process that calls the submitted functions in order; the end of the `with` block or `close` kills it."""

    def __init__(self, name: str = "helper") -> None:
        """`name` is the purpose of the process, for messages; it starts with its first task."""
        self._name = name
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()  # for the two attributes `_child` and `_closed`
        self._closed = False
        # The kernel kills a child when the thread that started it ends; this thread lives as long as the helper.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name, initializer=_block_signals)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, function: Callable[..., _Result], *arguments: Any) -> Future[_Result]:
        """Call a function in the helper; the future has its result, or a `HelperError` if it failed."""
        if self._closed:
            raise RuntimeError(f"the process for {self._name} was closed")
        return self._thread.submit(self._compute, pickle.dumps((function, arguments)))

    def close(self) -> None:
        """Kill the helper, even in the middle of a task, and cancel the tasks that it has not begun."""
        with self._lock:
            self._closed = True
            if self._child is not None:
                self._child.kill()
        self._thread.shutdown(cancel_futures=True)
        self._discard()

    def _compute(self, task: bytes) -> Any:
        """Send a pickled task to the helper, and wait for its answer."""
        child = self._started()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            pickle.dump(task, child.stdin)
            child.stdin.flush()
            succeeded, value = pickle.loads(pickle.load(child.stdout))
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            raise HelperError(_end_message(self._name, self._discard())) from error
        if not succeeded:
            failure = HelperError(f"the process for {self._name} failed: {value.splitlines()[-1]}")
            failure.add_note(value)
            raise failure
        return value

    def _started(self) -> subprocess.Popen[bytes]:
        """The helper process, which is started if it is not running."""
        with self._lock:
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
        """Kill the helper if there is one; returns its exit code."""
        with self._lock:
            child, self._child = self._child, None
        if child is None:
            return None
        child.kill()
        code = child.wait()
        for pipe in (child.stdin, child.stdout):
            with contextlib.suppress(OSError):  # bytes that are still buffered cannot be written to a closed pipe
                assert pipe is not None
                pipe.close()
        return code


def _serve(parent: int) -> None:
    """Compute the tasks that arrive on standard input of a helper process, until its parent has ended."""
    _die_with_parent(parent)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    tasks, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # The output of functions must not be mixed with the answers, so it goes to standard error.
    with contextlib.suppress(OSError), open(os.devnull, "rb") as null:  # noqa: PTH123
        os.dup2(null.fileno(), 0)
        os.dup2(2, 1)
    with contextlib.suppress(OSError, EOFError):
        while True:
            answer = _answer(pickle.load(tasks))
            pickle.dump(answer, answers)
            answers.flush()
    os._exit(0)


def _answer(task: bytes) -> bytes:
    """Compute one pickled task; the pickled answer is whether it succeeded, and its result or the traceback."""
    try:
        function, arguments = pickle.loads(task)
        return pickle.dumps((True, function(*arguments)))
    except BaseException:  # noqa: BLE001 - the parent reports it
        return pickle.dumps((False, traceback.format_exc()))


def _end_message(name: str, code: int | None) -> str:
    """Say how a helper ended before its answer; a negative exit code is the number of a signal."""
    if code is not None and code < 0:
        signal_name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        reason = ", perhaps because memory ran out" if signal_name == "SIGKILL" else ""
        return f"the process for {name} was ended by {signal_name}{reason}"
    return f"the process for {name} ended with exit code {code} before its work was done"


def _die_with_parent(parent: int) -> None:
    """Let Linux kill this process when its parent ends: code that holds the GIL would not notice the closed pipe."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent had ended before the call
            os._exit(1)


def _block_signals() -> None:
    """Block signals in this thread, and in a process that it starts until that process has set its handlers."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
