"""Every figure of the documents has a record and agrees with it; what has none is named."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from largegnn.paper.origin import read_lines
from tests.test_docs import script

traced = script("traced")


@pytest.mark.parametrize("path", traced.PAGES, ids=lambda path: path.name)
def test_the_figures_of_a_page_are_those_of_the_records(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == traced.fill(text), "run `make docs`; a block by hand is kept with docs/scripts/traced.py --adopt"


def test_every_figure_names_its_record() -> None:
    assert [line for path in traced.PAGES for line in traced.untraced(path)] == [], "see docs/scripts/traced.py"


def test_blocks_by_hand_say_what_is_not_known_and_are_in_their_page() -> None:
    lines = read_lines(traced.BY_HAND)
    assert len({line["key"] for line in lines}) == len(lines)
    for line in lines:
        assert {"version", "commit", "date", "reason", "page", "text"} <= set(line)
        assert f"<!-- by hand: {line['key']} -->" in (traced.DOCS / line["page"]).read_text(encoding="utf-8")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Two runs of one system, one of another, and lines of a benchmark."""
    (tmp_path / "set.json").write_text(
        '[{"system": "A", "hits": {"csls": 0.5}, "seconds": 12.4}, {"system": "A", "hits": {"csls": 0.7}},'
        '{"system": "B (x)", "hits": {"csls": 0.55}}]'
    )
    (tmp_path / "lines.jsonl").write_text('{"key": "s, 0", "f1": 0.25}\n{"key": "s, 1", "f1": 0.35}\n')
    (tmp_path / "by_hand.jsonl").write_text('{"key": "old", "text": "a .123\\n"}\n')
    monkeypatch.setattr(traced, "RESULTS", tmp_path)
    monkeypatch.setattr(traced, "BY_HAND", tmp_path / "by_hand.jsonl")
    monkeypatch.setattr(traced, "ROOT", tmp_path)
    return traced


def test_figures_by_hand(made: ModuleType) -> None:
    assert made.figure("set | A | hits.csls") == ".600"
    assert made.figure("set | A | hits.csls ±") == ".600 ± .141"
    assert made.figure("set | A | hits.csls - B (x)") == "+.050"
    assert made.figure("set | B (x) | hits.csls - A ±") == "-.050 ± .141"
    assert made.figure("set | A | hits.csls n") == "2"
    assert made.figure("set | A | seconds") == "12"
    assert made.figure("lines | s, * | f1") == ".300"
    for nowhere in ("set | C | hits.csls", "set | A | hits.cosine", "lines | s, 0 | f2"):
        with pytest.raises(KeyError, match="no record"):
            made.figure(nowhere)


def test_pages_are_filled(made: ModuleType) -> None:
    page = "x <!-- = lines | s, 0 | f1 -->.9<!-- / --> y\n<!-- by hand: old -->\nwrong\n<!-- /by hand -->\n"
    filled = made.fill(page)
    assert filled == page.replace("-->.9<", "-->.250<").replace("wrong", "a .123")
    assert made.fill(filled) == filled
    with pytest.raises(KeyError, match="--adopt"):
        made.fill("<!-- by hand: new -->\n<!-- /by hand -->\n")


def test_what_names_no_record_can_be_adopted_with_a_reason(
    made: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made, "DOCS", tmp_path)
    (tmp_path / "by_hand.jsonl").write_text('{"key": "old", "page": "page.md", "text": "a .123\\n"}\n')
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n\nNo figure.\n\n## Speed, memory\n\nNone yet.\n\nIt takes\n12 s.\n\n| a |\n|---|\n| .345 |\n"
        "\n<!-- by hand: old -->\nnow .456\n<!-- /by hand -->\n\nThen .567.\n"
    )
    made.adopt("the raw values were not kept", [page])
    text = page.read_text()
    assert made.untraced(page) == []
    assert made.fill(text) == text
    lines = {line["key"]: line for line in read_lines(tmp_path / "by_hand.jsonl")}
    assert {key: line["text"] for key, line in lines.items()} == {
        "old": "now .456\n",
        "page-speed-memory": "It takes\n12 s.\n\n| a |\n|---|\n| .345 |\n",
        "page-speed-memory-2": "Then .567.\n",
    }
    assert {line["reason"] for line in lines.values()} == {"the raw values were not kept"}
    (older,) = read_lines(tmp_path / "superseded" / "by_hand.jsonl")
    assert (older["text"], older["superseded_for"]) == ("a .123\n", "the raw values were not kept")
    made.adopt("again", [page])
    assert page.read_text() == text
    assert {line["reason"] for line in read_lines(tmp_path / "by_hand.jsonl")} == {"the raw values were not kept"}


def test_what_names_no_record_is_found(made: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "It reaches .624 in 12 s.\n<!-- = lines | s, 0 | f1 -->.250<!-- / --> and `0.45` of Python 3.11, section 5.3\n"
        "<!-- table:x -->\n.111\n<!-- /table -->\n```\n.222\n```\n<!-- by hand: old -->\n.333\n<!-- /by hand -->\n"
        "0.845, 1,024 seeds, 2.9 GB\n"
    )
    assert made.untraced(page) == [
        "page.md:1: .624",
        "page.md:1: 12 s",
        "page.md:12: 0.845",
        "page.md:12: 2.9 GB",
    ]
