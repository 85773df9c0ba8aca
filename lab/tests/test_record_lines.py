"""Files of records: a key once, whoever adds to them; what is replaced is kept."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab.lines import add_line, command, read_lines, supersede_lines
from lab.origin import Origin, origin_of
from largegnn.errors import InputError
from largegnn.settings import Settings


@pytest.fixture
def origin() -> Origin:
    return origin_of(Settings(), [])


def test_lines_are_added_once_by_whoever(tmp_path: Path, origin: Origin) -> None:
    file = tmp_path / "lines.jsonl"
    with ThreadPoolExecutor(4) as pool:
        for number in range(12):
            pool.submit(add_line, file, f"run {number}", origin, {"hits": number / 12})
    lines = read_lines(file)
    assert sorted(line["hits"] for line in lines) == [number / 12 for number in range(12)]
    assert Origin.model_validate(lines[0]["origin"]) == origin
    with pytest.raises(InputError, match="there is already a record"):
        add_line(file, "run 3", origin, {})
    file.write_text(json.dumps({"no": "key"}) + "\n")
    with pytest.raises(InputError, match="line 1"):
        read_lines(file)


def test_what_is_replaced_is_kept_with_the_reason(tmp_path: Path, origin: Origin) -> None:
    file = tmp_path / "lines.jsonl"
    for key in ("a, 0", "a, 1", "b, 0"):
        add_line(file, key, origin, {"hits": 0.5})
    assert supersede_lines(file, "a, *", "made again") == 2
    assert supersede_lines(file, "b, 0", "another reason") == 1
    assert read_lines(file) == []
    older = read_lines(tmp_path / "superseded" / "lines.jsonl")
    assert [(line["key"], line["reason"]) for line in older] == [
        ("a, 0", "made again"),
        ("a, 1", "made again"),
        ("b, 0", "another reason"),
    ]
    assert all(line["superseded"] and line["origin"] for line in older)
    add_line(file, "a, 0", origin, {"hits": 0.6})
    with pytest.raises(InputError, match="no record has such a key"):
        supersede_lines(file, "c*", "nothing fits")
    assert len(read_lines(file)) == 1


def test_a_command_is_told_without_its_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.argv", [str(tmp_path / "cluster.py"), "accuracy", str(tmp_path / "SET"), "--parts", "5"])
    assert command() == "cluster.py accuracy SET --parts 5"
