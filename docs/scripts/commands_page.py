"""Write `docs/reference/commands.md` from the command line itself.

In: the commands with their arguments, options and help. Out: a page with one section for each command. An option that
three commands or more share is described once, at the top.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import click

from largegnn.cli.app import COMMANDS, app

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
    context = click.Context(app, info_name="largegnn", **app.context_settings)
    commands = all_commands()
    rows = {name: _rows(command, inner) for name, (command, inner) in commands.items()}
    counts = Counter(row for found in rows.values() for row in found if row[0].startswith("-"))
    shared = [row for row, count in counts.items() if count >= SHARED]
    blocks = [HEAD, "## Shared options\n\n" + _table(_rows(app, context) + shared)]
    for name, (command, inner) in commands.items():
        usage = command.get_usage(inner).removeprefix("Usage: ")
        own = [row for row in rows[name] if row not in shared]
        blocks.append(f"## {name}\n\n{_text(command.help or '')}\n\n```\n{usage}\n```")
        blocks += [_table(own)] if own else []
        others = ", ".join(f"`{_long(row[0])}`" for row in rows[name] if row in shared)
        blocks += [f"Shared: {others}."] if others else []
    return "\n\n".join(block.strip() for block in blocks) + "\n"


def all_commands() -> dict[str, tuple[click.Command, click.Context]]:
    """Every command by its full name, those of groups among them."""
    context = click.Context(app, info_name="largegnn", **app.context_settings)
    found = {}
    for name in COMMANDS:
        command = app.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, max_content_width=120)
        if isinstance(command, click.Group):
            for below, member in command.commands.items():
                found[f"{name} {below}"] = member, click.Context(member, info_name=below, parent=inner)
        else:
            found[name] = command, inner
    return found


def _rows(command: click.Command, context: click.Context) -> list[Row]:
    """Name and help of each parameter, those that `--help` hides among them."""
    found = []
    for parameter in command.get_params(context):
        if isinstance(parameter, click.Option) and parameter.hidden:
            parameter.hidden = False
            record = parameter.get_help_record(context)
            parameter.hidden = True
        else:
            record = parameter.get_help_record(context)
        if record is not None and not {"--help", "--help-all"} & set(parameter.opts):
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
