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
# One process for all commands: what one imports shows under its name, and nothing is imported for the next.
PROGRAM = """
import sys
from largegnn.cli import main
for command in ("", *sys.argv[2:]):
    try:
        main([*command.split(), "--help"])
    except SystemExit as end:
        assert not end.code, (command, end.code)
    loaded = sorted(name for name in sys.argv[1].split(",") if name in sys.modules)
    if loaded:
        sys.exit(f"{command}: {loaded}")
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


def test_help_imports_nothing_heavy() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, ",".join(HEAVY), *COMMANDS], check=False, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("Usage: largegnn") == 1 + len(COMMANDS)
    assert ended.stderr == ""


def test_how_long_help_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """Half a second on a machine that does nothing else: said, not checked, as others may be at work here."""
    start = time.monotonic()
    largegnn("--help")
    seconds = time.monotonic() - start
    with capsys.disabled():
        sys.stdout.write(f"\nlargegnn --help: {seconds:.2f} s\n")
