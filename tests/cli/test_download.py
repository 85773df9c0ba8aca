"""`largegnn download` against a server of our own; the real mirrors are never asked."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from largegnn import api
from largegnn.cli.data import download_command as command
from largegnn.datasets import download
from largegnn.datasets.catalogue import DATASETS, DataSet, Listing, RemoteFile
from largegnn.errors import InputError
from tests.cli.test_cli import largegnn as run
from tests.datasets.mirror import Mirror, mirror
from tests.datasets.test_unpack import LINKS, OPENEA, TRIPLES, below, children, make_tar, make_zip

__all__ = ["mirror"]
ZIP = "OpenEA_dataset_v1.1.zip"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A tiny archive in the shape of OpenEA's."""
    files = below("OpenEA_dataset_v1.1/EN_FR_15K_V1", OPENEA) | below("OpenEA_dataset_v1.1/D_W_15K_V1", OPENEA)
    return make_zip(tmp_path / ZIP, files)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, DataSet]:
    """A catalogue of our own in place of the real one, and no sleeping."""
    entries: dict[str, DataSet] = {}
    monkeypatch.setattr(download, "DATASETS", entries)
    monkeypatch.setattr(download, "_FIRST_PAUSE_S", 0.0)
    return entries


def fetch(name: str | None = None, **given: Any) -> None:
    """The command as a function, with its defaults."""
    plain: dict[str, Any] = {"out": Path("data"), "show_list": False, "as_json": False}
    assert command.callback is not None
    command.callback(name, **{**plain, **given})


def add(known: dict[str, DataSet], name: str, like: str, *mirrors: RemoteFile | Listing, **changes: Any) -> None:
    known[name] = dataclasses.replace(DATASETS[like], name=name, mirrors=mirrors, **changes)


def checksum(body: bytes) -> str:
    return "sha512:" + hashlib.sha512(body).hexdigest()


def test_from_a_mirror_to_a_loaded_pair(mirror: Mirror, archive: Path, tmp_path: Path) -> None:
    """The whole command in a process of its own, twice; the file is not the published one, which is noticed."""
    mirror.bodies = {"/pub/small.zip": archive.read_bytes(), f"/pub/{ZIP}": archive.read_bytes()}
    out = tmp_path / "data"
    ended = run("download", "en-fr-15k-v1", "--out", out, "--mirror", mirror.url("/pub/small.zip"), no_proxy="*")
    assert f"next     largegnn inspect {out / 'EN_FR_15K_V1'}" in ended.stdout
    assert "no published checksum is known" in ended.stdout
    assert "Sun et al." in ended.stdout
    pair = api.load(out / "EN_FR_15K_V1")
    assert (pair.summary.layout, len(pair.task.triples), len(pair.task.train_links)) == ("openea", 4, 1)
    assert children(out) == ["EN_FR_15K_V1", "EN_FR_15K_V1-small.zip", "checksums.json"]
    assert "replace it with --force" in run("download", "EN_FR_15K_V1", "--out", out, expect=2).stderr
    wrong = run("download", "openea", "--out", out, "--mirror", mirror.url("/pub/"), expect=2, no_proxy="*")
    assert "expected: sha512:b7d1465c" in wrong.stderr
    assert not (out / ZIP).exists()


def test_a_killed_command_is_resumed(mirror: Mirror, tmp_path: Path) -> None:
    noise = random.Random(0).randbytes(300_000).hex()
    body = make_zip(tmp_path / "made.zip", below("x/EN_FR_15K_V1", OPENEA | {"attr_triples_1": noise})).read_bytes()
    mirror.bodies, mirror.script = {"/big.zip": body}, [("hold", 200_000)]
    call: list[str | Path] = ["download", "EN_FR_15K_V1", "--mirror", mirror.url("/big.zip"), "--out", tmp_path / "out"]
    partial = tmp_path / "out" / "EN_FR_15K_V1-big.zip.partial"
    with subprocess.Popen(
        [sys.executable, "-m", "largegnn", *map(str, call)],
        env=os.environ | {"no_proxy": "*"},
        stderr=subprocess.DEVNULL,
    ) as process:
        deadline = time.monotonic() + 60
        while not (partial.exists() and partial.stat().st_size > 100_000) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
    kept = partial.stat().st_size
    assert 100_000 < kept <= 200_000
    mirror.released.set()
    facts = json.loads(run(*call, "--json", no_proxy="*").stdout)
    assert mirror.asked[1][0] == f"bytes={kept}-"
    assert facts["archives"][0]["sha256"] == hashlib.sha256(body).hexdigest()


def test_a_known_checksum_and_the_second_mirror(
    mirror: Mirror, archive: Path, tmp_path: Path, known: dict[str, DataSet], capsys: pytest.CaptureFixture[str]
) -> None:
    body = archive.read_bytes()
    mirror.bodies = {"/x.zip": body}
    mirror.script = [404, ("drop", 500)]
    add(
        known,
        "openea",
        "openea",
        RemoteFile(ZIP, mirror.url("/gone.zip")),
        RemoteFile(ZIP, mirror.url("/x.zip"), checksum=checksum(body)),
    )
    fetch("openea", out=tmp_path / "out", as_json=True, keep=False)
    facts = json.loads(capsys.readouterr().out)
    assert [Path(entry["folder"]).name for entry in facts["folders"]] == ["D_W_15K_V1", "EN_FR_15K_V1"]
    (one,) = facts["archives"]
    assert (one["compared"], one["kept"], one["sha256"]) == ("known", False, hashlib.sha256(body).hexdigest())
    assert children(tmp_path / "out") == ["D_W_15K_V1", "EN_FR_15K_V1", "checksums.json"]


def test_a_wrong_checksum_leaves_nothing(
    mirror: Mirror, archive: Path, tmp_path: Path, known: dict[str, DataSet], capsys: pytest.CaptureFixture[str]
) -> None:
    mirror.bodies = {"/x.zip": archive.read_bytes()}
    add(known, "openea", "openea", RemoteFile(ZIP, mirror.url("/x.zip"), checksum=checksum(b"other")))
    with pytest.raises(InputError, match="checksum is wrong"):
        fetch("openea", out=tmp_path / "out")
    assert children(tmp_path / "out") == []
    fetch("openea", out=tmp_path / "out", trust=True)
    assert "recorded" in capsys.readouterr().out


def test_the_archive_that_is_there_is_not_fetched_again(
    mirror: Mirror, archive: Path, tmp_path: Path, known: dict[str, DataSet], caplog: pytest.LogCaptureFixture
) -> None:
    body = archive.read_bytes()
    mirror.bodies = {"/x.zip": body}
    source = RemoteFile(ZIP, mirror.url("/x.zip"), checksum=checksum(body))
    for name in ("EN_FR_15K_V1", "D_W_15K_V1"):
        add(known, name, name, source)
        fetch(name, out=tmp_path / "out")
    assert len(mirror.asked) == 1
    (tmp_path / "out" / ZIP).write_bytes(body[:-5])
    with caplog.at_level(logging.WARNING):
        fetch("D_W_15K_V1", out=tmp_path / "out", force=True)
    assert "fetching it again" in caplog.text
    assert len(mirror.asked) == 2


def test_an_unpublished_checksum_is_compared_with_the_last_time(
    mirror: Mirror, archive: Path, tmp_path: Path, known: dict[str, DataSet], capsys: pytest.CaptureFixture[str]
) -> None:
    mirror.bodies = {"/x.zip": archive.read_bytes()}
    add(known, "openea", "openea", RemoteFile(ZIP, mirror.url("/x.zip")))
    for words in ("no published checksum is known", "equal to the checksum recorded last time"):
        fetch("openea", out=tmp_path / "out", keep=False, force=True)
        assert words in capsys.readouterr().out
    mirror.bodies = {"/x.zip": make_zip(tmp_path / "new.zip", below("EN_FR_15K_V1", OPENEA)).read_bytes()}
    with pytest.raises(InputError, match=r"checksums\.json"):
        fetch("openea", out=tmp_path / "out", force=True)
    assert api.load(tmp_path / "out" / "EN_FR_15K_V1").task.num_entities == 6, "the old folder stays"


def test_a_figshare_record_with_two_archives(
    mirror: Mirror, tmp_path: Path, known: dict[str, DataSet], capsys: pytest.CaptureFixture[str]
) -> None:
    """The files of DBpedia1M's item are not known: one file, or one for each pair, with or without folders."""
    flat = make_zip(tmp_path / "EN_FR.zip", TRIPLES | LINKS).read_bytes()
    deep = make_tar(tmp_path / "EN_DE.tar.gz", below("x/y/EN_DE_1M", TRIPLES | LINKS)).read_bytes()
    mirror.bodies = {"/1": flat, "/2": deep}
    listed = [
        {
            "name": name,
            "size": len(data),
            "download_url": mirror.url(path),
            "computed_md5": hashlib.md5(data).hexdigest(),
        }
        for name, path, data in (("EN_FR.zip", "/1", flat), ("EN_DE.tar.gz", "/2", deep))
    ]
    mirror.bodies["/record"] = json.dumps({"files": listed}).encode()
    add(known, "dbpedia1m", "dbpedia1m", Listing(mirror.url("/record")))
    fetch("dbpedia1m", out=tmp_path / "out", as_json=True)
    facts = json.loads(capsys.readouterr().out)
    assert [entry["compared"] for entry in facts["archives"]] == ["known", "known"]
    assert [Path(entry["folder"]).relative_to(tmp_path / "out") for entry in facts["folders"]] == [
        Path("dbpedia1m/EN_FR"),
        Path("dbpedia1m/EN_DE_1M"),
    ]
    for entry in facts["folders"]:
        assert api.load(entry["folder"]).summary.layout == "dbpedia1m"


def test_no_mirror_has_it(mirror: Mirror, tmp_path: Path, known: dict[str, DataSet]) -> None:
    mirror.bodies = {}
    add(known, "openea", "openea", RemoteFile(ZIP, mirror.url("/a")), Listing(mirror.url("/b")))
    add(known, "dbp1m", "dbp1m")
    with pytest.raises(InputError, match="could not be fetched") as failure:
        fetch("openea", out=tmp_path / "out")
    for part in ("/a", "/b", "HTTP 404", "--from FILE", DATASETS["openea"].page):
        assert part in str(failure.value)
    with pytest.raises(InputError, match="requires a browser"):
        fetch("dbp1m", out=tmp_path / "out")


def test_a_file_on_this_machine(archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    by_hand = archive.rename(tmp_path / "mine.zip")
    fetch("D_W_15K_V1", out=tmp_path / "out", file=by_hand, keep=False)
    assert by_hand.exists(), "only what was fetched is removed"
    assert "D_W_15K_V1" in capsys.readouterr().out
    with pytest.raises(InputError, match="checksum is wrong"):
        fetch("openea", out=tmp_path / "out", file=by_hand.rename(archive))
    assert archive.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": None}, "no data set was named"),
        ({"name": "EN_FR_15K"}, "did you mean"),
        ({"name": "openea", "file": Path("nowhere.zip")}, "there is no such file"),
        ({"name": "openea", "file": Path("x"), "mirror": "http://x/"}, "exclude each other"),
        ({"name": "openea", "mirror": "ftp://x/a.zip"}, "cannot be fetched"),
        ({"name": "dbpedia1m", "mirror": "http://127.0.0.1:9/"}, "archive is not known"),
    ],
)
def test_impossible_calls(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fetch(**arguments, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    fetch(show_list=True)
    assert "EN_DE_100K_V2" in capsys.readouterr().out
    fetch(show_list=True, as_json=True)
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)] == list(DATASETS)
