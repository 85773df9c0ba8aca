"""An archive becomes data set folders that the readers take, or nothing.

In: an archive (`archives.py`) and a folder. Out: the data set folders, each looked at by `find_files`, so that a folder
that is there is complete and in a known layout.

Data sets are found by the names of their files, however deep they lie. LargeEA's files (`fr_triples_1`,
`fr_triples_2`, `fr_ent_links`, two pairs in one folder) are renamed to OpenEA's, one folder a pair. The archive is read
twice: first its names and sizes, then the files of the data sets, into a folder beside. Each data set is renamed to its
folder when all of them are complete. A kill leaves one `.unpacking-*` folder and one `*.partial` at most.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from largegnn.data.compression import SUFFIXES
from largegnn.data.inputs import DataInput, find_files
from largegnn.datasets.archives import extract_files, list_files
from largegnn.errors import InputError, StorageError
from largegnn.machine.atomic import write_folder
from largegnn.settings import DataSettings

__all__ = ["UnpackedSet", "unpack"]

_MARKS = ({"rel_triples_1", "rel_triples_2"}, {"ent_ids_1", "ent_ids_2", "triples_1", "triples_2"})
_LARGEEA = {"_triples_1": "rel_triples_1", "_triples_2": "rel_triples_2", "_ent_links": "ent_links"}


@dataclass(frozen=True)
class UnpackedSet:
    """A folder that can be loaded."""

    folder: Path
    layout: str
    size: int


@dataclass(frozen=True)
class _Found:
    """A data set in an archive: where it lies, and its files with the paths they get."""

    at: PurePosixPath
    files: dict[PurePosixPath, PurePosixPath]


def unpack(
    archive: Path, out: Path, *, top: str, home: str = "", only: str | None = None, force: bool = False
) -> list[UnpackedSet]:
    """Unpack the data sets of an archive below `out/home`, all of them or the one folder called `only`.

    A data set that lies at the top of the archive, without a folder of its own, goes to `out/top`.
    Folders that exist are refused unless `force` replaces them.
    """
    if not archive.is_file():
        raise InputError("there is no such archive", where=str(archive), expected="a zip or tar file")
    sizes = list_files(archive)
    found = _choose(_find_sets(list(sizes)), only, archive)
    targets = _targets(found, out / home, out / top)
    standing = [str(path) for path in targets.values() if _taken(path)]
    if standing and not force:
        raise InputError(
            "the folder exists already",
            where=", ".join(standing),
            fix="replace it with --force, or name another folder with --out DIR",
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
        total, free = sum(sizes[file] for entry in found for file in entry.files), shutil.disk_usage(out).free
        if total > free:
            raise StorageError(f"{archive} unpacks to {total:,} bytes, but {out} has {free:,} free")
        beside = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=out))
        try:
            return _unpack_beside(archive, beside, found, targets)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise StorageError(f"cannot unpack to {error.filename or out}: {error.strerror or error}") from error


def _unpack_beside(
    archive: Path, beside: Path, found: Sequence[_Found], targets: dict[PurePosixPath, Path]
) -> list[UnpackedSet]:
    wanted = {
        file: beside / f"new-{index}" / path for index, entry in enumerate(found) for file, path in entry.files.items()
    }
    extract_files(archive, wanted, beside / "extracted")
    layouts = [
        find_files(DataInput(folder=beside / f"new-{index}"), DataSettings()).layout for index in range(len(found))
    ]
    made = []
    for index, (data_set, layout) in enumerate(zip(found, layouts, strict=True)):
        target = targets[data_set.at]
        write_folder(target, partial(_move_files, beside / f"new-{index}"))
        size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
        made.append(UnpackedSet(target, layout, size))
    return made


def _move_files(folder: Path, to: Path) -> None:
    for path in folder.iterdir():
        path.rename(to / path.name)


def _find_sets(names: Sequence[PurePosixPath]) -> list[_Found]:
    """Every folder that has the files of a layout, the outermost where they nest."""
    children: dict[PurePosixPath, list[PurePosixPath]] = {}
    for name in names:
        children.setdefault(name.parent, []).append(name)
    found: list[_Found] = []
    whole: dict[PurePosixPath, dict[PurePosixPath, PurePosixPath]] = {}
    for folder in sorted(children, key=lambda path: (len(path.parts), path)):
        if not whole.keys().isdisjoint(folder.parents):
            continue
        plain = {_without_compression(name.name) for name in children[folder]}
        stems = {name.name.split(".")[0] for name in children[folder]}
        pair = {"source", "target"} <= stems and bool({"seeds", "train_links"} & stems)
        if pair or any(marks <= plain for marks in _MARKS):
            whole[folder] = {}
            found.append(_Found(folder, whole[folder]))
        else:
            found += _largeea_sets(folder, children[folder])
    for name in names:
        for folder in whole.keys() & set(name.parents):
            whole[folder][name] = name.relative_to(folder)
    return found


def _largeea_sets(folder: PurePosixPath, names: Sequence[PurePosixPath]) -> list[_Found]:
    by_name = {name.name: name for name in names}
    prefixes = sorted(name.removesuffix("_ent_links") for name in by_name if name.endswith("_ent_links"))
    return [
        _Found(folder / prefix, {by_name[prefix + end]: PurePosixPath(new) for end, new in _LARGEEA.items()})
        for prefix in prefixes
        if prefix and all(prefix + end in by_name for end in _LARGEEA)
    ]


def _without_compression(name: str) -> str:
    suffix = PurePosixPath(name).suffix
    return name.removesuffix(suffix) if suffix in SUFFIXES else name


def _choose(found: list[_Found], only: str | None, archive: Path) -> list[_Found]:
    top = PurePosixPath()
    chosen = [entry for entry in found if only is None or entry.at.name.lower() == only.lower()]
    if only is not None and not chosen and [entry.at for entry in found] == [top]:
        chosen = found
    if not chosen:
        raise InputError(
            "the archive holds no data set" + (f" called {only}" if only and found else " in a known layout"),
            where=str(archive),
            expected=only if only and found else "rel_triples_1 and rel_triples_2, or a layout of docs/guides/data.md",
            found=", ".join(str(entry.at) for entry in found) or None,
        )
    return chosen


def _targets(found: Sequence[_Found], home: Path, top: Path) -> dict[PurePosixPath, Path]:
    """Where each data set goes: its folder's name, or the whole path where two names are the same."""
    names = Counter(entry.at.name for entry in found)
    targets = {
        entry.at: top
        if not entry.at.parts
        else home / (entry.at.name if names[entry.at.name] == 1 else "-".join(entry.at.parts))
        for entry in found
    }
    if len(set(targets.values())) < len(targets):
        raise InputError("two data sets of the archive would get one folder", found=", ".join(map(str, targets)))
    return targets


def _taken(path: Path) -> bool:
    return path.exists() and (not path.is_dir() or any(path.iterdir()))
