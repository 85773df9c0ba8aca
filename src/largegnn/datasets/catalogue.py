"""List the public data sets that can be fetched by name: their mirrors, files, licences and citations.

In: a name the user typed. Out: a `DataSet`, a frozen value; this module does not use the network. A mirror is either a
file with a direct address (`RemoteFile`) or the public record of a figshare item (`Listing`), which names files with
their sizes and MD5 sums. Addresses may change: users can replace them with `--mirror URL` or `--from FILE`.

Sources: OpenEA's README names the Dropbox file and figshare item 19258760, version 2, for v1.1 (version 3 is v2.0, with
the same folder names but other entity names). The SHA-512 comes from the public code of the `kgm` library. The paper
names figshare item 21119380 for DBpedia1M; the names of its files are not known. DBP1M, LargeEA's data set, is a
different one: its README links Google Drive, which requires a click. None of these addresses has been tried.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from largegnn.errors import InputError

__all__ = ["ARCHIVE_SUFFIXES", "DATASETS", "DataSet", "Listing", "RemoteFile", "files_in_listing", "find_dataset"]

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst")


@dataclass(frozen=True)
class RemoteFile:
    """A file with an address; `checksum` is `ALGORITHM:HEX` with an algorithm of hashlib, such as `sha512:...`."""

    name: str
    url: str
    size: int | None = None
    checksum: str | None = None


@dataclass(frozen=True)
class Listing:
    """The public record of a figshare item, as JSON."""

    url: str


@dataclass(frozen=True)
class DataSet:
    """An entry of the catalogue.

    `folder` is the only folder of the archive to unpack, None for all; `home` is the folder below --out for the
    unpacked folders ("" for --out itself). Mirrors are tried in order; without mirrors, the user fetches the file.
    """

    name: str
    title: str
    archive: str | None
    mirrors: tuple[RemoteFile | Listing, ...]
    page: str
    licence: str
    citation: str
    folder: str | None = None
    home: str = ""
    note: str = ""

    def known_checksum(self, file_name: str) -> str | None:
        """Return the published checksum of a file, None if it is not known."""
        files = (mirror for mirror in self.mirrors if isinstance(mirror, RemoteFile))
        return next((file.checksum for file in files if file.name == file_name), None)


_OPENEA_FOLDERS = tuple(
    f"{pair}_{size}_{version}"
    for size in ("15K", "100K")
    for pair in ("EN_FR", "EN_DE", "D_W", "D_Y")
    for version in ("V1", "V2")
)
_OPENEA_ZIP = "OpenEA_dataset_v1.1.zip"


def _openea(name: str, title: str, folder: str | None) -> DataSet:
    return DataSet(
        name=name,
        title=title,
        archive=_OPENEA_ZIP,
        mirrors=(
            RemoteFile(
                _OPENEA_ZIP,
                "https://www.dropbox.com/s/nzjxbam47f9yk3d/OpenEA_dataset_v1.1.zip?dl=1",
                checksum="sha512:b7d1465c60130a02e9eec85e43841bb2d777fd2d13133f06c29d5507bc12cb29"
                "ebec1065319a5d746fe261ee459dba7c16d61095d7cc7038274dc63932e93029",
            ),
            Listing("https://api.figshare.com/v2/articles/19258760/versions/2"),
        ),
        page="https://figshare.com/articles/dataset/OpenEA_dataset_v1_1/19258760/2",
        licence="as stated on the page; drawn from DBpedia, Wikidata and YAGO, each with its own licence",
        citation="Sun et al.: A Benchmarking Study of Embedding-based Entity Alignment for Knowledge Graphs. "
        "PVLDB 13, 2020. https://github.com/nju-websoft/OpenEA",
        folder=folder,
    )


DATASETS: dict[str, DataSet] = {
    entry.name: entry
    for entry in (
        _openea("openea", "OpenEA v1.1, all 16 sets", None),
        *(_openea(folder, f"OpenEA v1.1, {folder} alone", folder) for folder in _OPENEA_FOLDERS),
        DataSet(
            name="dbpedia1m",
            title="DBpedia1M, EN-FR and EN-DE, the LargeGNN paper's",
            archive=None,
            mirrors=(Listing("https://api.figshare.com/v2/articles/21119380"),),
            page="https://doi.org/10.6084/m9.figshare.21119380",
            licence="as stated on the page; drawn from DBpedia",
            citation="Xin et al.: Large-scale Entity Alignment via Knowledge Graph Merging, Partitioning and "
            "Embedding. CIKM 2022. https://arxiv.org/abs/2208.11125",
            home="dbpedia1m",
        ),
        DataSet(
            name="dbp1m",
            title="DBP1M, EN-FR and EN-DE, LargeEA's (not DBpedia1M)",
            archive="mkdata.zip",
            mirrors=(),
            page="https://drive.google.com/file/d/15jeGD-6pVGlqI5jCn7KJfGIER6AeoQ-L/view",
            licence="as stated on the page; drawn from DBpedia",
            citation="Ge et al.: LargeEA: Aligning Entities for Large-scale Knowledge Graphs. "
            "https://arxiv.org/abs/2108.05211 https://github.com/ZJU-DAILY/LargeEA",
            home="dbp1m",
            note="Google Drive requires a browser: open the page, fetch mkdata.zip, then give it with --from",
        ),
    )
}


def find_dataset(name: str, datasets: Mapping[str, DataSet] = DATASETS) -> DataSet:
    """Find a data set by name; case and - or _ do not matter. The error for an unknown name suggests similar names."""
    names = {_normalised(known): known for known in datasets}
    if _normalised(name) in names:
        return datasets[names[_normalised(name)]]
    close = [names[match] for match in difflib.get_close_matches(_normalised(name), list(names), n=3, cutoff=0.6)]
    raise InputError(
        f"no public data set is called {name!r}",
        expected=", ".join(datasets),
        fix=f"did you mean {' or '.join(close)}?" if close else "list the names with `largegnn download --list`",
    )


def files_in_listing(text: bytes, dataset: DataSet, url: str) -> list[RemoteFile]:
    """Return the archives in a figshare record: the archive that the data set names, or all archives."""
    try:
        record: Any = json.loads(text)
        entries = record["files"] if isinstance(record, dict) else record
        files = [_listed_file(entry) for entry in entries if not entry.get("is_link_only")]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(
            "the answer of the mirror is not a list of files",
            where=url,
            expected="a figshare record with files, each with name, size and download_url",
            found=repr(text[:80]),
            fix=f"fetch the file by hand from {dataset.page} and give it with --from FILE",
        ) from None
    wanted = [
        file
        for file in files
        if (file.name == dataset.archive if dataset.archive else file.name.lower().endswith(ARCHIVE_SUFFIXES))
    ]
    if not wanted:
        raise InputError(
            "the record does not offer the data set's archive",
            where=url,
            expected=dataset.archive or f"a file ending in {', '.join(ARCHIVE_SUFFIXES)}",
            found=", ".join(file.name for file in files) or "no files",
            fix=f"open {dataset.page}, fetch the file by hand and give it with --from FILE",
        )
    return wanted


def _listed_file(entry: Mapping[str, Any]) -> RemoteFile:
    md5 = str(entry.get("computed_md5") or entry.get("supplied_md5") or "").lower()
    size = entry.get("size")
    return RemoteFile(
        name=str(entry["name"]),
        url=str(entry["download_url"]),
        size=size if isinstance(size, int) and size > 0 else None,
        checksum=f"md5:{md5}" if re.fullmatch(r"[0-9a-f]{32}", md5) else None,
    )


def _normalised(name: str) -> str:
    return name.strip().lower().replace("-", "_")
