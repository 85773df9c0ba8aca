"""List the machines of a cluster, and refuse those that cannot take part in a run.

In: a connection, the run folder. Out: one `Node` for each machine: processors, memory, GPUs, versions, whether it sees
the folder. The idea: a small task on every machine reads a word that was just written into the run folder, since a
folder of the same name on another disk is not the run folder.
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

_SECONDS = 60.0  # for a node to answer; importing PyTorch on a busy one takes a while


@dataclass(frozen=True)
class Node:
    """One machine; `sees_folder` is None where no folder was given, `problem` is why it did not answer."""

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
    own = {"python": platform.python_version(), "largegnn": __version__}
    # Not by importing them: PyTorch takes seconds.
    return tuple((own | {name: importlib.metadata.version(name) for name in ("torch", "ray")}).items())


def inspect_machine(file: str | None, word: str) -> tuple[tuple[tuple[str, str], ...], bool | None]:
    """The versions installed on the machine this runs on, and whether a file holds a word."""
    sees = None
    if file is not None:
        try:
            sees = Path(file).read_text(encoding="utf-8") == word
        except OSError:
            sees = False
    return versions_here(), sees


def ask_nodes(ray: Any, folder: Path | None) -> list[Node]:
    """All machines that are alive, by name; each reads a file in `folder`, if one is given."""
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
        ray.wait(answers, num_returns=len(answers), timeout=_SECONDS)
        nodes = [_node(ray, entry, answer) for entry, answer in zip(alive, answers, strict=True)]
    except OSError as error:
        raise StorageError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        if file is not None:
            with contextlib.suppress(OSError):
                file.unlink()
    return sorted(nodes, key=lambda node: (node.name, node.id))


def _node(ray: Any, entry: dict[str, Any], answer: Any) -> Node:
    has = entry["Resources"]
    facts = {
        "id": entry["NodeID"],
        "name": f"{entry['NodeManagerHostname']} ({entry['NodeManagerAddress']})",
        "num_cpus": float(has.get("CPU", 0)),
        "num_gpus": float(has.get("GPU", 0)),
        "memory_mb": float(has.get("memory", 0)) / 2**20,
    }
    try:
        versions, sees = ray.get(answer, timeout=1.0)  # it was waited for with all others
    except ray.exceptions.RayError as error:
        lines = [line for line in str(error).strip().splitlines() if line.strip()]
        problem = f"no answer within {_SECONDS:.0f} s" if isinstance(error, TimeoutError) else lines[-1].strip()[:300]
        return Node(**facts, versions=(), sees_folder=None, problem=problem)
    return Node(**facts, versions=versions, sees_folder=sees)


def refuse_unfit(nodes: Sequence[Node]) -> None:
    """Refuse a cluster of which a machine cannot take part; the error has its name and the reason."""
    here = dict(versions_here())
    for node in nodes:
        if node.problem is not None:
            raise InputError(
                "a node of the cluster cannot take part",
                where=node.name,
                found=node.problem,
                fix="install the same largegnn[cluster] there, or take the node away with `ray stop`",
            )
        other = {name: version for name, version in node.versions if here[name] != version}
        if other:
            raise InputError(
                "the nodes of the cluster have different versions",
                where=node.name,
                expected=", ".join(f"{name} {here[name]}" for name in other),
                found=", ".join(f"{name} {version}" for name, version in other.items()),
                fix="install the same versions everywhere",
            )
        if node.sees_folder is False:
            raise InputError(
                "a node of the cluster does not see the run folder",
                where=node.name,
                expected="a folder that all nodes share under the same path, such as one on NFS",
                fix="name such a folder with --out, or take the node away with `ray stop`",
            )
