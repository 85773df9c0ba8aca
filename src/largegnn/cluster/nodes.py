"""List the machines of a cluster, and refuse a cluster with a machine that cannot take part in a run.

In: a connection, the run folder. Out: a `Node` for each machine: processors, memory, GPUs, versions, whether it can
read the run folder. The idea: a small task on every machine reads a random word that was just written into the run
folder, because a machine may have another folder under the same path.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from largegnn.errors import InputError, StorageError
from largegnn.version import __version__

__all__ = ["Node", "ask_nodes", "refuse_unfit", "versions_here"]

_TIMEOUT_SECONDS = 60.0  # for a node to answer; a busy node takes long to import PyTorch


@dataclass(frozen=True)
class Node:
    """One machine; `sees_folder` is None if no folder was given, `problem` is the reason if it did not answer."""

    id: str
    name: str
    num_cpus: float
    num_gpus: float
    memory_mb: float
    versions: tuple[tuple[str, str], ...]
    sees_folder: bool | None
    problem: str | None = None


def versions_here() -> tuple[tuple[str, str], ...]:
    """The versions that must be the same on every machine."""
    versions = {"python": platform.python_version(), "largegnn": __version__}
    # Read from metadata, because importing PyTorch takes seconds.
    return tuple((versions | {name: importlib.metadata.version(name) for name in ("torch", "ray")}).items())


def inspect_machine(file: str | None, word: str) -> tuple[tuple[tuple[str, str], ...], bool | None]:
    """The versions on the machine that runs this task, and whether `file` contains `word`."""
    sees = None
    if file is not None:
        try:
            sees = Path(file).read_text(encoding="utf-8") == word
        except OSError:
            sees = False
    return versions_here(), sees


def ask_nodes(ray: Any, folder: Path | None) -> list[Node]:
    """Ask all machines that are alive, sorted by name; if `folder` is given, every machine reads a file in it."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    word = secrets.token_hex(16)
    file = None if folder is None else folder.resolve() / f".cluster-{word[:8]}.partial"
    alive = [entry for entry in ray.nodes() if entry["Alive"]]
    try:
        if file is not None:
            file.write_text(word, encoding="utf-8")
        remote = ray.remote(inspect_machine)
        answers = [
            remote.options(
                num_cpus=0,
                max_retries=1,
                scheduling_strategy=NodeAffinitySchedulingStrategy(entry["NodeID"], soft=False),
            ).remote(None if file is None else str(file), word)
            for entry in alive
        ]
        ray.wait(answers, num_returns=len(answers), timeout=_TIMEOUT_SECONDS)
        nodes = [_node(ray, entry, answer) for entry, answer in zip(alive, answers, strict=True)]
    except OSError as error:
        raise StorageError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        if file is not None:
            with contextlib.suppress(OSError):
                file.unlink()
    return sorted(nodes, key=lambda node: (node.name, node.id))


def _node(ray: Any, entry: dict[str, Any], answer: Any) -> Node:
    resources = entry["Resources"]
    facts = {
        "id": entry["NodeID"],
        "name": f"{entry['NodeManagerHostname']} ({entry['NodeManagerAddress']})",
        "num_cpus": float(resources.get("CPU", 0)),
        "num_gpus": float(resources.get("GPU", 0)),
        "memory_mb": float(resources.get("memory", 0)) / 2**20,
    }
    try:
        versions, sees = ray.get(answer, timeout=1.0)  # `ask_nodes` has waited for all answers
    except ray.exceptions.RayError as error:
        lines = [line for line in str(error).strip().splitlines() if line.strip()]
        problem = (
            f"no answer within {_TIMEOUT_SECONDS:.0f} s" if isinstance(error, TimeoutError) else lines[-1].strip()[:300]
        )
        return Node(**facts, versions=(), sees_folder=None, problem=problem)
    return Node(**facts, versions=versions, sees_folder=sees)


def refuse_unfit(nodes: Sequence[Node]) -> None:
    """Refuse a cluster with a machine that cannot take part; the error names the machine and the reason."""
    expected = dict(versions_here())
    for node in nodes:
        if node.problem is not None:
            raise InputError(
                "a node of the cluster cannot take part",
                where=node.name,
                found=node.problem,
                fix="install the same largegnn[cluster] there, or remove the node with `ray stop`",
            )
        differing = {name: version for name, version in node.versions if expected[name] != version}
        if differing:
            raise InputError(
                "the nodes of the cluster have different versions",
                where=node.name,
                expected=", ".join(f"{name} {expected[name]}" for name in differing),
                found=", ".join(f"{name} {version}" for name, version in differing.items()),
                fix="install the same versions everywhere",
            )
        if node.sees_folder is False:
            raise InputError(
                "a node of the cluster does not see the run folder",
                where=node.name,
                expected="a folder that all nodes share under the same path, such as one on NFS",
                fix="name such a folder with --out, or remove the node with `ray stop`",
            )
