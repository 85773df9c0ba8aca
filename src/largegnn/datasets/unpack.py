"""An archive becomes data set folders that the readers take, or nothing.

In: a zip or a tar (plain, gzip, bzip2, xz, zstd; told by content) and a place. Out: the folders, each read back by
`find_files`, so a folder that is there is complete and in a known layout.

Data sets are found by the names of their files, however deep they lie. LargeEA's files (`fr_triples_1`,
`fr_triples_2`, `fr_ent_links`, two pairs in one folder) are renamed to OpenEA's, one folder a pair. The archive is read
twice: first its names and sizes (refusing names that lead outside, links, devices, and more bytes than the disk has
free), then its data, into a folder beside that is renamed at the end. A kill leaves one `.unpacking-*` folder at most.
"""

from __future__ import annotations

import contextlib
import io
import lzma
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from largegnn.data.compression import SUFFIXES, open_stream
from largegnn.data.inputs import DataInput, find_files
from largegnn.errors import InputError, StorageError
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
class _Entry:
    """A plain file in an archive; `open` works until the next entry is asked for."""

    name: PurePosixPath
    size: int
    open: Callable[[], IO[bytes]]


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
    sizes = _sizes(archive)
    found = _choose(_find_sets(list(sizes)), only, archive)
    targets = _targets(found, out / home, out / top)
    standing = [str(path) for path in targets.values() if _taken(path)]
    if standing and not force:
        raise InputError(
            "the folder exists already",
            where=", ".join(standing),
            fix="--force replaces it, --out DIR names another place",
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
    places = {
        file: beside / f"new-{index}" / path for index, entry in enumerate(found) for file, path in entry.files.items()
    }
    with _reading(archive) as entries:
        for entry in entries:
            if entry.name in places:
                places[entry.name].parent.mkdir(parents=True, exist_ok=True)
                with entry.open() as packed, places[entry.name].open("xb") as plain:
                    shutil.copyfileobj(packed, plain, 1 << 20)
    layouts = [
        find_files(DataInput(folder=beside / f"new-{index}"), DataSettings()).layout for index in range(len(found))
    ]
    made = []
    for index, (data_set, layout) in enumerate(zip(found, layouts, strict=True)):
        target = targets[data_set.at]
        _replace(target, beside / f"new-{index}", beside / f"old-{index}")
        size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
        made.append(UnpackedSet(target, layout, size))
    return made


def _replace(target: Path, new: Path, old: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        target.rename(old)
    try:
        new.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise


@contextlib.contextmanager
def _reading(archive: Path) -> Generator[Generator[_Entry, None, None], None, None]:
    """The plain files of an archive in order; damage, and anything that could reach outside, is refused."""
    try:
        with archive.open("rb") as file:
            zipped = file.read(2) == b"PK"
        with contextlib.closing(_zip_entries(archive) if zipped else _tar_entries(archive)) as entries:
            yield entries
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise InputError(
            "this is no archive, or a damaged one",
            where=str(archive),
            expected="zip, tar, tar.gz, tar.bz2, tar.xz or tar.zst",
            found=str(error) or "a file that stops in the middle",
            fix="fetch it again",
        ) from None
    except RuntimeError as error:  # zipfile's way to say: unknown method, password needed
        raise InputError("the archive cannot be unpacked", where=str(archive), found=str(error)) from None


def _zip_entries(archive: Path) -> Generator[_Entry, None, None]:
    with zipfile.ZipFile(archive) as packed:
        for info in packed.infolist():
            name = _safe_name(info.filename, archive)
            kind = stat.S_IFMT(info.external_attr >> 16)
            if info.is_dir():
                continue
            if kind not in {0, stat.S_IFREG}:
                raise _outside("the archive holds a link or a device", info.filename, archive)
            yield _Entry(name, info.file_size, partial(packed.open, info))


def _tar_entries(archive: Path) -> Generator[_Entry, None, None]:
    with _plain_stream(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as packed:
        for member in packed:
            name = _safe_name(member.name, archive)
            if member.isdir():
                continue
            if not member.isreg():
                raise _outside("the archive holds a link or a device", member.name, archive)
            yield _Entry(name, member.size, partial(_member, packed, member))


def _plain_stream(archive: Path) -> io.BufferedIOBase:
    with archive.open("rb") as file:
        xz = file.read(6) == b"\xfd7zXZ\x00"
    return lzma.open(archive) if xz else open_stream(archive)


def _member(packed: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    stream = packed.extractfile(member)
    if stream is None:
        raise tarfile.ReadError(f"{member.name} has no data")
    return stream


def _safe_name(name: str, archive: Path) -> PurePosixPath:
    plain = name.replace("\\", "/")
    path = PurePosixPath(plain)
    if path.is_absolute() or ".." in path.parts or re.match(r"[A-Za-z]:", plain) or "\0" in plain:
        raise _outside("the archive holds a name that leads outside its folder", name, archive)
    return path


def _outside(problem: str, name: str, archive: Path) -> InputError:
    return InputError(problem, where=str(archive), found=repr(name), fix="do not trust this file; fetch another copy")


def _sizes(archive: Path) -> dict[PurePosixPath, int]:
    sizes: dict[PurePosixPath, int] = {}
    with _reading(archive) as entries:
        for entry in entries:
            if "__MACOSX" in entry.name.parts or entry.name.name.startswith("."):
                continue
            if entry.name in sizes:
                raise _outside("the archive holds a file twice", str(entry.name), archive)
            sizes[entry.name] = entry.size
    return sizes


def _find_sets(names: Sequence[PurePosixPath]) -> list[_Found]:
    """Every folder that has the files of a layout, the outermost where they nest."""
    children: dict[PurePosixPath, list[PurePosixPath]] = {}
    for name in names:
        children.setdefault(name.parent, []).append(name)
    found: list[_Found] = []
    for folder in sorted(children, key=lambda path: (len(path.parts), path)):
        if any(entry.at in (folder, *folder.parents) for entry in found):
            continue
        plain = {_without_packing(name.name) for name in children[folder]}
        stems = {name.name.split(".")[0] for name in children[folder]}
        pair = {"source", "target"} <= stems and bool({"seeds", "train_links"} & stems)
        if pair or any(marks <= plain for marks in _MARKS):
            inside = [name for name in names if folder in name.parents]
            found.append(_Found(folder, {name: name.relative_to(folder) for name in inside}))
        else:
            found += _largeea_sets(folder, children[folder])
    return found


def _largeea_sets(folder: PurePosixPath, names: Sequence[PurePosixPath]) -> list[_Found]:
    by_name = {name.name: name for name in names}
    prefixes = sorted(name.removesuffix("_ent_links") for name in by_name if name.endswith("_ent_links"))
    return [
        _Found(folder / prefix, {by_name[prefix + end]: PurePosixPath(new) for end, new in _LARGEEA.items()})
        for prefix in prefixes
        if prefix and all(prefix + end in by_name for end in _LARGEEA)
    ]


def _without_packing(name: str) -> str:
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
            expected=only if only and found else "rel_triples_1 and rel_triples_2, or another layout of docs/data.md",
            found=", ".join(str(entry.at) for entry in found) or None,
        )
    return chosen


def _targets(found: Sequence[_Found], home: Path, top: Path) -> dict[PurePosixPath, Path]:
    """Where each data set goes: its folder's name, or the whole path where two names are the same."""
    names = [entry.at.name for entry in found]
    return {
        entry.at: top
        if not entry.at.parts
        else home / (entry.at.name if names.count(entry.at.name) == 1 else "-".join(entry.at.parts))
        for entry in found
    }


def _taken(path: Path) -> bool:
    return path.exists() and (not path.is_dir() or any(path.iterdir()))
