"""What the house looks like from outside: public names, rooms, file sizes, and a tree and a walk that are true."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import pytest

import largegnn
from largegnn.seams import Table, tables
from largegnn.settings import STEPS

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


def test_the_tree_has_one_line_for_every_file() -> None:
    tree = PAGE.split("<!-- tree -->")[1].split("<!-- /tree -->")[0]
    blocks = re.findall(r"^\*\*`([\w/]+)/`\*\* .*?(?=^\*\*`|\Z)", tree, flags=re.MULTILINE | re.DOTALL)
    listed = set()
    for title, block in zip(blocks, re.split(r"^\*\*`", tree, flags=re.MULTILINE)[1:], strict=True):
        folder = PACKAGE if title == "largegnn" else PACKAGE / title
        listed |= {folder / name for name in re.findall(r"^\| `(\w+\.py)` \| \S", block, flags=re.MULTILINE)}
    assert listed == {path for path in SOURCES if path.name != "__init__.py"}, "run `make docs`"


def test_the_stages_are_those_of_the_program() -> None:
    section = PAGE.split("## The stages")[1].split("\n## ")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)) == STEPS


def test_the_walk_in_ten_questions_is_true() -> None:
    section = PAGE.split("## The walk in ten questions")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([a-z]+) \| `(src/[\w/]+\.py)` \| `([A-Z]+)` \|$", section, flags=re.MULTILINE)
    asked = ["reader", "encoder", "loss", "searcher", "scoring", "channel", "metric", "export", "engine", "page"]
    assert [question for question, _, _ in rows] == asked
    others = [(file, table) for table, file in re.findall(r"`([A-Z_]+)`\s\(`(src/[\w/]+\.py)`\)", section)]
    walked = [(file, table) for _, file, table in rows] + others
    assert {table for _, table in walked} == {name.upper() for name in tables.TABLES}
    lines = (PACKAGE / "seams" / "tables.py").read_text(encoding="utf-8")
    for file, table in walked:
        assert isinstance(getattr(tables, table), Table)
        module = file.removeprefix("src/").removesuffix(".py").replace("/", ".")
        entries = lines.split(f"\n{table}: ")[1].split("\n)\n")[0]
        assert f'"{module}:' in entries, f"{file} has no entry in {table}"
