"""Describe where a figure comes from: program, machine, settings, data.

In: the settings of a run and the files that it read. Out: an `Origin` with version, commit and git tree of the program,
date, machine, libraries, channels, protocol, settings that differ from the defaults, random seed and checksums of the
data. It never names a host, a user or a folder. The records of benchmarks (`lines`) and of whole systems (`records`)
contain it. Cost: one pass over the data for the checksums, and a few calls of git.
"""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import platform
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

import largegnn
from largegnn.machine.devices import choose_device, machine_memory_mb, num_processors
from largegnn.settings import Settings, StrictModel, flat_settings
from largegnn.version import __version__

if TYPE_CHECKING:
    from lab.runs import Run

__all__ = [
    "Machine",
    "Origin",
    "data_checksum",
    "machine_name",
    "origin_of",
    "origin_of_run",
    "today",
]

Plain = str | int | float | bool | None
_LIBRARIES = ("numpy", "scipy", "torch", "numba", "polars", "faiss-cpu", "pymetis", "kaminpar", "rapidfuzz")
_CHUNK = 1 << 20
_SEPARATE = ("seed", "device")  # settings that an origin states as random seed and machine
_MB_PER_GB = 1024


class Machine(StrictModel):
    """The machine of a run."""

    cores: int = Field(ge=1)
    memory_gb: float | None
    gpu: str | None
    architecture: str


class Origin(StrictModel):
    """Everything that is known to determine a figure."""

    version: str
    commit: str | None  # ends in "+" if the program had uncommitted changes
    # Git's hash of the package's files. Unlike the commit, it stays the same if the history is rewritten.
    tree: str | None = None
    date: str
    machine: Machine
    libraries: dict[str, str]
    channels: list[str]
    protocol: dict[str, Plain]
    settings: dict[str, Any]
    random_seed: int
    data: dict[str, str]


def origin_of(
    settings: Settings,
    data: Iterable[Path],
    *,
    channels: Iterable[str] | None = None,
    protocol: Mapping[str, Plain] | None = None,
) -> Origin:
    """Describe the origin of a run with these settings on these files or folders, made now on this machine.

    `channels`: the channels that were used, if the settings leave the choice to the data. `protocol`: facts that are
    not settings, such as how seeds were drawn.
    """
    rules: dict[str, Plain] = {
        "seeds_from": settings.protocol.seeds_from,
        "fold": settings.data.fold,
        "rounds": settings.rounds.number,
    }
    defaults = flat_settings(Settings().model_dump(mode="json"))
    values = flat_settings(settings.model_dump(mode="json"))
    changed = {
        key: value for key, value in values.items() if key not in ("seed", "device") and defaults.get(key) != value
    }
    commit, tree = _committed()
    return Origin(
        version=__version__,
        commit=commit,
        tree=tree,
        date=today(),
        machine=_machine(settings.device),
        libraries={"python": platform.python_version(), **_versions()},
        channels=list(settings.channels if channels is None else channels),
        protocol=rules | dict(protocol or {}),
        settings=changed,
        random_seed=settings.seed,
        data={path.name: data_checksum(path) for path in data},
    )


def origin_of_run(run: Run, protocol: Mapping[str, Plain]) -> Origin:
    """Describe the origin of figures measured now on a finished run, with its settings, channels and input files."""
    files = [] if run.given is None else [path for path in vars(run.given).values() if path is not None]
    return origin_of(run.settings, files, channels=run.channels, protocol=protocol)


def data_checksum(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names, sizes and contents of all files of a folder, sorted by name."""
    total = hashlib.sha256()
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    for file in files:
        total.update(f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as source:
            while chunk := source.read(_CHUNK):
                total.update(chunk)
    return total.hexdigest()


def machine_name(device: str) -> str:
    """Describe the machine of a run in words."""
    machine = _machine(device)
    cores = f"{machine.cores} CPU cores"
    return f"{machine.gpu}, {cores}" if machine.gpu else f"{cores} ({machine.architecture})"


def today() -> str:
    """Return the date in UTC, so that it does not depend on the time zone."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _machine(device: str) -> Machine:
    import torch

    chosen = choose_device(device)
    memory = machine_memory_mb()
    return Machine(
        cores=num_processors(),
        memory_gb=None if memory is None else round(memory / _MB_PER_GB, 1),
        gpu=torch.cuda.get_device_name(chosen) if chosen.type == "cuda" else None,
        architecture=platform.machine(),
    )


def _versions() -> dict[str, str]:
    versions = {}
    for name in _LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:  # optional, or not needed on this machine
            continue
    return versions


def _committed() -> tuple[str | None, str | None]:
    """Return the commit of the program, and git's hash of its files if unchanged; None outside a repository."""
    package = Path(largegnn.__file__).parent

    def git(*words: str) -> str:
        ended = subprocess.run(["git", "-C", package, *words], capture_output=True, text=True, check=True)
        return ended.stdout.strip()

    try:
        # An installed package may lie inside an unrelated repository, which does not track its files.
        if not git("ls-files", "--", "version.py"):
            return None, None
        commit, changed = git("rev-parse", "HEAD"), git("status", "--porcelain", "--", ".")
        return (f"{commit}+", None) if changed else (commit, git("rev-parse", "HEAD:./"))
    except (OSError, subprocess.CalledProcessError):
        return None, None
