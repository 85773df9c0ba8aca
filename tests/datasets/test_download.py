"""Test transfers from a local server, with every kind of failure."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from largegnn.datasets import download
from largegnn.datasets.catalogue import DATASETS, RemoteFile, files_in_listing, find_dataset
from largegnn.datasets.download import FetchedArchive
from largegnn.errors import InputError, StorageError
from tests.datasets.mirror import BODY, Mirror, mirror

__all__ = ["mirror"]
SHA256 = hashlib.sha256(BODY).hexdigest()
TAG = f'"{hashlib.md5(BODY).hexdigest()}"'
NAME = "dbpedia1m-a.zip"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record pauses instead of sleeping."""
    found: list[float] = []
    monkeypatch.setattr(download, "time", SimpleNamespace(sleep=found.append))
    monkeypatch.setattr(download, "_TIMEOUT_S", 5)
    return found


def fetch(out: Path, url: str, checksum: str | None = None, *, trust: bool = False) -> FetchedArchive:
    return download._fetch(DATASETS["dbpedia1m"], RemoteFile("a.zip", url, checksum=checksum), out, trust)


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_arrives_whole(mirror: Mirror, tmp_path: Path, pauses: list[float]) -> None:
    archive = fetch(tmp_path / "new", mirror.url())
    assert archive.path.read_bytes() == BODY
    assert (archive.sha256, archive.size, archive.compared) == (SHA256, len(BODY), "nothing")
    assert names_in(tmp_path / "new") == {NAME, "checksums.json"}
    assert pauses == []


def test_a_dropped_connection_is_resumed_with_a_range(
    mirror: Mirror, tmp_path: Path, pauses: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    mirror.script = [("drop", 100_000), 503, ("drop", 50_000)]
    with caplog.at_level(logging.WARNING):
        assert fetch(tmp_path, mirror.url()).path.read_bytes() == BODY
    first, second = 6 * download._CHUNK, 9 * download._CHUNK  # whole chunks of 100,000 bytes, and of 50,000 more
    assert mirror.asked == [(None, None), *[(f"bytes={first}-", TAG)] * 2, (f"bytes={second}-", TAG)]
    assert pauses == [1.0, 2.0, 4.0]
    assert "attempt 1 of 5 stopped" in caplog.text


def test_a_silent_server_is_left_and_the_rest_is_requested(
    mirror: Mirror, tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_TIMEOUT_S", 0.3)
    mirror.script = [("hold", 100_000)]
    assert fetch(tmp_path, mirror.url()).path.read_bytes() == BODY
    assert [requested for requested, _ in mirror.asked] == [None, f"bytes={6 * download._CHUNK}-"]


def test_a_later_call_resumes_where_the_last_one_stopped(
    mirror: Mirror, tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_ATTEMPTS", 2)
    mirror.script = [("drop", 20_000), ("drop", 20_000)]
    with pytest.raises(InputError, match="the transfer stopped") as failure:
        fetch(tmp_path, mirror.url())
    assert "same command again" in str(failure.value)
    assert (tmp_path / f"{NAME}.partial").read_bytes() == BODY[: 2 * download._CHUNK]
    assert fetch(tmp_path, mirror.url()).path.read_bytes() == BODY
    assert mirror.asked[-1][0] == f"bytes={2 * download._CHUNK}-"
    assert names_in(tmp_path) == {NAME, "checksums.json"}


def test_the_rest_of_another_address_is_not_mixed_in(
    mirror: Mirror, tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_ATTEMPTS", 1)
    mirror.bodies["/other.zip"] = BODY[::-1]
    mirror.script = [("drop", 20_000)]
    with pytest.raises(InputError):
        fetch(tmp_path, mirror.url())
    assert fetch(tmp_path, mirror.url("/other.zip")).path.read_bytes() == BODY[::-1]
    assert mirror.asked[-1][0] is None


@pytest.mark.parametrize("without", ["ranges", "tags"])
def test_a_server_without_ranges_or_versions_sends_all_again(
    mirror: Mirror, tmp_path: Path, pauses: list[float], without: str
) -> None:
    setattr(mirror, without, False)
    mirror.script = [("drop", 100_000)]
    assert fetch(tmp_path, mirror.url()).path.read_bytes() == BODY


@pytest.mark.parametrize("new", [BODY[::-1], BODY[:5000]], ids=["other bytes", "shorter than what arrived"])
def test_content_that_changes_between_requests_is_never_mixed(
    mirror: Mirror, tmp_path: Path, pauses: list[float], new: bytes
) -> None:
    mirror.script = [("drop", 100_000), lambda at: at.bodies.update({"/file.zip": new})]
    assert fetch(tmp_path, mirror.url()).path.read_bytes() == new


def test_a_complete_partial_file_starts_again(mirror: Mirror, tmp_path: Path, pauses: list[float]) -> None:
    """After a crash between the last byte and the rename, the server has nothing more to send."""
    (tmp_path / f"{NAME}.partial").write_bytes(BODY)
    (tmp_path / f"{NAME}.partial.version").write_text(f"{mirror.url()}\n{TAG}")
    assert fetch(tmp_path, mirror.url()).path.read_bytes() == BODY


@pytest.mark.parametrize("status", [404, 403, 202])
def test_refusals_are_not_tried_again(mirror: Mirror, tmp_path: Path, pauses: list[float], status: int) -> None:
    """The bot protection of figshare answers 202 without a body."""
    mirror.script = [status]
    with pytest.raises(InputError) as failure:
        fetch(tmp_path, mirror.url())
    for part in (f"HTTP {status}", mirror.url(), "--mirror URL", "--from FILE"):
        assert part in str(failure.value)
    assert (len(mirror.asked), pauses) == (1, [])


def test_a_web_page_is_not_an_archive(mirror: Mirror, tmp_path: Path, pauses: list[float]) -> None:
    mirror.kind = "text/html; charset=utf-8"
    with pytest.raises(InputError, match="sent a web page instead"):
        fetch(tmp_path, mirror.url())
    assert names_in(tmp_path) == set()


def test_no_network_is_an_error_at_once(tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(InputError, match="does not answer") as failure:
            fetch(tmp_path, f"http://127.0.0.1:{closed.getsockname()[1]}/a.zip")
    assert "--from FILE" in str(failure.value)
    assert pauses == []


def test_a_full_disk(mirror: Mirror, tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(StorageError, match="not enough space"):
        fetch(tmp_path, mirror.url())


@pytest.mark.parametrize("algorithm", ["sha256", "sha512", "md5"])
def test_a_published_checksum_decides(mirror: Mirror, tmp_path: Path, pauses: list[float], algorithm: str) -> None:
    right, wrong = (f"{algorithm}:{hashlib.new(algorithm, body).hexdigest()}" for body in (BODY, BODY[1:]))
    assert fetch(tmp_path, mirror.url(), right).compared == "known"
    fetch(tmp_path, mirror.url(), right)
    assert len(mirror.asked) == 1, "a file that exists and is right is not fetched again"
    (tmp_path / NAME).write_bytes(BODY[1:])
    assert fetch(tmp_path, mirror.url(), right).path.read_bytes() == BODY
    (tmp_path / NAME).unlink()
    with pytest.raises(InputError, match="checksum is wrong"):
        fetch(tmp_path, mirror.url(), wrong)
    assert names_in(tmp_path) == {"checksums.json"}
    assert fetch(tmp_path, mirror.url(), wrong, trust=True).compared == "nothing"


def test_an_unpublished_checksum_is_recorded(mirror: Mirror, tmp_path: Path, pauses: list[float]) -> None:
    assert fetch(tmp_path, mirror.url()).compared == "nothing"
    assert fetch(tmp_path, mirror.url()).compared == "recorded"
    assert json.loads((tmp_path / "checksums.json").read_text())[NAME] == {"sha256": SHA256, "bytes": len(BODY)}
    (tmp_path / NAME).unlink()
    mirror.bodies["/file.zip"] = BODY[1:]
    with pytest.raises(InputError, match="checksum is wrong") as failure:
        fetch(tmp_path, mirror.url())
    for part in (SHA256, hashlib.sha256(BODY[1:]).hexdigest(), "checksums.json", "--skip-checksum"):
        assert part in str(failure.value)
    fetch(tmp_path, mirror.url(), trust=True)
    assert fetch(tmp_path, mirror.url()).compared == "recorded", "what was trusted is recorded"
    (tmp_path / "checksums.json").write_text("[")
    with pytest.raises(InputError, match="delete it"):
        fetch(tmp_path, mirror.url())


def test_the_catalogue_names_and_near_misses() -> None:
    assert len(DATASETS) == 19
    assert find_dataset("en-fr-15k-v1") is DATASETS["EN_FR_15K_V1"]
    with pytest.raises(InputError, match="did you mean EN_FR_15K_V"):
        find_dataset("EN_FR_15K")
    with pytest.raises(InputError, match="--list"):
        find_dataset("imagenet")
    for entry in DATASETS.values():
        assert entry.citation
        assert entry.page.startswith("https://")
        assert all(each.url.startswith("https://") for each in entry.mirrors)


def test_a_figshare_record(mirror: Mirror, pauses: list[float]) -> None:
    files = [
        {"name": "a.zip", "size": 7, "download_url": "https://x/1", "computed_md5": "0" * 32, "is_link_only": False},
        {"name": "readme.txt", "size": 3, "download_url": "https://x/2", "computed_md5": "1" * 32},
        {"name": "b.tar.gz", "size": 0, "download_url": "https://x/3", "computed_md5": ""},
    ]
    text = json.dumps({"files": files}).encode()
    mirror.bodies["/record"] = text
    mirror.script = [502]
    assert download._listed_files(DATASETS["dbpedia1m"], mirror.url("/record")) == [
        RemoteFile("a.zip", "https://x/1", 7, "md5:" + "0" * 32),
        RemoteFile("b.tar.gz", "https://x/3"),
    ]
    with pytest.raises(InputError, match="does not offer") as failure:
        files_in_listing(text, DATASETS["openea"], "u")
    assert "OpenEA_dataset_v1.1.zip" in str(failure.value)
    for bad in (b"<html>", b"{}", b'{"files": [1]}', b"3"):
        with pytest.raises(InputError, match="not a list of files"):
            files_in_listing(bad, DATASETS["openea"], "u")
