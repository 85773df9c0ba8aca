"""Help is there at once: every command has it, and nothing heavy is imported for it."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
import typer.main

from largegnn.cli.app import app
from tests.cli.small_runs import call
from tests.cli.test_cli import largegnn

COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
HEAVY = ("torch", "polars", "scipy", "numba", "altair", "pyoxigraph", "pymetis", "faiss", "pyarrow", "sklearn")
PROGRAM = """
import sys
from largegnn.cli import main
try:
    main(sys.argv[2:])
except SystemExit as end:
    assert not end.code, end.code
loaded = sorted(name for name in sys.argv[1].split(",") if name in sys.modules)
sys.stderr.write(",".join(loaded))
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    shown = call(command, "--help").stdout
    assert f"Usage: largegnn {command}" in shown
    assert "--help" in shown
    assert call(command, "-h").stdout == shown


def test_the_commands_are_listed_with_a_sentence_each() -> None:
    shown = call("--help").stdout
    for command in COMMANDS:
        line = next(line for line in shown.splitlines() if f" {command} " in line)
        assert len(line.split(command, 1)[1].strip(" │")) > 20, "each says what it does"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_imports_nothing_heavy(command: str) -> None:
    words = [*command.split(), "--help"]
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, ",".join(HEAVY), *words], check=True, capture_output=True, text=True
    )
    assert "Usage" in ended.stdout
    assert ended.stderr == "", "these were imported"


def test_how_long_help_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """Half a second on a machine that does nothing else: said, not checked, as others may be at work here."""
    start = time.monotonic()
    largegnn("--help")
    seconds = time.monotonic() - start
    with capsys.disabled():
        sys.stdout.write(f"\nlargegnn --help: {seconds:.2f} s\n")
