"""`docs/reference/commands.md` from the command line itself: `commands_page.py`.

In: the commands with their arguments, options and help. Out: a page with one section for each command.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from largegnn.cli.app import app

PAGE = Path(__file__).parents[1] / "reference" / "commands.md"
HEAD = """# Commands

Made from the program by `make docs`: `largegnn COMMAND --help` says the same.

Progress and log go to standard error, tables and JSON to standard output, results to files. Exit codes: 0 done, 2 bad
input, 3 the machine refuses (disk, memory, a folder in use), 4 training fails, 128 + n ended by signal n.
"""


def render() -> str:
    """The page as it has to be."""
    group: Any = typer.main.get_command(app)
    context = typer.Context(group, info_name="largegnn")
    blocks = [HEAD, "| command | what it does |\n|---|---|"]
    commands = dict(_commands(group, context))
    blocks[-1] += "".join(
        f"\n| [`{name}`](#{name.replace(' ', '-')}) | {_first(one.help)} |" for name, (one, _) in commands.items()
    )
    blocks.append("Before the command:\n\n" + _table(group, context))
    for name, (command, inner) in commands.items():
        usage = command.get_usage(inner).removeprefix("Usage: ")
        blocks.append(f"## {name}\n\n{_text(command.help)}\n\n```\n{usage}\n```\n\n{_table(command, inner)}")
    return "\n\n".join(block.strip() for block in blocks) + "\n"


def _commands(group: Any, context: typer.Context) -> Iterator[tuple[str, tuple[Any, typer.Context]]]:
    """Every command by its full name, those of groups among them."""
    for name, command in group.commands.items():
        inner = typer.Context(command, info_name=name, parent=context)
        if hasattr(command, "commands"):
            yield from ((f"{name} {below}", found) for below, found in _commands(command, inner))
        else:
            yield name, (command, inner)


def _table(command: Any, context: typer.Context) -> str:
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = [f"| `{name}` | {_cell(text)} |" for name, text in filter(None, records) if name != "--help"]
    return "\n".join(["| option | what it does |", "|---|---|", *rows])


def _cell(text: str) -> str:
    return _text(text).replace("|", r"\|").replace("*", r"\*")


def _text(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _first(text: str) -> str:
    return _text(text).split("\n\n")[0]


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
