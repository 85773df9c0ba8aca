"""Run folders to be damaged, the ways to damage a file of one, and what is done with it afterwards.

`finished_run` and `interrupted_run` are made by quick runs; nothing here knows which files a run folder has. `use_run`,
the check for the worker process, returns what a user gets, to be compared with what an undamaged folder gives.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.small_runs import QUICK, call, make_pair
from tests.fuzz.mutate import mutate
from tests.fuzz.tokens import FORMATS

__all__ = ["COMMANDS", "DAMAGES", "damage", "finished_run", "interrupted_run", "use_run"]

DAMAGES = ("flip", "truncate", "delete", "mutate")
# With divisions made beside the training and a checkpoint after every epoch, whose files are only there while it runs.
_LIVELY = [*QUICK, "--set", "train.repartition_every=1", "--set", "train.checkpoint_seconds=0", "--rounds", "1"]
_SETTINGS = [*_LIVELY, "--set", "rounds.epochs=2", "--set", "train.epochs=6"]
_KILLER = """
import logging, os, signal, sys
from largegnn.cli import main

class Killer(logging.Handler):
    def emit(self, record):
        if record.getMessage().startswith(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)

logging.getLogger("largegnn").addHandler(Killer())
main(sys.argv[2:])
"""


def finished_run(folder: Path) -> Path:
    """A run that came to its end."""
    call("align", make_pair(folder / "pair"), "--out", folder / "finished", *_SETTINGS)
    return folder / "finished"


def interrupted_run(folder: Path, moment: str) -> Path:
    """The same run, killed at the first message that begins so."""
    run = folder / f"interrupted-{moment.split(':', maxsplit=1)[0]}"
    command = [sys.executable, "-c", _KILLER, moment, "align", str(folder / "pair"), "--out", str(run), *_SETTINGS]
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    killed = subprocess.run(command, check=False, capture_output=True, text=True, env=alone, timeout=300)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    return run


def damage(rng: random.Random, path: Path, way: str) -> None:
    """Damage one file."""
    data = path.read_bytes()
    if way == "delete":
        path.unlink()
    elif way == "truncate":
        path.write_bytes(data[: rng.randrange(len(data))] if data else data)
    elif way == "flip" and data:
        at = rng.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :])
    elif way == "mutate":
        form = {".json": "json", ".toml": "toml"}.get(path.suffix, "archive")
        path.write_bytes(mutate(rng, data, [data], FORMATS[form]))


def use_run(run: str, command: str) -> Any:
    """What a command of `COMMANDS` gives."""
    return COMMANDS[command](Path(run))


def _evaluate(run: Path) -> Any:
    """The figures of a run."""
    return _without_costs(json.loads(_command("evaluate", str(run), "--json")))


def _export(run: Path) -> dict[str, str]:
    """The files that are exported, by their checksums."""
    out = run.with_name(f"{run.name}-exported")
    forms = [option for form in ("tsv", "sameas", "embeddings-npy") for option in ("--form", form)]
    _command("export", str(run), *forms, "--out", str(out))
    return _checksums(out)


def _resume(run: Path) -> dict[str, str]:
    """What is in a run folder for people to read, by its checksums."""
    _command("align", "--resume", "--out", str(run))
    return {name: value for name, value in _checksums(run).items() if name.endswith(".tsv")}


COMMANDS: dict[str, Callable[[Path], Any]] = {"evaluate": _evaluate, "export": _export, "resume": _resume}


def _command(*arguments: str) -> str:
    """What a command prints; ends as the command does, unless that is well."""
    import torch

    from largegnn.cli import main

    torch.set_num_threads(1)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            main(list(arguments))
    except SystemExit as end:
        if end.code:
            raise
    return printed.getvalue()


def _checksums(folder: Path) -> dict[str, str]:
    """The files of a folder by checksum; comments, which name the folder and the day, do not count."""
    sums = {}
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        data = b"".join(line for line in path.read_bytes().splitlines(keepends=True) if not line.startswith(b"#"))
        sums[path.name] = hashlib.sha256(data).hexdigest()
    return sums


def _without_costs(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_costs(inner) for key, inner in value.items() if "seconds" not in key and "memory" not in key
        }
    return value
