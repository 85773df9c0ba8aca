"""Public names exist, files say what they are, and the page of the architecture is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import largegnn
from largegnn.settings import STEPS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "largegnn"
SOURCES = sorted(PACKAGE.rglob("*.py"))
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_public_names_exist_and_are_sorted() -> None:
    assert largegnn.__all__ == sorted(largegnn.__all__)
    assert dir(largegnn) == largegnn.__all__
    for name in largegnn.__all__:
        assert getattr(largegnn, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = largegnn.nonsense


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_a_file_opens_with_what_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith('"""')
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)
    assert path.stem not in {"utils", "helpers", "common", "misc", "base", "manager"}


def test_the_steps_are_those_of_the_program() -> None:
    section = PAGE.split("## The run")[1].split("\n## ")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)) == STEPS


def test_the_ten_questions_name_files_and_tables_that_exist() -> None:
    section = PAGE.split("## Where to add something")[1].split("\n## ")[0]
    assert len(re.findall(r"^\| (?:an? |evidence)", section, flags=re.MULTILINE)) == 10
    for name in re.findall(r"`(\w+/(?:\w+\.py)?|\w+\.py)`", section):
        assert (PACKAGE / name).exists(), name
    parts = (PACKAGE / "parts.py").read_text(encoding="utf-8")
    for table in re.findall(r"a line in `([A-Z]+)`", section):
        assert re.search(rf"^{table}\b", parts, flags=re.MULTILINE), table
