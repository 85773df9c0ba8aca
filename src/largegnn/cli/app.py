"""The commands in one place, and what becomes of errors: a message without traceback and an exit code."""

from __future__ import annotations

import atexit
import contextlib
import errno
import logging
import os
import sys

import typer

from largegnn.cli.align import align_command
from largegnn.cli.cluster import cluster_commands
from largegnn.cli.compare import compare_command
from largegnn.cli.config import config_command
from largegnn.cli.divide import divide_command
from largegnn.cli.download import download_command
from largegnn.cli.evaluate import evaluate_command
from largegnn.cli.explain import explain_command
from largegnn.cli.export import export_command
from largegnn.cli.generate import generate_command
from largegnn.cli.inspect import inspect_command
from largegnn.cli.report import report_command
from largegnn.cli.review import review_command
from largegnn.cli.serve import serve_command
from largegnn.cli.train import train_command
from largegnn.cli.update import update_command
from largegnn.errors import LargeGNNError
from largegnn.version import __version__

__all__ = ["app", "main"]

app = typer.Typer(
    help="Entity alignment of large knowledge graphs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("align")(align_command)
app.command("update")(update_command)
app.command("evaluate")(evaluate_command)
app.command("compare")(compare_command)
app.command("report")(report_command)
app.command("review")(review_command)
app.command("serve")(serve_command)
app.command("export")(export_command)
app.command("explain")(explain_command)
app.command("divide")(divide_command)
app.command("train")(train_command)
app.command("inspect")(inspect_command)
app.command("generate")(generate_command)
app.command("config")(config_command)
app.command("download")(download_command)
app.add_typer(cluster_commands, name="cluster")


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"largegnn {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Log more on standard error."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Log only warnings and errors."),
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    from rich.console import Console
    from rich.logging import RichHandler

    from largegnn.machine.terminal_progress import install_terminal_progress

    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    console = Console(stderr=True)
    handler = RichHandler(console=console, show_path=False, show_level=verbose, omit_repeated_times=False, markup=False)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", datefmt="%H:%M:%S", handlers=[handler], force=True)
    logging.getLogger("largegnn").setLevel(level)
    if not quiet:
        install_terminal_progress(console)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; exit with 2 for bad input, 3 if the machine refuses, 4 if training fails, 128 + n for signal n."""
    from largegnn.machine.processes import Interrupted, install_signal_handlers

    install_signal_handlers()
    try:
        _run(arguments)
    except LargeGNNError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt as interruption:
        notes = getattr(interruption, "__notes__", ["nothing was left half-written"])
        sys.stderr.write(f"interrupted; {'; '.join(notes)}\n")
        code = interruption.exit_code if isinstance(interruption, Interrupted) else 130
        if arguments is None:  # this process is ours alone
            _leave_at_once(code)
        sys.exit(code)
    except (MemoryError, OSError, ImportError) as error:
        if isinstance(error, BrokenPipeError):
            # The reader of our output has gone (`| head`); that is no failure of ours.
            sys.stderr.close()
            sys.exit(0)
        if not _is_out_of_memory(error):
            raise
        sys.stderr.write("error: not enough memory\n  fix: `largegnn align ... --dry-run` estimates what is needed\n")
        sys.exit(3)


_OUT_OF_MEMORY = ("failed to map segment", "Cannot allocate memory")


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Whether memory is what was missing, here or in what led here; a library that is not mapped says it in words."""
    while error is not None:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        if any(words in str(error) for words in _OUT_OF_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False


def _run(arguments: list[str] | None) -> None:
    try:
        app(args=arguments, prog_name="largegnn")
    except SystemExit as end:
        # typer makes a silent exit of an interruption.
        interruption = getattr(end.__context__, "__cause__", None)
        if isinstance(interruption, KeyboardInterrupt):
            raise interruption from None
        raise


def _leave_at_once(code: int) -> None:
    """End without taking PyTorch and others down, which takes seconds; what was to be done at the end is done."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
