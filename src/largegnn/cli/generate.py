"""`largegnn generate`: write a synthetic pair of graphs with known links, in any format."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from largegnn.cli import options
from largegnn.cli.tables import number, print_table
from largegnn.errors import InputError
from largegnn.machine.metering import Meter
from largegnn.settings import WORLD_PRESETS, WorldSettings, resolve

__all__ = ["generate_command"]


def generate_command(
    out: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    preset: Annotated[
        str, typer.Option("--preset", help=f"Size and difficulty: {', '.join(WORLD_PRESETS)}.")
    ] = "small",
    form: Annotated[
        str,
        typer.Option("--format", help="openea, dbpedia1m, dbp15k, nt, nq, ttl, tsv, csv or parquet."),
    ] = "openea",
    compress: Annotated[
        str | None, typer.Option("--compress", help="Compress every file: gz, bz2 or zst. Default: no compression.")
    ] = None,
    names: Annotated[
        float | None,
        typer.Option("--names", help="Give entities names and values, with this share of noise from 0 to 1."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    config: options.SettingsFileOption = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="One setting, as key=value. May be repeated.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Generate two graphs that describe one world, with all true links, split into train, valid and test links."""
    from largegnn.data.compression import SUFFIXES  # polars and the like take a moment
    from largegnn.data.write import WRITERS, write_pair
    from largegnn.datasets.generator import generate_pair

    compression = None
    if compress is not None:
        compression = SUFFIXES.get(f".{compress.removeprefix('.')}")
        if compression is None:
            raise InputError(f"no compression is called {compress!r}", expected="gz, bz2 or zst")
    if form not in WRITERS:
        raise InputError(f"no format is called {form!r}", expected=f"one of {', '.join(WRITERS)}")
    noise = [] if names is None else ["literals=true", f"noise={names}"]
    settings = resolve(WorldSettings, WORLD_PRESETS, preset, config, [*(overrides or []), *noise])
    meter = Meter()
    pair = generate_pair(settings, seed)
    files = write_pair(pair.task, pair.names, out, form, compression, pair.literals)
    usage = meter.read()
    facts = {
        "folder": str(out),
        "seconds": round(usage.seconds, 2),
        "peak_memory_mb": round(usage.peak_memory_mb, 1),
        "files": [str(path) for path in files],
        "world": dataclasses.asdict(pair.report),
    }
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
        return
    rows = [(str(path.relative_to(out)), number(path.stat().st_size)) for path in files]
    print_table(f"files in {out}, written in {usage.seconds:.1f} s", ("file", "bytes"), rows)
    world = [(key.replace("_", " "), number(value)) for key, value in dataclasses.asdict(pair.report).items()]
    print_table("the world", ("", "value"), world)
