"""Unpack an archive into data set folders that the readers take, or into nothing.

In: an archive (zip; tar, plain or packed with gzip, bzip2, xz or zstd; recognised by content) and a folder. Out: the
data set folders. The files are unpacked into a folder beside; data sets are found by the names of their files, however
deep they lie, their layout is checked (`find_files`), and each is renamed to its place when all are complete.
LargeEA's files (`fr_triples_1`, `fr_triples_2`, `fr_ent_links`, two pairs in one folder) are renamed to OpenEA's.
An archive may be hostile: `zipfile` and `tarfile` (filter "data") keep what they write below one folder; names that
lead outside, links, devices, sparse files, more than 10,000 files and more bytes than text unpacks to are refused.
Cost: a packed tar is on disk once as a plain one, so that damage anywhere is found before a file is taken from it.
"""

from __future__ import annotations

import lzma
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath

from largegnn.data.compression import SUFFIXES, first_bytes, read_chunks
from largegnn.data.inputs import DataInput, find_files
from largegnn.errors import InputError, StorageError
from largegnn.machine.atomic import write_folder
from largegnn.settings import DataSettings

__all__ = ["UnpackedSet", "unpack"]

# Triples shrink to a twentieth, if very regular to a two-hundredth; the largest collections have some hundred files.
_MOST_EXPANSION, _ALWAYS_ALLOWED, _MOST_FILES = 500, 64 << 20, 10_000
_CHUNK = 1 << 20
_MARKS = ({"rel_triples_1", "rel_triples_2"}, {"ent_ids_1", "ent_ids_2", "triples_1", "triples_2"})
_LARGEEA = {"_triples_1": "rel_triples_1", "_triples_2": "rel_triples_2", "_ent_links": "ent_links"}
# What the libraries raise for a damaged file; the last row comes from headers with impossible numbers and names.
_DAMAGE = (
    *(zipfile.BadZipFile, tarfile.TarError, EOFError, lzma.LZMAError, zlib.error),
    *(ValueError, LookupError, OverflowError, RecursionError, MemoryError, struct.error),
)


@dataclass(frozen=True)
class UnpackedSet:
    """A folder that can be loaded."""

    folder: Path
    layout: str
    size: int


def unpack(
    archive: Path, out: Path, *, top: str, home: str = "", only: str | None = None, force: bool = False
) -> list[UnpackedSet]:
    """Unpack the data sets of an archive below `out/home`, all of them or the one folder called `only`.

    A data set that lies at the top of the archive, without a folder of its own, goes to `out/top`.
    Folders that exist are refused unless `force` replaces them.
    """
    if not archive.is_file():
        raise InputError("there is no such archive", where=str(archive), expected="a zip or tar file")
    try:
        out.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=out))
        try:
            files = beside / "files"
            files.mkdir()
            _extract(archive, files, beside / "plain.tar", only)
            targets = _targets(_find_sets(files), files, out, top, home, only, archive)
            standing = [str(path) for path in targets.values() if _is_taken(path)]
            if standing and not force:
                raise InputError(
                    "the folder exists already",
                    where=", ".join(standing),
                    fix="replace it with --force, or name another folder with --out DIR",
                )
            layouts = [find_files(DataInput(folder=folder), DataSettings()).layout for folder in targets]
            for folder, target in targets.items():
                write_folder(target, partial(_move_files, folder))
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise StorageError(f"cannot unpack to {error.filename or out}: {error.strerror or error}") from error
    sizes = [sum(path.stat().st_size for path in target.rglob("*") if path.is_file()) for target in targets.values()]
    return [UnpackedSet(*entry) for entry in zip(targets.values(), layouts, sizes, strict=True)]


def _extract(archive: Path, folder: Path, plain: Path, only: str | None) -> None:
    """Write the files of an archive to a folder: all, or those in the folder called `only` and at the top."""
    try:
        if first_bytes(archive, 2) == b"PK":
            _extract_zip(archive, folder, only)
        else:
            _decompress(archive, plain)
            _extract_tar(archive, folder, plain, only)
    except _DAMAGE as error:
        raise _damaged(archive, error) from None
    except OSError as error:
        if error.errno is None:  # of a decompressor
            raise _damaged(archive, error) from None
        raise
    except RuntimeError as error:  # of zipfile, for an unknown method and for a password
        raise InputError("the archive cannot be unpacked", where=str(archive), found=str(error)) from None


def _extract_zip(archive: Path, folder: Path, only: str | None) -> None:
    with zipfile.ZipFile(archive) as zipped:
        entries = [entry for entry in zipped.infolist() if not entry.is_dir()]
        num_plain, free = sum(entry.file_size for entry in entries), shutil.disk_usage(folder).free
        _check_expansion(num_plain, archive)
        if num_plain > free:
            raise StorageError(f"{archive} unpacks to {num_plain:,} bytes, but {folder.parent} has {free:,} free")
        is_wanted = _checker(archive, only)
        for entry in entries:
            if stat.S_IFMT(entry.external_attr >> 16) not in {0, stat.S_IFREG}:
                raise _distrusted("the archive holds a link or a device", entry.filename, archive)
            if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2}:
                # zipfile gives LZMA whatever memory the file requests.
                raise NotImplementedError(f"compression method {entry.compress_type}, not stored, deflate or bzip2")
            if is_wanted(entry.filename):
                zipped.extract(entry, folder)


def _decompress(archive: Path, plain: Path) -> None:
    """Write the plain bytes of a tar, within bounds; its checksum is compared on the way."""
    is_xz = first_bytes(archive, 6) == b"\xfd7zXZ\0"
    num_plain = 0
    with plain.open("wb") as file:
        for chunk in _xz_chunks(archive) if is_xz else read_chunks(archive):
            num_plain += len(chunk)
            _check_expansion(num_plain, archive)
            file.write(chunk)


def _xz_chunks(archive: Path) -> Iterator[bytes]:
    with lzma.open(archive) as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _extract_tar(archive: Path, folder: Path, plain: Path, only: str | None) -> None:
    is_wanted = _checker(archive, only)
    with tarfile.open(plain, "r:") as tar:
        while (member := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined]  # else all are kept, each with a copy of shared headers
            if member.issparse() or not (member.isreg() or member.isdir()):
                raise _distrusted("the archive holds a link or a device, or a sparse file", member.name, archive)
            if member.size < 0:
                raise tarfile.ReadError("a negative size")
            if member.isreg() and is_wanted(member.name):
                tar.extract(member, folder, set_attrs=False, filter="data")
        with plain.open("rb") as file:
            # A damaged header ends the archive, too; a sound end is zeros alone.
            file.seek(tar.offset)
            chunk = file.read(_CHUNK)
            while len(chunk) >= tarfile.BLOCKSIZE and not chunk.strip(b"\0"):
                chunk = file.read(_CHUNK)
                if not chunk:
                    return
            raise tarfile.ReadError("a damaged header, or a file that stops in the middle")


def _checker(archive: Path, only: str | None) -> Callable[[str], bool]:
    """A function that refuses names that cannot be trusted, and tells whether a file is wanted."""
    known: set[PurePosixPath] = set()
    count = 0

    def is_wanted(name: str) -> bool:
        nonlocal count
        count += 1
        if count > _MOST_FILES:
            raise _over_limit(f"{_MOST_FILES:,} files", f"{count:,} files or more", archive)
        path = PureWindowsPath(name)  # which knows both kinds of slash, and drives
        if path.anchor or ".." in path.parts or "\0" in name:
            raise _distrusted("the archive holds a name that leads outside its folder", name, archive)
        parts = [part.lower() for part in path.parts]
        if not parts or "__macosx" in parts or parts[-1].startswith("."):
            return False
        if PurePosixPath(*path.parts) in known:
            raise _distrusted("the archive holds a file twice", name, archive)
        known.add(PurePosixPath(*path.parts))
        return only is None or only.lower() in parts or len(parts) == 1

    return is_wanted


def _check_expansion(num_plain: int, archive: Path) -> None:
    """Refuse an archive that unpacks to far more bytes than text does."""
    num_packed = archive.stat().st_size
    if num_plain > max(_ALWAYS_ALLOWED, _MOST_EXPANSION * num_packed):
        raise _over_limit(
            f"{_MOST_EXPANSION} bytes for each compressed byte after the first {_ALWAYS_ALLOWED >> 20} MiB",
            f"{num_plain:,} bytes or more from {num_packed:,} compressed bytes",
            archive,
        )


def _damaged(archive: Path, error: Exception) -> InputError:
    return InputError(
        "this is not an archive, or a damaged one",
        where=str(archive),
        expected="zip, tar, tar.gz, tar.bz2, tar.xz or tar.zst",
        found=str(error) or "a file that stops in the middle",
        fix="fetch it again",
    )


def _distrusted(problem: str, name: str, archive: Path) -> InputError:
    fix = "do not trust this file; fetch another copy"
    return InputError(problem, where=str(archive), found=repr(name[:200]), fix=fix)


def _over_limit(limit: str, found: str, archive: Path) -> InputError:
    return InputError(
        "the archive unpacks to more than a data set needs",
        where=str(archive),
        expected=f"at most {limit}, a limit that protects memory and disk",
        found=found,
        fix="do not trust this file; if you do, unpack it with another program and use the folder",
    )


def _find_sets(root: Path) -> list[Path]:
    """Every folder that has the files of a layout, the outermost where they nest."""
    for links in sorted(root.rglob("*?_ent_links")):
        prefix = links.name.removesuffix("_ent_links")
        files = {links.with_name(prefix + end): name for end, name in _LARGEEA.items()}
        if all(file.is_file() for file in files):
            (links.parent / prefix).mkdir()
            for file, name in files.items():
                file.rename(links.parent / prefix / name)
    found: list[Path] = []
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    for folder in sorted(folders, key=lambda path: (len(path.parts), path)):
        names = [path.name for path in folder.iterdir() if path.is_file()]
        stems = {name.split(".")[0] for name in names}
        plain = {name.removesuffix(suffix) if (suffix := Path(name).suffix) in SUFFIXES else name for name in names}
        is_pair = {"source", "target"} <= stems and bool({"seeds", "train_links"} & stems)
        if (is_pair or any(marks <= plain for marks in _MARKS)) and not any(other in folder.parents for other in found):
            found.append(folder)
    return found


def _targets(
    found: list[Path], root: Path, out: Path, top: str, home: str, only: str | None, archive: Path
) -> dict[Path, Path]:
    """The place of each data set: its folder's name, or the whole path where two names are the same."""
    chosen = [folder for folder in found if only is None or folder.name.lower() == only.lower()]
    if only is not None and not chosen and found == [root]:
        chosen = found
    if not chosen:
        raise InputError(
            "the archive holds no data set" + (f" called {only}" if only else " in a known layout"),
            where=str(archive),
            expected=only or "rel_triples_1 and rel_triples_2, or a layout of docs/guides/data.md",
        )
    names = Counter(folder.name for folder in chosen)
    targets = {
        folder: out / top
        if folder == root
        else out / home / (folder.name if names[folder.name] == 1 else "-".join(folder.relative_to(root).parts))
        for folder in chosen
    }
    if len(set(targets.values())) < len(targets):
        raise InputError(
            "two data sets of the archive would get one folder", found=", ".join(map(str, targets.values()))
        )
    return targets


def _move_files(folder: Path, to: Path) -> None:
    for path in folder.iterdir():
        path.rename(to / path.name)


def _is_taken(path: Path) -> bool:
    return path.exists() and (not path.is_dir() or any(path.iterdir()))
