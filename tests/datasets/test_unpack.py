"""Test unpacking small archives, valid and hostile."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard

from largegnn.datasets.unpack import unpack
from largegnn.errors import InputError, StorageError

TRIPLES = {"rel_triples_1": "a\tr\tb\nb\tr\tc\n", "rel_triples_2": "A\tp\tB\nB\tp\tC\n"}
LINKS = {"train_links": "a\tA\n", "valid_links": "b\tB\n", "test_links": "c\tC\n"}
OPENEA = TRIPLES | {"ent_links": "".join(LINKS.values())}
OPENEA |= {f"721_5fold/{fold}/{name}": text for fold in (1, 2) for name, text in LINKS.items()}


def below(folder: str, files: dict[str, str]) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in files.items()}


def make_zip(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return path


def make_tar(path: Path, files: dict[str, str], *special: tarfile.TarInfo) -> Path:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as packed:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            packed.addfile(member, io.BytesIO(text.encode()))
        for member in special:
            packed.addfile(member)
    data = plain.getvalue()
    compressions: dict[str, Callable[[bytes], bytes]]
    compressions = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
    path.write_bytes(compressions.get(path.suffix, bytes)(data))
    return path


def names_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def children(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("suffix", ["zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst"])
def test_every_compression_gives_the_same_folders(tmp_path: Path, suffix: str) -> None:
    files = below("OpenEA_dataset_v1.1/EN_FR_15K_V1", OPENEA) | below("OpenEA_dataset_v1.1/deep/er/D_W_15K_V1", OPENEA)
    files |= {"OpenEA_dataset_v1.1/readme.txt": "hello", "__MACOSX/EN_FR_15K_V1/._rel_triples_1": "x"}
    make = make_zip if suffix == "zip" else make_tar
    made = unpack(make(tmp_path / f"a.{suffix}", files), tmp_path / "out", top="openea")
    assert [(entry.folder.name, entry.layout) for entry in made] == [
        ("EN_FR_15K_V1", "openea"),
        ("D_W_15K_V1", "openea"),
    ]
    assert names_in(tmp_path / "out" / "EN_FR_15K_V1") == sorted(OPENEA)
    assert children(tmp_path / "out") == ["D_W_15K_V1", "EN_FR_15K_V1"]
    assert made[0].size == sum(map(len, OPENEA.values()))


def test_one_folder_of_many(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", below("x/EN_FR_15K_V1", OPENEA) | below("x/EN_DE_15K_V1", OPENEA))
    unpack(archive, tmp_path / "out", top="t", only="EN_DE_15K_V1")
    assert children(tmp_path / "out") == ["EN_DE_15K_V1"]
    with pytest.raises(InputError, match="no data set called D_Y_15K_V1"):
        unpack(archive, tmp_path / "out", top="t", only="D_Y_15K_V1")


def test_other_layouts_and_folders(tmp_path: Path) -> None:
    flat = unpack(make_zip(tmp_path / "flat.zip", TRIPLES | LINKS), tmp_path / "1", top="home", only="EN_FR_15K_V1")
    assert [(entry.folder, entry.layout) for entry in flat] == [(tmp_path / "1" / "home", "dbpedia1m")]
    same = below("v1/EN_FR", TRIPLES | LINKS) | below("v2/EN_FR", OPENEA)
    twins = unpack(make_zip(tmp_path / "same.zip", same), tmp_path / "2", top="t", home="h")
    assert [str(entry.folder.relative_to(tmp_path / "2")) for entry in twins] == ["h/v1-EN_FR", "h/v2-EN_FR"]
    ids = {"ent_ids_1": "0\ta\n", "ent_ids_2": "1\tA\n", "triples_1": "0\t0\t0\n", "triples_2": "1\t1\t1\n"}
    ids |= {"sup_ent_ids": "0\t1\n", "ref_ent_ids": ""}
    pair = {"source.tsv": "a\tr\tb\n", "target.nt.gz": "", "seeds.tsv": "a\tA\n"}
    clash = below("a/x", OPENEA) | below("b/x", OPENEA) | below("a-x", OPENEA)
    with pytest.raises(InputError, match="would get the same folder"):
        unpack(make_zip(tmp_path / "clash.zip", clash), tmp_path / "4", top="t")
    both = unpack(make_zip(tmp_path / "b.zip", below("fr_en", ids) | below("p", pair)), tmp_path / "3", top="t")
    assert {entry.folder.name: entry.layout for entry in both} == {"fr_en": "dbp15k", "p": "pair"}


def test_the_files_of_largeea_are_renamed(tmp_path: Path) -> None:
    files = {
        f"mkdata/{lang}{end}": text
        for lang in ("fr", "de")
        for end, text in (
            ("_triples_1", "a\tr\tb\n"),
            ("_triples_2", "A\tp\tB\n"),
            ("_ent_links", "a\tA\nb\tB\n"),
            ("_triples_strict_1", "a\tr\tb\n"),
        )
    }
    made = unpack(make_zip(tmp_path / "mkdata.zip", files), tmp_path, top="dbp1m", home="dbp1m")
    assert [entry.folder for entry in made] == [tmp_path / "dbp1m" / "de", tmp_path / "dbp1m" / "fr"]
    assert names_in(tmp_path / "dbp1m" / "fr") == ["ent_links", "rel_triples_1", "rel_triples_2"]


def test_existing_folders_stay_unless_forced(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", below("EN_FR", OPENEA))
    standing = tmp_path / "out" / "EN_FR"
    standing.mkdir(parents=True)
    unpack(archive, tmp_path / "out", top="t")
    (standing / "mine").write_text("notes")
    with pytest.raises(InputError, match="exists already"):
        unpack(archive, tmp_path / "out", top="t")
    assert (standing / "mine").exists()
    unpack(archive, tmp_path / "out", top="t", force=True)
    assert names_in(tmp_path / "out") == sorted(f"EN_FR/{name}" for name in OPENEA)


@pytest.mark.parametrize("name", ["../evil", "EN_FR/../../evil", "/etc/evil", "C:\\evil", "..\\evil"])
def test_names_that_lead_outside_write_nothing_there(tmp_path: Path, name: str) -> None:
    for archive in (
        make_zip(tmp_path / "a.zip", below("EN_FR", OPENEA) | {name: "x"}),
        make_tar(tmp_path / "a.tar", below("EN_FR", OPENEA) | {name: "x"}),
    ):
        with contextlib.suppress(InputError):  # raised for tarfile; zipfile removes the dots and the drive
            unpack(archive, tmp_path / "out", top="t", force=True)
        assert children(tmp_path) == ["a.tar", "a.zip", "out"]
        assert children(tmp_path / "out") in ([], ["EN_FR"])
    assert not Path("/etc/evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("EN_FR/attr_triples_1")
    member.type, member.linkname = kind, "/etc/passwd"
    with pytest.raises(InputError, match="link or a device"):
        unpack(make_tar(tmp_path / "a.tar", below("EN_FR", OPENEA), member), tmp_path / "out", top="t")


def test_more_bytes_than_the_disk_has_are_refused_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = make_zip(tmp_path / "bomb.zip", below("EN_FR", OPENEA | {"attr_triples_1": "0" * 5_000_000}))
    assert archive.stat().st_size < 20_000
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=4_000_000))
    with pytest.raises(StorageError, match=r"unpacks to 5,000,\d+ bytes"):
        unpack(archive, tmp_path / "out", top="t")
    assert children(tmp_path / "out") == []


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = below("EN_FR", {name: text for name, text in OPENEA.items() if name != "721_5fold/1/train_links"})
    with pytest.raises(InputError, match="no file train_links"):
        unpack(make_zip(tmp_path / "a.zip", broken), tmp_path / "out", top="t")
    assert children(tmp_path / "out") == []

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(StorageError, match="No space left"):
        unpack(make_zip(tmp_path / "b.zip", below("EN_FR", OPENEA)), tmp_path / "out", top="t")
    assert children(tmp_path / "out") == []


def test_damaged_and_foreign_files(tmp_path: Path) -> None:
    for suffix in ("zip", "tar", "tar.gz", "tar.xz", "tar.zst"):
        make = make_zip if suffix == "zip" else make_tar
        archive = make(tmp_path / f"a.{suffix}", below("EN_FR", OPENEA | {"attr_triples_1": os.urandom(9000).hex()}))
        archive.write_bytes(archive.read_bytes()[:4000])
        with pytest.raises(InputError, match=r"damaged|ends too early"):
            unpack(archive, tmp_path / "out", top="t")
    flipped = make_zip(tmp_path / "flipped.zip", below("EN_FR", OPENEA))
    data = bytearray(flipped.read_bytes())
    data[52] ^= 0xFF
    flipped.write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        unpack(flipped, tmp_path / "out", top="t")
    page = tmp_path / "page.zip"
    page.write_text("<!DOCTYPE html><html>log in first</html>" * 50)
    with pytest.raises(InputError, match="not an archive"):
        unpack(page, tmp_path / "out", top="t")
    with pytest.raises(InputError, match="no data set in a known layout"):
        unpack(make_zip(tmp_path / "c.zip", {"pictures/cat.jpg": "x"}), tmp_path / "out", top="t")
    with pytest.raises(InputError, match="no such archive"):
        unpack(tmp_path / "nowhere.zip", tmp_path / "out", top="t")
    assert not (tmp_path / "out").exists() or children(tmp_path / "out") == []
