"""Every figure of the documents has a record and agrees with it; what has none is named."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from lab import MEASUREMENTS, RESULTS, ROOT, traced
from lab.lines import read_lines
from lab.origin import Origin
from lab.records import read_results


def test_every_figure_names_its_record() -> None:
    pages = [path for path in traced.FILLED if path.parent != MEASUREMENTS]
    assert [line for path in pages for line in traced.untraced(path)] == [], "see lab/traced.py"


@pytest.mark.parametrize("path", traced.FILLED, ids=lambda path: path.name)
def test_no_line_begins_with_a_figure(path: Path) -> None:
    """A line that begins with a comment is a block of its own in Markdown and tears its paragraph or list apart."""
    assert not re.findall(r"^\s*<!-- = .*", path.read_text(encoding="utf-8"), flags=re.MULTILINE)


LINES = sorted(RESULTS.glob("*.jsonl"))


@pytest.mark.parametrize("file", LINES, ids=lambda path: path.name)
def test_every_record_says_where_it_comes_from(file: Path) -> None:
    for line in read_lines(file):
        if file.name == "published.jsonl":
            assert {"system", "set", "protocol", "run_by", "source"} <= set(line)
            assert {"hits@1", "f1"} & set(line)
        else:
            origin = Origin.model_validate(line["origin"])
            assert origin.commit is not None


def git(*words: str) -> str:
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True).stdout


def test_the_program_of_every_record_is_in_the_history() -> None:
    """By its commit, by git's name of its files, or by a line that says which commit has the same program."""
    try:
        shallow = git("rev-parse", "--is-shallow-repository").strip() == "true"
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no repository here")
    if shallow:
        pytest.skip("the history is cut off here")
    commits = set(git("rev-list", "HEAD").split())
    trees = set(git("rev-parse", *(f"{commit}:src/largegnn" for commit in commits)).split())
    rows = [line.split("\t") for line in (RESULTS / "commits.tsv").read_text().splitlines()[1:]]
    same_program = {lost: present for lost, present, _ in rows}
    assert set(same_program.values()) <= commits
    assert not set(same_program) & commits, "a commit of the history needs no line"
    origins = [Origin.model_validate(line["origin"]) for file in LINES for line in read_lines(file) if "origin" in line]
    origins += [record.origin for record in read_results(RESULTS) if record.origin is not None]
    unknown = {
        origin.commit
        for origin in origins
        if (origin.commit or "").removesuffix("+") not in commits | set(same_program) and origin.tree not in trees
    }
    assert not unknown


def test_every_result_says_where_it_comes_from() -> None:
    for record in read_results(RESULTS):
        assert record.origin is not None
        assert record.origin.commit is not None


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Two runs of one system, one of another, and lines of a benchmark."""
    (tmp_path / "set.json").write_text(
        '[{"system": "A", "hits": {"csls": 0.5}, "seconds": 12.4}, {"system": "A", "hits": {"csls": 0.7}},'
        '{"system": "B (x)", "hits": {"csls": 0.55}}]'
    )
    (tmp_path / "lines.jsonl").write_text('{"key": "s, 0", "f1": 0.25}\n{"key": "s, 1", "f1": 0.35}\n')
    monkeypatch.setattr(traced, "RESULTS", tmp_path)
    monkeypatch.setattr(traced, "ROOT", tmp_path)
    return traced


def test_figures_by_hand(made: ModuleType) -> None:
    assert made.figure("set :: A :: hits.csls") == ".600"
    assert made.figure("set :: A :: hits.csls ±") == ".600 ± .141"
    assert made.figure("set :: A :: hits.csls - B (x)") == "+.050"
    assert made.figure("set :: B (x) :: hits.csls - A ±") == "-.050 ± .141"
    assert made.figure("set :: A :: hits.csls n") == "2"
    assert made.figure("set :: A :: hits.csls / B (x)") == "1.1"
    assert made.figure("lines :: s, 0 :: f1 / s, 1") == ".71"
    assert made.figure("set :: A :: seconds") == "12"
    assert made.figure("lines :: s, * :: f1") == ".300"
    for nowhere in ("set :: C :: hits.csls", "set :: A :: hits.cosine", "lines :: s, 0 :: f2"):
        with pytest.raises(KeyError, match="no record"):
            made.figure(nowhere)


def test_pages_are_filled(made: ModuleType) -> None:
    page = "x <!-- = lines :: s, 0 :: f1 -->.9<!-- / --> y\n"
    filled = made.fill(page)
    assert filled == page.replace("-->.9<", "-->.250<")
    assert made.fill(filled) == filled


def test_what_names_no_record_is_found(made: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "It reaches .624 in 12 s.\n<!-- = lines :: s, 0 :: f1 -->.250<!-- / --> and `0.45` of Python 3.11, part 5.3\n"
        "<!-- table:x -->\n.111\n<!-- /table -->\n```\n.222\n```\n<!-- one name -->\n.333\n<!-- /one name -->\n"
        "0.845, 1,024 seeds, 2.9 GB, 1.8 times as fast\n"
        "twice as fast, in a third of the time, half a minute, six times faster; a third of the seeds, twice in a row\n"
    )
    assert made.untraced(page) == [
        "page.md:1: .624",
        "page.md:1: 12 s",
        "page.md:12: 0.845",
        "page.md:12: 2.9 GB",
        "page.md:12: 1.8 times",
        "page.md:13: twice as",
        "page.md:13: third of the time",
        "page.md:13: half a minute",
        "page.md:13: six times faster",
    ]
