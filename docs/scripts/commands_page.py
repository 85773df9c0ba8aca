"""Write `docs/reference/commands.md` from the command line itself.

In: the commands with their arguments, options and help. Out: a page with one section for each command. An option that
three commands or more share is described once, at the top.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from largegnn.cli.app import app

PAGE = Path(__file__).parents[1] / "reference" / "commands.md"
HEAD = """# Commands

`make docs` writes this page from the program. `largegnn COMMAND --help` shows the options that most people need,
`--help-all` all of them.

Progress and log go to standard error, tables and JSON to standard output, results to files. Exit codes: 0 done, 2 bad
input, 3 out of memory or disk, or a folder in use, 4 training failed, 128 + n ended by signal n (130: interrupted).
"""
SHARED = 3  # commands
OF_SETTING = re.compile(r"\s*\((?:[a-z_]+\.)?[a-z_]+: (?:[^()]|\([^()]*\))*\)\s*$")
Row = tuple[str, str]


def render() -> str:
    """Return the page as it has to be."""
    group: Any = typer.main.get_command(app)
    context = typer.Context(group, info_name="largegnn")
    commands = dict(_commands(group, context))
    rows = {name: _rows(command, inner) for name, (command, inner) in commands.items()}
    counts = Counter(row for found in rows.values() for row in found if row[0].startswith("-"))
    shared = [row for row, count in counts.items() if count >= SHARED]
    blocks = [HEAD, "## Shared options\n\n" + _table(_rows(group, context) + shared)]
    for name, (command, inner) in commands.items():
        usage = command.get_usage(inner).removeprefix("Usage: ")
        own = [row for row in rows[name] if row not in shared]
        blocks.append(f"## {name}\n\n{_text(command.help)}\n\n```\n{usage}\n```")
        blocks += [_table(own)] if own else []
        others = ", ".join(f"`{_long(row[0])}`" for row in rows[name] if row in shared)
        blocks += [f"Shared: {others}."] if others else []
    return "\n\n".join(block.strip() for block in blocks) + "\n"


def _commands(group: Any, context: typer.Context) -> Iterator[tuple[str, tuple[Any, typer.Context]]]:
    """Every command by its full name, those of groups among them."""
    for name, command in group.commands.items():
        inner = typer.Context(command, info_name=name, parent=context)
        if hasattr(command, "commands"):
            yield from ((f"{name} {below}", found) for below, found in _commands(command, inner))
        else:
            yield name, (command, inner)


def _rows(command: Any, context: typer.Context) -> list[Row]:
    """Name and help of each parameter, those that `--help` hides among them."""
    found = []
    for parameter in command.get_params(context):
        hidden, parameter.hidden = getattr(parameter, "hidden", False), False
        record = parameter.get_help_record(context)
        parameter.hidden = hidden
        if record is not None and "--help" not in parameter.opts and "--help-all" not in parameter.opts:
            found.append((record[0], OF_SETTING.sub("", _text(record[1]))))
    return found


def _table(rows: list[Row]) -> str:
    lines = [f"| `{name}` | {_cell(text)} |" for name, text in rows]
    return "\n".join(["| option | meaning |", "|---|---|", *lines])


def _long(name: str) -> str:
    """The long form of an option."""
    return next(word for word in re.split(r"[ ,/]+", name) if word.startswith("--"))


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("*", r"\*")


def _text(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
