"""Test that files, groups of files and folders are written completely or not at all."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from largegnn.errors import StorageError
from largegnn.machine.atomic import ByteSink, partial_path, sweep_partials, write_files, write_folder, write_text


def content_of(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def broken(sink: ByteSink) -> None:
    sink.write(b"half")
    raise KeyboardInterrupt


def full(folder: Path) -> None:
    (folder / "half").write_text("half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_files_are_written_and_replaced(tmp_path: Path) -> None:
    for text in ("one é\n", "two"):
        write_text(tmp_path / "new" / "file", text)
        assert content_of(tmp_path) == {"new/file": text}


def test_all_files_or_none(tmp_path: Path) -> None:
    write_text(tmp_path / "one", "before")
    with pytest.raises(KeyboardInterrupt):
        write_files({tmp_path / "one": lambda sink: sink.write(b"after"), tmp_path / "two": broken})
    assert content_of(tmp_path) == {"one": "before"}


def test_the_error_of_a_full_disk_has_a_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StorageError, match=r"cannot write .*one: No space left on device; .*free some space"):
        write_text(tmp_path / "one", "text")
    with pytest.raises(StorageError, match="No space left on device; sell the cat"):
        write_text(tmp_path / "one", "text", fix="sell the cat")
    with pytest.raises(StorageError, match="No space left on device"):
        write_folder(tmp_path / "two", lambda folder: (folder / "file").write_text("x"))
    assert not list(tmp_path.iterdir())


def test_folders_are_written_and_replaced(tmp_path: Path) -> None:
    for name in ("one", "two"):
        found = write_folder(tmp_path / "a" / "run", lambda folder, name=name: (folder / name).write_text(name))  # type: ignore[misc]
        assert found == 3
        assert content_of(tmp_path) == {f"a/run/{name}": name}
    with pytest.raises(StorageError, match="No space left"):
        write_folder(tmp_path / "a" / "run", full)
    assert content_of(tmp_path) == {"a/run/two": "two"}
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["run"]


def test_a_folder_that_cannot_be_renamed_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "run", lambda folder: (folder / "file").write_text("before"))
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if target.name == "run" and (self / "new").exists():
            raise OSError(errno.EIO, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(StorageError, match="Input/output error"):
        write_folder(tmp_path / "run", lambda folder: (folder / "new").write_text("after"))
    assert content_of(tmp_path) == {"run/file": "before"}
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_temporary_names_are_unique(tmp_path: Path) -> None:
    names = {partial_path(tmp_path / "x").name for _ in range(100)}
    assert len(names) == 100
    script = "from largegnn.machine.atomic import partial_path as p; from pathlib import Path; print(p(Path('x')).name)"
    other_name = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    ).stdout.strip()
    assert other_name.split("-")[0] not in {name.split("-")[0] for name in names}, "the name contains the process id"
    write_text(tmp_path / ("n" * 255), "the longest name there is")


def test_only_our_own_temporary_files_are_removed(tmp_path: Path) -> None:
    for path in (partial_path(tmp_path / "deep" / "er" / "x"), tmp_path / "download.zip.partial", tmp_path / "x"):
        write_text(path, "x")
    write_text(partial_path(tmp_path / "folder") / "deep" / "x", "x")
    sweep_partials(tmp_path)
    assert set(content_of(tmp_path)) == {"download.zip.partial", "x"}
    sweep_partials(tmp_path / "nowhere")
