"""What the documents say is what the program does."""

from __future__ import annotations

import re
from pathlib import Path

from largegnn.cli.configure import settings_file
from largegnn.config import PRESETS, Settings, resolve
from largegnn.data.readers import TRIPLE_READERS, read_triples

ROOT = Path(__file__).parents[1]


def test_the_settings_page_is_the_one_generated() -> None:
    expected = settings_file(resolve(Settings, PRESETS))
    assert (ROOT / "docs" / "settings.toml").read_text(encoding="utf-8") == expected + "\n", "run `make docs`"


def test_the_reader_of_the_extending_page_works(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0]
    path = tmp_path / "pair.arrows"
    path.write_text("a -r-> b\nb -s-> c\n")
    try:
        exec(compile(code, "extending.md", "exec"), {})
        (batch,) = read_triples(path, "arrows")
        assert batch.tails.to_list() == ["b", "c"]
    finally:
        TRIPLE_READERS.pop("arrows", None)
