"""Tables of the documents are those that `make docs` would write from the records."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

from largegnn.paper import pages

ROOT = Path(__file__).parents[1]
# What `make docs` calls of the benchmarks; these have tests of their own, or draw.
OTHERS = ("results_page.py", "figures.py", "growth.py")
_TARGET = re.search(r"^docs:.*?\n\n", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
assert _TARGET is not None
CALLS = [words.split() for words in re.findall(r"benchmarks/(\S+\.py.*)", _TARGET[0]) if not words.startswith(OTHERS)]


def test_every_benchmark_that_has_a_table_is_called() -> None:
    writers = {
        path.name for path in (ROOT / "benchmarks").glob("*.py") if "put_table(" in path.read_text(encoding="utf-8")
    }
    assert writers == {call[0] for call in CALLS}


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_the_tables_of_a_page_are_those_of_the_records(call: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def compare(page: Path, name: str, table: str) -> None:
        seen.append(name)
        text = page.read_text(encoding="utf-8")
        assert f"<!-- {name} -->\n{table}\n<!-- /{name} -->" in text, f"run `make docs`: {name} of {page.name} differs"

    monkeypatch.setattr(pages, "put_table", compare)
    monkeypatch.setattr(sys, "argv", call)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    runpy.run_path(str(ROOT / "benchmarks" / call[0]), run_name="__main__")
    assert seen, "it wrote no table"
