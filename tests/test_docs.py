"""What the documents say is what the program does."""

from __future__ import annotations

import re
from pathlib import Path

from largegnn.artifacts import AlignmentTask
from largegnn.cli.configure import settings_file
from largegnn.config import PRESETS, Settings
from largegnn.data.merge import merge
from largegnn.data.readers import TRIPLE_READERS, read_triples
from largegnn.division import PARTITIONERS
from largegnn.resolving import resolve

ROOT = Path(__file__).parents[1]


def test_the_settings_page_is_the_one_generated() -> None:
    expected = settings_file(resolve(Settings, PRESETS))
    assert (ROOT / "docs" / "settings.toml").read_text(encoding="utf-8") == expected + "\n", "run `make docs`"


def code_of_extending_page(index: int) -> str:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    return str(re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[index])


def test_the_partitioner_of_the_extending_page_works(toy_task: AlignmentTask) -> None:
    try:
        exec(compile(code_of_extending_page(1), "extending.md", "exec"), {})
        partition = PARTITIONERS["in_turn"](toy_task, merge(toy_task), "train", 3, 0)
        assert (partition.num_parts, partition.num_uncovered) == (3, 0)
    finally:
        PARTITIONERS.pop("in_turn", None)


def test_the_reader_of_the_extending_page_works(tmp_path: Path) -> None:
    code = code_of_extending_page(0)
    path = tmp_path / "pair.arrows"
    path.write_text("a -r-> b\nb -s-> c\n")
    try:
        exec(compile(code, "extending.md", "exec"), {})
        (batch,) = read_triples(path, "arrows")
        assert batch.tails.to_list() == ["b", "c"]
    finally:
        TRIPLE_READERS.pop("arrows", None)
