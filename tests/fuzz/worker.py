"""The process that tries inputs one after the other: `python -m tests.fuzz.worker CHECK`.

In: the address `module:function` of a check, and on standard input one JSON list of arguments a line. Out: one JSON
object a line: how the check ended. Once the first input, a valid one, has loaded whatever is needed, the address space
may grow by `ROOM_MB` and no more, files to `ROOM_MB` each; `judge`, which started this, sees what hangs or dies.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from largegnn.errors import LargeGNNError

__all__ = ["ROOM_MB"]

ROOM_MB = 1_000
# Bad input and a machine that refuses; a bug (1) and training diverged (4) are failures.
_REFUSALS = {2, 3}


def _try(check: Callable[..., Any], arguments: list[Any]) -> dict[str, Any]:
    """How one input ends: accepted (with what the check returned), refused, or failed."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return {"ended": "accepted", "result": check(*arguments)}
    except LargeGNNError as error:
        if error.exit_code in _REFUSALS:
            return {"ended": "refused", "detail": str(error)}
        return {"ended": "failed", "detail": f"exit code {error.exit_code}: {error}"}
    except SystemExit as end:
        text = said.getvalue()
        if end.code in (0, None):
            return {"ended": "accepted", "result": None}
        if end.code in _REFUSALS and "Traceback" not in text:
            return {"ended": "refused", "detail": text}
        return {"ended": "failed", "detail": f"exit code {end.code}: {text}"}
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  (a panic of a library in Rust is no Exception)
        return {"ended": "failed", "detail": traceback.format_exc()}


def _limit() -> None:
    """Allow the address space and each file this much more than now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    room = ROOM_MB << 20
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + room,) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def _answers() -> IO[str]:
    """Standard output as it was; from here on what anything else writes there goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def main() -> None:
    """Answer every line until there is none."""
    module, _, name = sys.argv[1].partition(":")
    check = getattr(importlib.import_module(module), name)
    answers = _answers()
    limited = False
    for line in sys.stdin:
        answer = _try(check, json.loads(line))
        if not limited:
            limited = True
            _limit()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
