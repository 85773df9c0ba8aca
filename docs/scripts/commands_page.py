"""Write `docs/reference/commands.md` from the command line itself.

In: the commands with their arguments, options and help. Out: a page with one section for each command. Options that
three or more commands share are described once, at the top of the page.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import click

from largegnn.cli.app import COMMANDS, app

PAGE = Path(__file__).parents[1] / "reference" / "commands.md"
HEAD = """# Commands

`make docs` writes this page from the program. `largegnn COMMAND --help` shows the options of a command. For
`align`, `train`, `divide` and `inspect` these are the most used ones, and `--help-all` shows all.

Progress and log go to standard error, tables and JSON to standard output, results to files. Exit codes: 0 done, 2 bad
input, 3 out of memory or disk, or a folder in use, 4 training failed, 128 + n ended by signal n (130: Ctrl-C).
"""
MIN_SHARING = 3  # commands
SETTING_NOTE = re.compile(r"\s*\((?:[a-z_]+\.)?[a-z_]+: (?:[^()]|\([^()]*\))*\)\s*$")
Row = tuple[str, str]


def render() -> str:
    """Return the text of the page."""
    context = click.Context(app, info_name="largegnn", **app.context_settings)
    commands = all_commands()
    rows = {name: _rows(command, inner) for name, (command, inner) in commands.items()}
    counts = Counter(row for command_rows in rows.values() for row in command_rows if row[0].startswith("-"))
    shared = [row for row, count in counts.items() if count >= MIN_SHARING]
    blocks = [HEAD, "## Shared options\n\n" + _table(_rows(app, context) + shared)]
    for name, (command, inner) in commands.items():
        usage = command.get_usage(inner).removeprefix("Usage: ")
        unshared = [row for row in rows[name] if row not in shared]
        blocks.append(f"## {name}\n\n{_text(command.help or '')}\n\n```\n{usage}\n```")
        blocks += [_table(unshared)] if unshared else []
        shared_names = ", ".join(f"`{_long(row[0])}`" for row in rows[name] if row in shared)
        blocks += [f"Shared: {shared_names}."] if shared_names else []
    return "\n\n".join(block.strip() for block in blocks) + "\n"


def all_commands() -> dict[str, tuple[click.Command, click.Context]]:
    """Return every command by its full name, including the commands of groups."""
    context = click.Context(app, info_name="largegnn", **app.context_settings)
    commands = {}
    for name in COMMANDS:
        command = app.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, max_content_width=120)
        if isinstance(command, click.Group):
            for subname, subcommand in command.commands.items():
                commands[f"{name} {subname}"] = subcommand, click.Context(subcommand, info_name=subname, parent=inner)
        else:
            commands[name] = command, inner
    return commands


def _rows(command: click.Command, context: click.Context) -> list[Row]:
    """Return the name and help of each parameter, including the options that `--help` hides."""
    rows = []
    for parameter in command.get_params(context):
        if isinstance(parameter, click.Option) and parameter.hidden:
            parameter.hidden = False
            record = parameter.get_help_record(context)
            parameter.hidden = True
        else:
            record = parameter.get_help_record(context)
        if record is not None and not {"--help", "--help-all"} & set(parameter.opts):
            rows.append((record[0], SETTING_NOTE.sub("", _text(record[1]))))
    return rows


def _table(rows: list[Row]) -> str:
    lines = [f"| `{name}` | {_cell(text)} |" for name, text in rows]
    return "\n".join(["| option | meaning |", "|---|---|", *lines])


def _long(name: str) -> str:
    """Return the long form of an option."""
    return next(word for word in re.split(r"[ ,/]+", name) if word.startswith("--"))


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("*", r"\*")


def _text(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
