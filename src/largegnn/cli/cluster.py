"""Define `largegnn cluster check`, which lists the nodes of a Ray cluster and whether a run can use them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from largegnn.cli import options
from largegnn.cli.printing import number, print_table
from largegnn.errors import InputError

if TYPE_CHECKING:
    from largegnn.cluster.nodes import Node

__all__ = ["cluster_command"]

_VERSIONS = ("python", "largegnn", "torch", "ray")


@click.group("cluster")
def cluster_command() -> None:
    """Check a Ray cluster before a run uses it."""


@cluster_command.command("check")
@click.argument("address", default="auto", help="auto, local or HOST:PORT.")
@click.option("--run-folder", type=options.PATH, help="A folder that every node must see, such as the run folder.")
@options.json_option
def check_command(address: str, run_folder: Path | None, as_json: bool) -> None:
    """List the nodes of a cluster and whether each sees a folder; an unfit node is an error."""
    from largegnn.cluster.connection import connection
    from largegnn.cluster.nodes import ask_nodes, refuse_unfit

    if address == "none":
        raise InputError("there is no cluster to check", expected="auto, local or HOST:PORT", found=address)
    if run_folder is not None and not run_folder.is_dir():
        raise InputError("there is no such folder", where=str(run_folder), fix="create the folder, or name another one")
    with connection(address) as ray:
        nodes = ask_nodes(ray, run_folder)
    if as_json:
        facts = [dataclasses.asdict(node) | {"versions": dict(node.versions)} for node in nodes]
        click.echo(json.dumps(facts, indent=1))
    else:
        _show(nodes)
    refuse_unfit(nodes)
    if not as_json:
        cpus = sum(node.num_cpus for node in nodes)
        gpus = sum(node.num_gpus for node in nodes)
        workers = f"{gpus:.0f} workers on GPUs" if gpus else f"{cpus:.0f} workers"
        click.echo(
            f"A run would take {workers}, and keep a share of the entity table on each of the {len(nodes)} nodes."
        )


def _show(nodes: list[Node]) -> None:
    sees_folder = {True: "yes", False: "no", None: "-"}
    rows = []
    for node in nodes:
        versions = dict(node.versions)
        sizes = (f"{node.num_cpus:g}", f"{node.num_gpus:g}", number(round(node.memory_mb)))
        rows.append(
            (node.name, *sizes, *(versions.get(name, "?") for name in _VERSIONS), sees_folder[node.sees_folder])
        )
    print_table("nodes", ("node", "CPUs", "GPUs", "memory MB", *_VERSIONS, "sees folder"), rows)
