"""`largegnn update` as a user types it, in this process: training takes a second, starting Python takes more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from largegnn import api
from largegnn.cli.app import main
from largegnn.machine.locks import hold_place
from tests.test_update import Withheld, settings, withhold


@pytest.fixture(scope="module")
def withheld(tmp_path_factory: pytest.TempPathFactory) -> Withheld:
    return withhold(tmp_path_factory.mktemp("withheld"))


@pytest.fixture(scope="module")
def run(withheld: Withheld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "run"
    api.align(withheld.base, out=folder, settings=settings())
    return folder


def call(*arguments: str | Path) -> int:
    """The exit code of a command."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_it_says_what_was_added_and_what_it_costs(
    run: Path, withheld: Withheld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ("--source-triples", withheld.source, "--target-triples", withheld.target, "--test-links", withheld.links)
    assert call("--quiet", "update", run, *files, "--out", tmp_path / "new") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "nothing trained" in said
    assert "Loss of accuracy against a full run, measured on 50 valid links" in said
    assert "are found if one end is treated as added later" in said
    assert "Test links of new entities among the pairs" in said
    assert json.loads((tmp_path / "new" / "report.json").read_text())["update"]["cost"]["links"] == 50
    assert {"alignment.tsv", "alignment.parquet", "unmatched.tsv"} <= {
        path.name for path in (tmp_path / "new").iterdir()
    }
    for command in (("evaluate",), ("export", "--form", "sssom"), ("update", "--help")):
        assert call("--quiet", command[0], tmp_path / "new", *command[1:]) == 0
    first = (tmp_path / "new" / "alignment.tsv").read_text().splitlines()[1].split("\t")[0]
    assert call("--quiet", "explain", tmp_path / "new", first, "--side", "source") == 0


def test_json_and_repeated_files(
    run: Path, withheld: Withheld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = withheld.source.read_text().splitlines(keepends=True)
    for name, part in (("one.tsv", lines[::2]), ("two.tsv", lines[1::2])):
        (tmp_path / name).write_text("".join(part))
    files = ("--source-triples", tmp_path / "one.tsv", "--source-triples", tmp_path / "two.tsv")
    assert call("--quiet", "update", run, *files, "--out", tmp_path / "new", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["folder"] == str(tmp_path / "new")
    assert facts["update"]["triples"] == [len(lines), 0]
    assert facts["pairs"] == facts["files"]["alignment.tsv"]


def test_bad_calls(run: Path, withheld: Withheld, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        ((run, "--out", tmp_path / "new"), "no triples were given"),
        ((run, "--source-triples", withheld.source, "--out", run), "there already"),
        ((run, "--target-triples", withheld.base / "rel_triples_1", "--out", tmp_path / "new"), "--source-triples"),
        (
            (run, "--source-triples", withheld.source, "--format", "xml", "--out", tmp_path / "new"),
            "no format is called",
        ),
        ((run, "--source-triples", withheld.source, "--device", "abacus", "--out", tmp_path / "new"), "abacus"),
        ((tmp_path, "--source-triples", withheld.source, "--out", tmp_path / "new"), "manifest.json"),
        ((run, "--source-triples", tmp_path / "none.tsv", "--out", tmp_path / "new"), "none.tsv"),
    ):
        assert call("--quiet", "update", *arguments) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_two_updates_into_one_folder(
    run: Path, withheld: Withheld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second is refused and takes nothing of the first away."""
    files = ("--source-triples", withheld.source, "--out", tmp_path / "new")
    (tmp_path / ".new.partial").mkdir()
    (tmp_path / ".new.partial" / "begun").write_text("by the first")
    with hold_place(tmp_path / "new"):
        assert call("--quiet", "update", run, *files) == 3
        assert "another process is working in" in capsys.readouterr().err
        assert (tmp_path / ".new.partial" / "begun").exists()
    assert call("--quiet", "update", run, *files) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
