"""Help is there at once: every command has it, and nothing heavy is imported for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from largegnn.cli.app import COMMANDS
from tests.cli.small_runs import call

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


def test_the_commands_are_listed_with_the_first_line_of_their_help() -> None:
    listed = " ".join(call("--help").stdout.split())
    for command, (_, line) in COMMANDS.items():
        assert f" {command} {line}" in listed
        help_of_command = " ".join(call(command, "--help").stdout.split())
        assert line.rstrip(".") in help_of_command


def test_help_imports_nothing_heavy() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, ",".join(HEAVY), *COMMANDS], check=False, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("Usage: largegnn") == 1 + len(COMMANDS)
    assert ended.stderr == ""


def test_the_help_of_the_program_starts_at_once() -> None:
    """It takes 0.05 s on a quiet machine; what would take longer is not imported."""
    program = (
        "import sys\n"
        "from largegnn.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "slow = {'numpy', 'pydantic', 'rich', 'largegnn.settings', 'largegnn.artifacts'}\n"
        "sys.exit(str(slow & set(sys.modules)) if slow & set(sys.modules) else 0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
