"""Unpack an archive into data set folders that the readers accept; an archive with any damage is refused as a whole.

In: an archive (zip; tar, plain or compressed with gzip, bzip2, xz or zstd; recognised by content) and a folder. Out:
the data set folders. The files are unpacked into a scratch folder; data sets are found by the names of their files, at
any depth, their layout is checked (`find_files`), and each is moved to its place when all are complete.
LargeEA's files (`fr_triples_1`, `fr_triples_2`, `fr_ent_links`, two pairs in one folder) are renamed to OpenEA's.
`zipfile` and `tarfile` (filter "data") write only below the given folder; links, devices, sparse files and archives
that expand more than text does are refused. Members of a tar are written while it is read.
"""

from __future__ import annotations

import lzma
import shutil
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from largegnn.data.compression import SUFFIXES, as_stream, first_bytes, read_chunks
from largegnn.data.inputs import DataInput, find_files
from largegnn.errors import InputError, StorageError
from largegnn.machine.atomic import write_folder
from largegnn.settings import DataSettings

__all__ = ["UnpackedSet", "unpack"]

# Text of triples is compressed to a twentieth, or to a two-hundredth if it is very regular.
_MAX_EXPANSION, _ALWAYS_ALLOWED = 500, 64 << 20
_CHUNK = 1 << 20
_LAYOUT_FILES = ({"rel_triples_1", "rel_triples_2"}, {"ent_ids_1", "ent_ids_2", "triples_1", "triples_2"})
_LARGEEA = {"_triples_1": "rel_triples_1", "_triples_2": "rel_triples_2", "_ent_links": "ent_links"}
# Exceptions of the libraries for a damaged file; the last row comes from headers with impossible numbers and names.
_DAMAGE = (
    *(zipfile.BadZipFile, tarfile.TarError, EOFError, lzma.LZMAError, zlib.error, RuntimeError),
    *(ValueError, LookupError, OverflowError, MemoryError, struct.error),
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

    A data set at the top of the archive, without its own folder, is unpacked to `out/top`.
    Existing folders are refused unless `force` replaces them.
    """
    if not archive.is_file():
        raise InputError("there is no such archive", where=str(archive), expected="a zip or tar file")
    try:
        out.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=out))
        try:
            files = scratch / "files"
            files.mkdir()
            _extract(archive, files, only)
            targets = _choose_targets(_find_sets(files), files, out, top, home, only, archive)
            existing = [str(path) for path in targets.values() if _is_taken(path)]
            if existing and not force:
                raise InputError(
                    "the folder exists already",
                    where=", ".join(existing),
                    fix="replace it with --force, or name another folder with --out DIR",
                )
            layouts = [find_files(DataInput(folder=folder), DataSettings()).layout for folder in targets]
            for folder, target in targets.items():
                write_folder(target, partial(_move_files, folder))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        raise StorageError(f"cannot unpack to {error.filename or out}: {error.strerror or error}") from error
    sizes = [sum(path.stat().st_size for path in target.rglob("*") if path.is_file()) for target in targets.values()]
    return [UnpackedSet(*entry) for entry in zip(targets.values(), layouts, sizes, strict=True)]


def _extract(archive: Path, folder: Path, only: str | None) -> None:
    """Write the files of an archive to a folder: all, or those in the folder called `only` and at the top."""
    try:
        if first_bytes(archive, 2) == b"PK":
            _extract_zip(archive, folder, only)
        else:
            _extract_tar(archive, folder, only)
    except _DAMAGE as error:
        raise _damaged(archive, error) from None
    except OSError as error:
        if error.errno is None:  # raised by a decompressor, not by the system
            raise _damaged(archive, error) from None
        raise


def _extract_zip(archive: Path, folder: Path, only: str | None) -> None:
    with zipfile.ZipFile(archive) as zipped:
        entries = [entry for entry in zipped.infolist() if not entry.is_dir() and _is_wanted(entry.filename, only)]
        num_plain, free = sum(entry.file_size for entry in entries), shutil.disk_usage(folder).free
        _check_expansion(num_plain, archive)
        if num_plain > free:
            raise StorageError(f"{archive} unpacks to {num_plain:,} bytes, but {folder.parent} has {free:,} free")
        for entry in entries:
            zipped.extract(entry, folder)


class _StrictMember(tarfile.TarInfo):
    """A member whose damaged or missing header is an error; `tarfile` would take it for the end of the archive."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> _StrictMember:
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.HeaderError as error:
            if type(error).__name__ == "EOFHeaderError":  # the proper end, blocks of zeros
                raise
            raise tarfile.ReadError(str(error)) from None


def _extract_tar(archive: Path, folder: Path, only: str | None) -> None:
    with (
        as_stream(_plain_chunks(archive)) as stream,
        tarfile.open(fileobj=stream, mode="r|", tarinfo=_StrictMember) as tar,
    ):
        for member in tar:
            tar.members = []  # type: ignore[attr-defined]  # otherwise tarfile keeps all members, each with a copy of shared headers
            if member.issparse() or not (member.isreg() or member.isdir()):
                raise InputError(
                    "the archive holds a link or a device, or a sparse file",
                    where=str(archive),
                    found=repr(member.name[:200]),
                    fix="do not trust this file; fetch another copy",
                )
            if member.isreg() and _is_wanted(member.name, only):
                tar.extract(member, folder, set_attrs=False, filter="data")
        while stream.read(_CHUNK):  # the checksum is behind the last member
            pass


def _plain_chunks(archive: Path) -> Iterator[bytes]:
    """Decompress a tar within bounds; at the end the library compares the checksum of the compression."""
    is_xz = first_bytes(archive, 6) == b"\xfd7zXZ\0"
    num_plain = 0
    for chunk in _xz_chunks(archive) if is_xz else read_chunks(archive):
        num_plain += len(chunk)
        _check_expansion(num_plain, archive)
        yield chunk


def _xz_chunks(archive: Path) -> Iterator[bytes]:
    with lzma.open(archive) as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _is_wanted(name: str, only: str | None) -> bool:
    """Whether a file of an archive may belong to the data set: in the folder called `only`, or at the top."""
    parts = [part.lower() for part in PurePosixPath(name).parts]
    if not parts or "__macosx" in parts or parts[-1].startswith("."):
        return False
    return only is None or only.lower() in parts or len(parts) == 1


def _check_expansion(num_plain: int, archive: Path) -> None:
    """Refuse an archive that unpacks to far more bytes than text does."""
    num_packed = archive.stat().st_size
    if num_plain > max(_ALWAYS_ALLOWED, _MAX_EXPANSION * num_packed):
        raise InputError(
            "the archive unpacks to more than a data set needs",
            where=str(archive),
            expected=f"at most {_MAX_EXPANSION} bytes for each compressed byte after the first "
            f"{_ALWAYS_ALLOWED >> 20} MiB, a limit that protects memory and disk",
            found=f"{num_plain:,} bytes or more from {num_packed:,} compressed bytes",
            fix="do not trust this file; if you do, unpack it with another program and use the folder",
        )


def _damaged(archive: Path, error: Exception) -> InputError:
    return InputError(
        "this is not an archive, or a damaged one",
        where=str(archive),
        expected="zip, tar, tar.gz, tar.bz2, tar.xz or tar.zst",
        found=str(error) or "a file that stops in the middle",
        fix="fetch it again",
    )


def _find_sets(root: Path) -> list[Path]:
    """Find every folder that has the files of a layout, only the outermost of nested folders."""
    for links in sorted(root.rglob("*?_ent_links")):
        prefix = links.name.removesuffix("_ent_links")
        files = {links.with_name(prefix + end): name for end, name in _LARGEEA.items()}
        if all(file.is_file() for file in files):
            (links.parent / prefix).mkdir()
            for file, name in files.items():
                file.rename(links.parent / prefix / name)
    data_sets: list[Path] = []
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    for folder in sorted(folders, key=lambda path: (len(path.parts), path)):
        names = [path.name for path in folder.iterdir() if path.is_file()]
        stems = {name.split(".")[0] for name in names}
        plain = {name.removesuffix(suffix) if (suffix := Path(name).suffix) in SUFFIXES else name for name in names}
        is_pair = {"source", "target"} <= stems and bool({"seeds", "train_links"} & stems)
        is_nested = any(outer in folder.parents for outer in data_sets)
        if not is_nested and (is_pair or any(layout_files <= plain for layout_files in _LAYOUT_FILES)):
            data_sets.append(folder)
    return data_sets


def _choose_targets(
    data_sets: list[Path], root: Path, out: Path, top: str, home: str, only: str | None, archive: Path
) -> dict[Path, Path]:
    """Choose the target folder of each data set: its folder's name, or its whole path if two names are equal."""
    chosen = [folder for folder in data_sets if only is None or folder.name.lower() == only.lower()]
    if only is not None and not chosen and data_sets == [root]:
        chosen = data_sets
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
            "two data sets of the archive would get the same folder", found=", ".join(map(str, targets.values()))
        )
    return targets


def _move_files(folder: Path, to: Path) -> None:
    for path in folder.iterdir():
        path.rename(to / path.name)


def _is_taken(path: Path) -> bool:
    return path.exists() and (not path.is_dir() or any(path.iterdir()))
