"""What the house looks like from outside: public names, rooms, file sizes, and a tree and a walk that are true."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import pytest

import largegnn
from largegnn.stages import STAGE_NAMES

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "largegnn"
SOURCES = sorted(PACKAGE.rglob("*.py"))
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MOST_LINES = 350


def test_public_names_exist_and_are_sorted() -> None:
    assert largegnn.__all__ == sorted(largegnn.__all__)
    assert dir(largegnn) == largegnn.__all__
    for name in largegnn.__all__:
        assert getattr(largegnn, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = largegnn.nonsense


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_files_are_small_and_say_what_they_are(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith('"""'), "a module opens with what it is"
    assert text.count("\n") <= MOST_LINES, "split it: a file is one thing"
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)
    assert path.stem not in {"utils", "helpers", "common", "misc", "base", "manager"}


def test_the_median_file_is_one_to_two_hundred_lines() -> None:
    sizes = [path.read_text(encoding="utf-8").count("\n") for path in SOURCES if path.name != "__init__.py"]
    assert 100 <= statistics.median(sizes) <= 200


def test_the_hallway_has_nothing_but_doors() -> None:
    there = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    files = {"__init__.py", "__main__.py", "api.py", "result.py", "errors.py", "version.py", "py.typed"}
    assert there - rooms == files


def test_the_steps_are_those_of_the_program() -> None:
    section = PAGE.split("## The run")[1].split("\n## ")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)) == STAGE_NAMES


def test_the_ten_questions_name_files_and_tables_that_exist() -> None:
    section = PAGE.split("Ten questions")[1].split("\n## ")[0]
    assert len(re.findall(r"^\| (?:an? |evidence)", section, flags=re.MULTILINE)) == 10
    for name in re.findall(r"`(\w+/(?:\w+\.py)?|\w+\.py)`", section):
        assert (PACKAGE / name).exists(), name
    parts = (PACKAGE / "parts.py").read_text(encoding="utf-8")
    for table in re.findall(r"a line in `([A-Z]+)`", section):
        assert re.search(rf"^{table}\b", parts, flags=re.MULTILINE), table
