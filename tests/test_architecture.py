"""What the house looks like from outside: public names, file sizes, no leftovers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import largegnn

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "largegnn").rglob("*.py"))


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
    assert text.count("\n") <= 350, "split it: a file is one thing"
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)
    assert path.stem not in {"utils", "helpers", "common", "misc", "base", "manager"}


def test_the_readme_tree_lists_every_module() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in SOURCES:
        if path.name not in {"__init__.py", "__main__.py", "version.py"}:
            assert path.name in readme, f"{path.name} is missing in the README's tree"
