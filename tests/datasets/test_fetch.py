"""Transfers from a server of our own on this machine: one that behaves, and one for each way not to."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from largegnn.datasets import fetch as fetching
from largegnn.datasets.catalogue import DATASETS, RemoteFile, files_in_listing, find_dataset
from largegnn.datasets.checksums import LEDGER, verify
from largegnn.datasets.fetch import RetryPolicy, UnavailableError, fetch, read_small
from largegnn.errors import InputError, StorageError

BODY = bytes(range(256)) * 1200  # 307,200 bytes


class Mirror(ThreadingHTTPServer):
    """Serves `bodies` by path; `script` says what to do with the next requests, instead of behaving.

    A number is a status without a body; ("drop", n) sends n bytes of the answer and hangs up, ("hold", n) sends n bytes
    and waits until `released`; a function may change the mirror before it answers as usual.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: dict[str, bytes] = {"/file.zip": BODY}
        self.script: list[int | tuple[str, int] | Callable[[Mirror], None]] = []
        self.ranges = self.tags = self.lengths = True
        self.kind = "application/zip"
        self.released = threading.Event()
        self.asked: list[tuple[str | None, str | None]] = []

    def url(self, path: str = "/file.zip") -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


class _Handler(BaseHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        mirror = self.server
        mirror.asked.append((self.headers.get("Range"), self.headers.get("If-Range")))
        step = mirror.script.pop(0) if mirror.script else None
        if callable(step):
            step(mirror)
        body = mirror.bodies.get(self.path.split("?")[0])
        if isinstance(step, int) or body is None:
            self.send_response(step if isinstance(step, int) else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        tag = f'"{hashlib.md5(body).hexdigest()}"'
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(wanted[1]) if wanted and mirror.ranges and self.headers.get("If-Range", tag) == tag else 0
        if start and start >= len(body):
            self.send_response(416)
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Type", mirror.kind)
        if mirror.lengths:
            self.send_header("Content-Length", str(len(body) - start))
        if mirror.tags:
            self.send_header("ETag", tag)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        self.wfile.write(body[start : start + step[1]] if isinstance(step, tuple) else body[start:])
        if isinstance(step, tuple) and step[0] == "hold":
            self.wfile.flush()
            mirror.released.wait(60)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    monkeypatch.setenv("no_proxy", "*")
    server = Mirror()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


class Waits(list[float]):
    """Pauses that are noted, not slept."""

    def policy(self, attempts: int = 5) -> RetryPolicy:
        return RetryPolicy(attempts=attempts, timeout_s=5, pause=self.append)


@pytest.fixture
def waits() -> Waits:
    return Waits()


def leftovers(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_arrives_whole_with_progress(mirror: Mirror, tmp_path: Path, waits: Waits) -> None:
    seen: list[tuple[int, int | None]] = []
    path = fetch(RemoteFile("a.zip", mirror.url()), tmp_path / "new", waits.policy(), lambda *state: seen.append(state))
    assert path.read_bytes() == BODY
    assert leftovers(tmp_path / "new") == {"a.zip"}
    assert (seen[0], seen[-1], waits) == ((0, len(BODY)), (len(BODY), len(BODY)), [])


def test_a_dropped_connection_is_resumed_with_a_range(
    mirror: Mirror, tmp_path: Path, waits: Waits, caplog: pytest.LogCaptureFixture
) -> None:
    mirror.script = [("drop", 100_000), ("drop", 50_000)]
    with caplog.at_level(logging.WARNING):
        path = fetch(RemoteFile("a.zip", mirror.url()), tmp_path, waits.policy())
    assert path.read_bytes() == BODY
    tag = f'"{hashlib.md5(BODY).hexdigest()}"'
    assert mirror.asked == [(None, None), ("bytes=100000-", tag), ("bytes=150000-", tag)]
    assert waits == [1.0, 2.0]
    assert "attempt 1 of 5 stopped: the connection ended after 100,000 of 307,200 bytes" in caplog.text


def test_a_server_that_falls_silent_is_left_and_asked_for_the_rest(
    mirror: Mirror, tmp_path: Path, waits: Waits
) -> None:
    mirror.script = [("hold", 100_000)]
    path = fetch(RemoteFile("a.zip", mirror.url()), tmp_path, RetryPolicy(timeout_s=0.3, pause=waits.append))
    assert (path.read_bytes(), [asked for asked, _ in mirror.asked]) == (BODY, [None, "bytes=100000-"])


def test_a_later_call_resumes_where_the_last_one_gave_up(mirror: Mirror, tmp_path: Path, waits: Waits) -> None:
    mirror.script = [("drop", 1000), ("drop", 1000)]
    with pytest.raises(UnavailableError, match="stopped 2 times") as failure:
        fetch(RemoteFile("a.zip", mirror.url()), tmp_path, waits.policy(2))
    assert "resume after 2,000 bytes" in str(failure.value)
    assert leftovers(tmp_path) == {"a.zip.partial", "a.zip.partial.json"}
    assert (tmp_path / "a.zip.partial").read_bytes() == BODY[:2000]
    path = fetch(RemoteFile("a.zip", mirror.url()), tmp_path, waits.policy())
    assert (path.read_bytes(), mirror.asked[-1][0]) == (BODY, "bytes=2000-")


def test_what_another_address_left_is_not_continued(mirror: Mirror, tmp_path: Path, waits: Waits) -> None:
    mirror.bodies["/other.zip"] = BODY[::-1]
    mirror.script = [("drop", 1000)]
    with pytest.raises(UnavailableError):
        fetch(RemoteFile("a.zip", mirror.url()), tmp_path, waits.policy(1))
    path = fetch(RemoteFile("a.zip", mirror.url("/other.zip")), tmp_path, waits.policy())
    assert (path.read_bytes(), mirror.asked[-1][0]) == (BODY[::-1], None)


def test_a_server_without_ranges_is_taken_from_the_start(mirror: Mirror, tmp_path: Path, waits: Waits) -> None:
    mirror.ranges = False
    mirror.script = [("drop", 100_000)]
    assert fetch(RemoteFile("a.zip", mirror.url()), tmp_path, waits.policy()).read_bytes() == BODY


def test_without_a_version_only_a_known_checksum_allows_resuming(mirror: Mirror, tmp_path: Path, waits: Waits) -> None:
    mirror.tags = False
    mirror.script = [("drop", 100_000)]
    fetch(RemoteFile("a.zip", mirror.url()), tmp_path, waits.policy())
    mirror.script = [("drop", 100_000)]
    fetch(RemoteFile("b.zip", mirror.url(), checksum="sha256:00"), tmp_path, waits.policy())
    assert [asked for asked, _ in mirror.asked] == [None, None, None, "bytes=100000-"]
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes() == BODY


@pytest.mark.parametrize("new", [BODY[::-1], BODY[:5000]], ids=["other bytes", "shorter than what we have"])
def test_content_that_changes_between_requests_is_never_mixed(
    mirror: Mirror, tmp_path: Path, waits: Waits, new: bytes
) -> None:
    def change(at: Mirror) -> None:
        at.bodies["/file.zip"] = new

    mirror.script = [("drop", 100_000), change]
    assert fetch(RemoteFile("a.zip", mirror.url()), tmp_path, waits.policy()).read_bytes() == new


def test_a_rest_that_is_no_longer_there_starts_again(mirror: Mirror, tmp_path: Path, waits: Waits) -> None:
    mirror.tags = False
    mirror.script = [("drop", 100_000), lambda at: at.bodies.update({"/file.zip": BODY[:5000]})]
    path = fetch(RemoteFile("a.zip", mirror.url(), checksum="sha256:00"), tmp_path, waits.policy())
    assert path.read_bytes() == BODY[:5000]


def test_server_errors_are_tried_again_and_counted(mirror: Mirror, tmp_path: Path, waits: Waits) -> None:
    mirror.script = [500, 503]
    assert fetch(RemoteFile("a.zip", mirror.url()), tmp_path, waits.policy()).read_bytes() == BODY
    assert waits == [1.0, 2.0]
    mirror.script = [500] * 3
    with pytest.raises(UnavailableError, match="HTTP 500"):
        fetch(RemoteFile("b.zip", mirror.url()), tmp_path, waits.policy(3))


@pytest.mark.parametrize("status", [404, 403, 410, 202])
def test_refusals_are_not_tried_again(mirror: Mirror, tmp_path: Path, waits: Waits, status: int) -> None:
    """202 without a body is what figshare's bot guard answers."""
    mirror.script = [status]
    with pytest.raises(UnavailableError) as failure:
        fetch(RemoteFile("a.zip", mirror.url()), tmp_path, waits.policy())
    for part in (f"HTTP {status}", mirror.url(), "--mirror URL", "--from FILE"):
        assert part in str(failure.value)
    assert (len(mirror.asked), waits, failure.value.exit_code) == (1, [], 2)


def test_a_web_page_is_no_archive(mirror: Mirror, tmp_path: Path, waits: Waits) -> None:
    mirror.kind = "text/html; charset=utf-8"
    with pytest.raises(UnavailableError, match="a web page came instead"):
        fetch(RemoteFile("a.zip", mirror.url()), tmp_path, waits.policy())
    assert leftovers(tmp_path) == set()


def test_sizes_that_were_promised(mirror: Mirror, tmp_path: Path, waits: Waits) -> None:
    with pytest.raises(UnavailableError, match="another size"):
        fetch(RemoteFile("a.zip", mirror.url(), size=5), tmp_path, waits.policy())
    mirror.lengths = False
    mirror.script = [("drop", 1000)]
    size = len(BODY)
    assert fetch(RemoteFile("a.zip", mirror.url(), size=size), tmp_path, waits.policy()).read_bytes() == BODY


def test_no_network_is_said_at_once(tmp_path: Path, waits: Waits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/a.zip"
        with pytest.raises(UnavailableError, match="does not answer") as failure:
            fetch(RemoteFile("a.zip", url), tmp_path, waits.policy())
    assert "--from FILE" in str(failure.value)
    assert waits == []


def test_file_addresses_and_other_schemes(tmp_path: Path, waits: Waits) -> None:
    (tmp_path / "source.zip").write_bytes(BODY)
    url = (tmp_path / "source.zip").as_uri()
    assert fetch(RemoteFile("a.zip", url), tmp_path / "out", waits.policy()).read_bytes() == BODY
    with pytest.raises(UnavailableError, match="does not answer"):
        fetch(RemoteFile("a.zip", url + "x"), tmp_path, waits.policy())
    for bad in ("ftp://127.0.0.1/a.zip", "data:,abc", "a.zip"):
        with pytest.raises(InputError, match="cannot be fetched"):
            fetch(RemoteFile("a.zip", bad), tmp_path, waits.policy())


def test_a_full_disk(mirror: Mirror, tmp_path: Path, waits: Waits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(StorageError, match="not enough space"):
        fetch(RemoteFile("a.zip", mirror.url()), tmp_path, waits.policy())
    monkeypatch.undo()

    def full(*arguments: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(fetching, "_copy", full)
    with pytest.raises(StorageError, match="No space left"):
        fetch(RemoteFile("a.zip", mirror.url()), tmp_path, waits.policy())


def test_checksums_known_recorded_and_wrong(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    sums = {name: hashlib.new(name, BODY).hexdigest() for name in ("sha256", "sha512", "md5")}
    for name, value in sums.items():
        path.write_bytes(BODY)
        result = verify(path, f"{name}.zip", f"{name}:{value}", tmp_path)
        assert (result.sha256, result.size, result.compared) == (sums["sha256"], len(BODY), "known")
    assert verify(path, "a.zip", None, tmp_path).compared == "nothing"
    assert verify(path, "a.zip", None, tmp_path).compared == "recorded"
    assert json.loads((tmp_path / LEDGER).read_text())["a.zip"] == {"sha256": sums["sha256"], "bytes": len(BODY)}
    path.write_bytes(BODY[1:])
    found = hashlib.sha256(BODY[1:]).hexdigest()
    with pytest.raises(InputError, match="checksum is wrong") as failure:
        verify(path, "a.zip", None, tmp_path, ours=False)
    for part in (sums["sha256"], found, LEDGER, "--skip-checksum"):
        assert part in str(failure.value)
    assert path.exists(), "the user's own file stays"
    with pytest.raises(InputError, match="removed"):
        verify(path, "b.zip", f"sha512:{sums['sha512']}", tmp_path)
    assert not path.exists()
    path.write_bytes(BODY[1:])
    assert verify(path, "a.zip", None, tmp_path, trust=True).compared == "nothing"
    assert verify(path, "a.zip", None, tmp_path).compared == "recorded", "what was trusted is recorded"
    (tmp_path / LEDGER).write_text("[")
    with pytest.raises(InputError, match="delete it"):
        verify(path, "a.zip", None, tmp_path)


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


def test_a_figshare_record(mirror: Mirror, waits: Waits) -> None:
    files = [
        {"name": "a.zip", "size": 7, "download_url": "https://x/1", "computed_md5": "0" * 32, "is_link_only": False},
        {"name": "readme.txt", "size": 3, "download_url": "https://x/2", "computed_md5": "1" * 32},
        {"name": "b.tar.gz", "size": 0, "download_url": "https://x/3", "computed_md5": ""},
    ]
    mirror.bodies["/record"] = json.dumps({"files": files}).encode()
    mirror.script = [502]
    text = read_small(mirror.url("/record"), waits.policy())
    assert files_in_listing(text, DATASETS["dbpedia1m"], "u") == [
        RemoteFile("a.zip", "https://x/1", 7, "md5:" + "0" * 32),
        RemoteFile("b.tar.gz", "https://x/3"),
    ]
    with pytest.raises(InputError, match="does not offer") as failure:
        files_in_listing(text, DATASETS["openea"], "u")
    assert "OpenEA_dataset_v1.1.zip" in str(failure.value)
    for bad in (b"<html>", b"{}", b'{"files": [1]}', b"3"):
        with pytest.raises(InputError, match="something else"):
            files_in_listing(bad, DATASETS["openea"], "u")
