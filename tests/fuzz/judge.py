"""Inputs judged: each must be taken, or refused in words, within bounded time and memory.

In: the address of a check (`module:function`, see `checks.py`) and inputs, each a list of its arguments. Out: one
`Outcome` an input; an input that ends in a traceback, a signal, a hang or beyond its memory has failed.
Many inputs share one worker process, since starting one takes seconds; each worker is given a valid input first, with
which everything is loaded before memory is bounded. A worker that dies or hangs is replaced, and the input it had is
the one to blame. `require` turns failures into one assertion, and keeps the inputs in `KEPT`.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from tests.fuzz.seed import SEED

__all__ = ["KEPT", "SECONDS", "Judge", "Outcome", "Trial", "require"]

# Of the processor, so that a busy machine makes no difference; a process that only waits is given longer.
SECONDS = 20.0
_WAIT_SECONDS = 180.0
_ROOT = Path(__file__).parents[2]
KEPT = _ROOT / ".fuzz"


@dataclass(frozen=True)
class Trial:
    """An input: a name that says how to make it again, the arguments of its check, and the file or folder to keep."""

    name: str
    arguments: Sequence[Any]
    path: Path | None = None


@dataclass(frozen=True)
class Outcome:
    """How a trial ended: `accepted`, `refused` or `failed`; `result` is what the check returned."""

    trial: Trial
    ended: str
    detail: str = ""
    result: Any = None
    seconds: float = 0.0


class _Worker:
    """A process that answers one line with one line."""

    def __init__(self, check: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.worker", check],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=_ROOT,
            text=True,
        )
        self.answers: queue.Queue[str] = queue.Queue()
        self.errors: list[str] = []
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.threads = [
            threading.Thread(target=self._pass_on, args=(self.process.stdout,), daemon=True),
            threading.Thread(target=self._note, args=(self.process.stderr,), daemon=True),
        ]
        for thread in self.threads:
            thread.start()

    def _pass_on(self, stream: IO[str]) -> None:
        for line in stream:
            self.answers.put(line)
        self.answers.put("")

    def _note(self, stream: IO[str]) -> None:
        for line in stream:
            self.errors.append(line)
            del self.errors[:-40]

    def ask(self, trial: Trial, limit: float = SECONDS) -> Outcome:
        """Try one input, for at most `limit` seconds."""
        began, used = time.monotonic(), self._processor_seconds()
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(list(trial.arguments)) + "\n")
            self.process.stdin.flush()
            line = self._answer(began, used, limit)
        except BrokenPipeError:
            line = ""
        seconds = self._processor_seconds() - used
        if line is None:
            return Outcome(trial, "failed", f"hangs: no answer after {seconds:.0f} s", seconds=seconds)
        if not line:
            return Outcome(trial, "failed", self._last_words(), seconds=seconds)
        answer = json.loads(line)
        return Outcome(trial, answer["ended"], answer.get("detail", ""), answer.get("result"), seconds)

    def _answer(self, began: float, used: float, limit: float) -> str | None:
        """The next answer: None if there is none in time, an empty one if the process has ended."""
        while self._processor_seconds() - used < limit and time.monotonic() - began < _WAIT_SECONDS:
            with contextlib.suppress(queue.Empty):
                return self.answers.get(timeout=0.5)
        return None

    def _processor_seconds(self) -> float:
        """What the process has used of the processor so far."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _last_words(self) -> str:
        code = self.process.wait()
        for thread in self.threads:
            thread.join(5)
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"the process died: {name}\n{''.join(self.errors)}"

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for thread in self.threads:
            thread.join(5)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()


class Judge:
    """Tries inputs with one check, in one worker process as long as that lives; `valid` are arguments to begin with."""

    def __init__(self, check: str, valid: Sequence[Any]) -> None:
        self.check, self.valid = check, valid
        self.worker: _Worker | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._dismiss()

    def ask(self, trial: Trial) -> Outcome:
        """Try one input."""
        if self.worker is None:
            self.worker = _Worker(self.check)
            first = self.worker.ask(Trial("a valid input", self.valid), _WAIT_SECONDS)
            assert first.ended == "accepted", f"a valid input must be accepted: {first}"
        outcome = self.worker.ask(trial)
        if outcome.ended == "failed":
            # The worker is dead, hangs, or may be left in a bad state by a lack of memory.
            self._dismiss()
        return outcome

    def ask_all(self, trials: Iterable[Trial]) -> Iterator[Outcome]:
        """Try every input in turn; a trial may be undone when the next one is asked for."""
        return map(self.ask, trials)

    def _dismiss(self) -> None:
        if self.worker is not None:
            self.worker.end()
        self.worker = None


def require(outcomes: Iterable[Outcome], test: str) -> list[Outcome]:
    """All outcomes; an assertion with the failed ones, whose inputs are copied to a folder, if there are any."""
    ended = []
    failed = []
    for outcome in outcomes:
        ended.append(outcome)
        if outcome.ended == "failed":
            failed.append(f"{outcome.trial.name} ({_keep(outcome, test)})\n{_shortened(outcome.detail)}")
    assert not failed, f"{len(failed)} of {len(ended)} inputs failed, LARGEGNN_FUZZ_SEED={SEED}\n" + "\n".join(
        failed[:10]
    )
    return ended


def _keep(outcome: Outcome, test: str) -> Path:
    """Copy an input, with a file beside it that says why."""
    kept, source = KEPT / test / f"{SEED}-{outcome.trial.name}", outcome.trial.path
    kept.parent.mkdir(parents=True, exist_ok=True)
    if source is None or not source.exists():
        kept.write_text(json.dumps(list(outcome.trial.arguments)), encoding="utf-8")
    elif source.is_dir():
        shutil.copytree(source, kept, dirs_exist_ok=True, symlinks=True)
    else:
        shutil.copyfile(source, kept)
    kept.with_name(kept.name + ".why").write_text(outcome.detail, encoding="utf-8")
    return kept


def _shortened(text: str, most: int = 1_500) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}\n ...\n{text[-most // 2 :]}"
