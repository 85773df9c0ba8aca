"""Describe where a figure comes from: program, machine, settings, data.

In: the settings of a run, the files it read. Out: an `Origin`: version, commit and files of the program, date, machine,
libraries, channels, protocol, settings that differ from the defaults, random seed, checksum of the data. Nothing in it
names a host, a user or a folder. The records of benchmarks (`record_lines`) and of whole systems (`records`) carry it.
Cost: one pass over the data for the checksum, a call of git.
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
_GB = 1024  # of megabytes


class Machine(StrictModel):
    """What a run was made on."""

    cores: int = Field(ge=1)
    memory_gb: float | None
    gpu: str | None
    architecture: str


class Origin(StrictModel):
    """Everything that a figure follows from, as far as it can be told."""

    version: str
    commit: str | None  # with "+" behind it where the program had changes that no commit has
    # Git's name of the package's files, which stays the same where history is written anew and commits change theirs.
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
    """The origin of a run with these settings on these files or folders, made here and now.

    `channels` are those that were used, where the settings leave it to the data; `protocol` adds what the settings do
    not say, such as how seeds were drawn.
    """
    rules: dict[str, Plain] = {
        "seeds_from": settings.protocol.seeds_from,
        "fold": settings.data.fold,
        "rounds": settings.rounds.number,
    }
    defaults = flat_settings(Settings().model_dump(mode="json"))
    own = flat_settings(settings.model_dump(mode="json"))
    changed = {key: value for key, value in own.items() if key not in ("seed", "device") and defaults.get(key) != value}
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
    """The origin of figures measured here and now on a finished run: its settings, its channels, the files it read."""
    files = [] if run.given is None else [path for path in vars(run.given).values() if path is not None]
    return origin_of(run.settings, files, channels=run.channels, protocol=protocol)


def data_checksum(path: Path) -> str:
    """SHA-256 of a file, or of all files of a folder with their names in it, in the order of these."""
    total = hashlib.sha256()
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    for one in files:
        total.update(f"{one.relative_to(path).as_posix()}\0{one.stat().st_size}\0".encode())
        with one.open("rb") as source:
            while chunk := source.read(_CHUNK):
                total.update(chunk)
    return total.hexdigest()


def machine_name(device: str) -> str:
    """What a run was made on, in words."""
    machine = _machine(device)
    cores = f"{machine.cores} CPU cores"
    return f"{machine.gpu}, {cores}" if machine.gpu else f"{cores} ({machine.architecture})"


def today() -> str:
    """The date, everywhere the same one."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _machine(device: str) -> Machine:
    import torch

    chosen, memory = choose_device(device), machine_memory_mb()
    return Machine(
        cores=num_processors(),
        memory_gb=None if memory is None else round(memory / _GB, 1),
        gpu=torch.cuda.get_device_name(chosen) if chosen.type == "cuda" else None,
        architecture=platform.machine(),
    )


def _versions() -> dict[str, str]:
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:  # optional, or not needed on this machine
            continue
    return found


def _committed() -> tuple[str | None, str | None]:
    """The commit of the program's own files and git's name of them, as far as they are in a repository unchanged."""
    package = Path(largegnn.__file__).parent

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", package, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        # A repository that only happens to be around an installed package says nothing about it.
        if not git("ls-files", "--", "version.py"):
            return None, None
        commit, changed = git("rev-parse", "HEAD"), git("status", "--porcelain", "--", ".")
        return (f"{commit}+", None) if changed else (commit, git("rev-parse", "HEAD:./"))
    except (OSError, subprocess.CalledProcessError):
        return None, None
