"""Define `largegnn inspect`, `generate` and `download`, the commands that measure, generate and fetch data sets."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from largegnn.cli import options
from largegnn.cli.printing import number, print_table, share
from largegnn.errors import InputError
from largegnn.settings import WORLD_PRESETS, WorldSettings, resolve

if TYPE_CHECKING:
    from largegnn.datasets.download import Download
    from largegnn.planning.inspection import Inspection

__all__ = ["download_command", "generate_command", "inspect_command"]

_MAX_PREDICATES = 15
_LABELS = {
    "components": "connected components",
    "largest_component_share": "share of the largest component",
    "many_to_one_links": "number of seeds that are not one-to-one",
    "source_share": "share of source entities in a seed",
    "target_share": "share of target entities in a seed",
    "within_one_hop": "share of entities within one hop of a seed",
    "within_two_hops": "share of entities within two hops of a seed",
}
# `DownloadedArchive.compared` -> the outcome of the check of its checksum.
_CHECKSUM_NOTES = {
    "known": "equal to the published checksum",
    "recorded": "equal to the checksum recorded last time",
    "nothing": "recorded; no published checksum is known",
}


@click.command("inspect")
@options.takes_request(*options.DATA_FLAGS)
@click.option(
    "--memory-gb", type=click.FloatRange(min=0.1), help="Memory to plan for, in GB. Default: the free memory."
)
@options.json_option
def inspect_command(request: options.RunRequest, memory_gb: float | None, as_json: bool) -> None:
    """Count and measure two graphs, and estimate what a run needs. Known benchmarks are recognised."""
    from largegnn import api  # importing polars and others takes a moment
    from largegnn.data.load import load_pair

    assert request.given is not None, "only a resumed run may have no input"
    pair = load_pair(request.given, request.settings.data, keep_literals=request.settings.keep_literals)
    inspection = api.inspect(pair, settings=request.settings, memory_mb=None if memory_gb is None else memory_gb * 1024)
    if as_json:
        click.echo(json.dumps({"layout": pair.summary.layout, **inspection.to_dict()}, indent=1))
    else:
        _print_inspection(inspection)


def _print_inspection(inspection: Inspection) -> None:
    sides = [dataclasses.asdict(inspection.source), dataclasses.asdict(inspection.target)]
    histograms = [side.pop("degree_histogram") for side in sides]
    print_table(
        f"benchmark: {inspection.benchmark or 'not a known benchmark'}",
        ("graph", "source", "target"),
        [(_label(key), *(_text(key, side[key]) for side in sides)) for key in sides[0]],
    )
    degrees = sorted({*histograms[0], *histograms[1]}, key=lambda degree: int(degree.split("-")[0]))
    print_table(
        "entities by degree",
        ("degree", "source", "target"),
        [(degree, *(number(histogram.get(degree, 0)) for histogram in histograms)) for degree in degrees],
    )
    for side, predicates in (("source", inspection.source_predicates), ("target", inspection.target_predicates)):
        if predicates:
            print_table(
                f"predicates with literals in the {side} graph",
                ("predicate", "kind", "entities", "examples"),
                [
                    (_local_name(row.predicate), row.kind, share(row.coverage), " | ".join(row.examples)[:60])
                    for row in predicates[:_MAX_PREDICATES]
                ],
            )
    seeds = dataclasses.asdict(inspection.seeds)
    merged = {key: getattr(inspection, key) for key in ("merged_nodes", "merged_edges", "merged_components")}
    print_table(
        f"links (seeds from {seeds.pop('seeds_from')})",
        ("", "value"),
        [(_label(key), _text(key, value)) for key, value in {**seeds, **merged}.items()],
    )
    size = inspection.size
    print_table(
        "estimate for a run (order of magnitude)",
        ("", "value"),
        [
            ("suggested number of subgraphs", number(size.num_parts)),
            ("maximum entities per subgraph", number(size.cap)),
            ("limited by memory", "yes" if size.limited_by_memory else "no"),
            ("memory of the graph, MB", number(round(size.graph_mb))),
            ("memory while training, MB", number(round(size.training_mb))),
            ("memory of all embeddings, MB", number(round(size.embeddings_mb))),
        ],
    )


def _label(key: str) -> str:
    return _LABELS.get(key, key.replace("_", " "))


def _text(key: str, value: float) -> str:
    return share(value) if key.endswith("share") or key.startswith("within") else number(value)


def _local_name(predicate: str) -> str:
    return predicate.rstrip("/#").rsplit("/", 1)[-1].rsplit("#", 1)[-1]


@click.command("generate")
@click.argument("out", type=options.PATH, help="Folder for the files; new or empty.")
@click.option("--preset", default="small", show_default=True, help=f"Size and difficulty: {', '.join(WORLD_PRESETS)}.")
@click.option(
    "--format",
    "form",
    default="openea",
    show_default=True,
    help="openea, dbpedia1m, dbp15k, nt, nq, ttl, tsv, csv or parquet.",
)
@click.option("--compress", help="Compress every file: gz, bz2 or zst. Default: no compression.")
@click.option("--names", type=float, help="Give entities names and values; this share of them, from 0 to 1, is noisy.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
@click.option("--config", type=options.PATH, help="A TOML file of settings.")
@click.option("--set", "overrides", multiple=True, help="One setting, as key=value. May be repeated.")
@options.json_option
def generate_command(
    out: Path,
    preset: str,
    form: str,
    compress: str | None,
    names: float | None,
    seed: int,
    config: Path | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Generate two graphs that describe the same world, with all true links.

    The links are split into train, valid and test links.
    """
    from largegnn.data.compression import SUFFIXES  # importing polars and others takes a moment
    from largegnn.data.write import WRITERS, write_pair
    from largegnn.datasets.generator import generate_pair
    from largegnn.machine.metering import Meter

    compression = None
    if compress is not None:
        compression = SUFFIXES.get(f".{compress.removeprefix('.')}")
        if compression is None:
            raise InputError(f"no compression is called {compress!r}", expected="gz, bz2 or zst")
    if form not in WRITERS:
        raise InputError(f"no format is called {form!r}", expected=f"one of {', '.join(WRITERS)}")
    noise = [] if names is None else ["literals=true", f"noise={names}"]
    settings = resolve(WorldSettings, WORLD_PRESETS, preset, config, [*overrides, *noise])
    meter = Meter()
    pair = generate_pair(settings, seed)
    files = write_pair(pair.task, pair.names, out, form, compression, pair.literals)
    usage = meter.read()
    world = dataclasses.asdict(pair.report)
    if as_json:
        facts = {
            "folder": str(out),
            "seconds": round(usage.seconds, 2),
            "peak_memory_mb": round(usage.peak_memory_mb, 1),
            "files": [str(path) for path in files],
            "world": world,
        }
        click.echo(json.dumps(facts, indent=1))
        return
    rows = [(str(path.relative_to(out)), number(path.stat().st_size)) for path in files]
    print_table(f"files in {out}, written in {usage.seconds:.1f} s", ("file", "bytes"), rows)
    print_table("sizes", ("", "value"), [(_label(key), number(value)) for key, value in world.items()])


@click.command("download")
@click.argument("name", required=False, help="Name of the data set, such as openea or EN_FR_15K_V1; see --list.")
@click.option(
    "--out",
    "-o",
    type=options.PATH,
    default=Path("data"),
    show_default=True,
    help="Folder that gets one folder for each data set.",
)
@click.option(
    "--mirror", help="Address of the archive, or of its folder if it ends in /. Default: the mirrors of the catalogue."
)
@click.option("--from", "file", type=options.PATH, help="Unpack this archive instead of fetching one.")
@click.option("--force", is_flag=True, help="Replace existing data set folders.")
@click.option(
    "--keep-archive/--remove-archive",
    "keep",
    default=True,
    show_default=True,
    help="Keep the fetched archive in --out, or remove it at the end.",
)
@click.option(
    "--skip-checksum", "trust", is_flag=True, help="Accept a file whose checksum differs, and record the new checksum."
)
@click.option("--list", "show_list", is_flag=True, help="List the data sets and exit.")
@options.json_option
def download_command(name: str | None, out: Path, show_list: bool, as_json: bool, **transfer: Any) -> None:
    """Fetch a public data set, compare its checksum and unpack it.

    Run the same command again to resume an interrupted transfer.
    """
    if show_list:
        _print_list(as_json)
        return
    if name is None:
        raise InputError("no data set was named", expected="largegnn download NAME", fix="list the names with --list")
    from largegnn.datasets.download import download

    try:
        result = download(name, out, **transfer)
    except KeyboardInterrupt as interruption:
        interruption.add_note("run the same command again to resume")
        raise
    _print_download(result, as_json)


def _print_download(result: Download, as_json: bool) -> None:
    dataset = result.dataset
    next_command = f"largegnn inspect {result.folders[0].folder}"
    if as_json:
        facts = {
            "name": dataset.name,
            "folders": [
                {"folder": str(entry.folder), "layout": entry.layout, "bytes": entry.size} for entry in result.folders
            ],
            "archives": [
                {
                    "file": str(archive.path),
                    "from": archive.origin,
                    "bytes": archive.size,
                    "sha256": archive.sha256,
                    "compared": archive.compared,
                    "kept": archive.kept,
                }
                for archive in result.archives
            ],
            "page": dataset.page,
            "licence": dataset.licence,
            "citation": dataset.citation,
            "next": next_command,
        }
        click.echo(json.dumps(facts, indent=1))
        return
    rows = [(str(entry.folder), entry.layout, number(entry.size)) for entry in result.folders]
    print_table(dataset.title, ("folder", "layout", "bytes"), rows)
    for archive in result.archives:
        click.echo(f"sha256   {archive.sha256}  {archive.path.name} ({_CHECKSUM_NOTES[archive.compared]})")
    click.echo(
        f"page     {dataset.page}\nlicence  {dataset.licence}\ncite     {dataset.citation}\nnext     {next_command}"
    )


def _print_list(as_json: bool) -> None:
    from largegnn.datasets.catalogue import DATASETS

    if as_json:
        keys = ("name", "title", "archive", "folder", "page", "licence", "citation", "note")
        entries = [
            {key: getattr(entry, key) for key in keys} | {"mirrors": [mirror.url for mirror in entry.mirrors]}
            for entry in DATASETS.values()
        ]
        click.echo(json.dumps(entries, indent=1))
        return
    print_table("public data sets", ("name", "title"), [(entry.name, entry.title) for entry in DATASETS.values()])
