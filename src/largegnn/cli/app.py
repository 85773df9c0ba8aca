"""The entry point of the command line: a table of commands, logging, and the mapping from errors to exit codes.

An error that a user can fix is printed as a message without traceback. Commands are imported lazily, so `--help` needs
only the table below.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import importlib
import logging
import os
import sys

import click

from largegnn.errors import LargeGNNError
from largegnn.version import __version__

__all__ = ["COMMANDS", "app", "main"]

# Command name -> (module in `largegnn.cli` that defines `NAME_command`, one-line help).
COMMANDS = {
    "align": ("align", "Align two graphs: every pair with a score and a confidence."),
    "update": ("align", "Add triples and entities to a finished run and align them with its model."),
    "evaluate": ("results", "Measure a run by test links, in the ideal and the real setting."),
    "compare": ("results", "Compare runs: the settings that differ, and the figures."),
    "explain": ("results", "Show why an entity is matched or unmatched."),
    "report": ("results", "Write the files of a finished run again."),
    "export": ("results", "Write an alignment as TSV, Parquet, RDF or SSSOM, or its embeddings."),
    "review": ("web", "Open a page to accept, reject and correct pairs."),
    "serve": ("web", "Serve a finished run to OpenRefine and other programs."),
    "divide": ("divide", "Merge two graphs at their seeds and divide them into subgraphs."),
    "train": ("align", "Divide and train: everything up to one vector for each entity."),
    "inspect": ("data", "Count and measure two graphs, and estimate what a run needs."),
    "generate": ("data", "Generate two graphs that describe the same world, with all true links."),
    "download": ("data", "Fetch a public data set, compare its checksum and unpack it."),
    "config": ("config", "Print every setting with its value, default, allowed values and meaning."),
    "cluster": ("cluster", "Check a Ray cluster before a run uses it."),
}
_INTERRUPTED = 130  # 128 + SIGINT
_OUT_OF_RESOURCES = 3  # out of memory or disk, or a folder in use
# How the dynamic linker reports that a library cannot be mapped.
_OUT_OF_MEMORY = ("failed to map segment", "Cannot allocate memory")


class _Commands(click.Group):
    """A group whose commands are imported when the user names them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"largegnn.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=_Commands,
    help="Entity alignment of large knowledge graphs.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--verbose", "-v", is_flag=True, help="Log more on standard error.")
@click.option("--quiet", "-q", is_flag=True, help="Log only warnings and errors.")
@click.version_option(__version__, message="%(prog)s %(version)s")
def app(verbose: bool, quiet: bool) -> None:
    """Set up logging and progress bars on standard error."""
    from rich.console import Console
    from rich.logging import RichHandler

    from largegnn.machine.progress import show_progress

    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    console = Console(stderr=True)
    handler = RichHandler(console=console, show_path=False, show_level=verbose, omit_repeated_times=False, markup=False)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", datefmt="%H:%M:%S", handlers=[handler], force=True)
    logging.getLogger("largegnn").setLevel(level)
    if not quiet:
        show_progress(console)


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit.

    Exit codes: 2 for bad input, 3 for too little memory or disk or a folder in use, 4 if training fails, 128 + n for
    signal n.
    """
    from largegnn.machine.processes import Interrupted, install_signal_handlers

    install_signal_handlers()
    try:
        sys.exit(_run(sys.argv[1:] if arguments is None else arguments))
    except LargeGNNError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt as interruption:
        notes = getattr(interruption, "__notes__", ["nothing was left half-written"])
        sys.stderr.write(f"interrupted; {'; '.join(notes)}\n")
        code = interruption.exit_code if isinstance(interruption, Interrupted) else _INTERRUPTED
        if arguments is None:  # not called from another program
            _exit_at_once(code)
        sys.exit(code)
    except BrokenPipeError:
        # The reader of the output has ended, as in `largegnn ... | head`; that is no error.
        sys.stderr.close()
        sys.exit(0)
    except (MemoryError, OSError, ImportError) as error:
        if not _is_out_of_memory(error):
            raise
        sys.stderr.write("error: not enough memory\n  fix: `largegnn align ... --dry-run` estimates what is needed\n")
        sys.exit(_OUT_OF_RESOURCES)


def _run(arguments: list[str]) -> int:
    """Run a command and return its exit code.

    `app.main` is not used because click turns KeyboardInterrupt into a bare `Aborted!`.
    """
    try:
        with app.make_context("largegnn", list(arguments)) as context:
            app.invoke(context)
    except click.exceptions.Exit as exit_request:
        return exit_request.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return 0


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Whether this error, or one that caused it, means that memory ran out.

    A shared library that cannot be mapped reports it only in its message.
    """
    while error is not None:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        if any(text in str(error) for text in _OUT_OF_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False


def _exit_at_once(code: int) -> None:
    """Exit without tearing down PyTorch, which takes seconds. Exit handlers run and streams are flushed first."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
