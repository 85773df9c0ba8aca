"""The commands as a user types them; in processes of their own where exit codes and streams are what is looked at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from largegnn.version import __version__
from tests.cli.small_runs import call


def largegnn(*arguments: str | Path, expect: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        [sys.executable, "-m", "largegnn", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "100"} | variables,
    )
    assert ended.returncode == expect, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended


def test_version_and_help() -> None:
    assert largegnn("--version").stdout == f"largegnn {__version__}\n"
    assert "inspect" in largegnn("--help").stdout


def test_generate_inspect_divide(tmp_path: Path) -> None:
    world = ["--set", "source_triples=9000", "--seed", "3"]
    made = call("generate", tmp_path / "pair", *world, "--format", "nt", "--compress", "zst", "--json").json()
    assert Path(made["files"][0]).name == "source.nt.zst"
    table = call("inspect", tmp_path / "pair").stdout
    assert "9,000" in table
    facts = call("inspect", tmp_path / "pair", "--json", "--memory-gb", "8").json()
    assert (facts["layout"], facts["source"]["triples"], facts["benchmark"]) == ("pair", 9000, None)
    assert facts["seeds"]["train_links"] == 480
    files = [tmp_path / "pair" / f"{name}.nt.zst" for name in ("source", "target", "train_links")]
    two_files = call("inspect", files[0], files[1], "--seeds", files[2], "--valid-share", "0.5", "--json")
    assert two_files.json()["seeds"]["train_links"] == 240
    first = call("divide", tmp_path / "pair", "--out", tmp_path / "run", "--to", "merge")
    assert "merge" in first.stdout
    again = call("divide", "--resume", "--out", tmp_path / "run", "--to", "merge", "--json")
    assert "load: reused" in again.stderr
    assert set(again.json()["seconds"]) == {"load", "literals", "merge"}
    quiet = largegnn("--quiet", "divide", "--resume", "--out", tmp_path / "run", "--to", "merge", "--json")
    assert quiet.stderr == ""


def test_config_prints_a_settings_file(tmp_path: Path) -> None:
    text = largegnn("config", "--preset", "1m", "--set", "data.fold=3").stdout
    assert tomllib.loads(text)["data"]["fold"] == 3
    (tmp_path / "s.toml").write_text(text)
    described = json.loads(largegnn("config", "--config", tmp_path / "s.toml", "--json").stdout)
    assert described["values"]["division"]["parts"] == 40
    assert all(entry["help"] for entry in described["settings"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "nowhere"], "there is no such folder"),
        (["inspect", "a", "b"], "the file does not exist"),
        (["inspect", "a", "b", "--seeds", "c"], "the file does not exist"),
        (["divide"], "no input was given"),
        (["divide", "--resume", "--out", "nowhere"], "the folder is not a run"),
        (["divide", "--resume"], "--resume needs the run folder"),
        (["divide", "x", "--set", "data.folds=2"], "no setting is called data.folds"),
        (["divide", "x", "--preset", "y"], "no preset is called 'y'"),
        (["generate", "x", "--format", "xml"], "no format is called 'xml'"),
        (["generate", "x", "--compress", "rar"], "no compression is called 'rar'"),
        (["generate", "x", "--preset", "y"], "no preset is called 'y'"),
        (["generate", "x", "--set", "links=5000"], "links must not exceed"),
        (["inspect", "x", "--fold", "-1"], "data.fold has an impossible value"),
        (["unheard-of"], "No such command"),
    ],
)
def test_bad_calls_exit_with_2_and_a_message(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call(*arguments, expect=2)
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
    assert list(tmp_path.iterdir()) == [], "nothing is half-written"


def test_a_bad_call_ends_its_process_with_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = largegnn("inspect", "nowhere", expect=2)
    assert "there is no such folder" in ended.stderr
    assert ended.stdout == ""


def test_train_ends_with_vectors_and_says_how_it_went(tmp_path: Path, pair: Path) -> None:
    quick: list[str | Path] = [
        "--set",
        "train.dim=16",
        "--set",
        "train.epochs=2",
        "--device",
        "cpu",
        "--out",
        tmp_path / "run",
    ]
    table = largegnn("train", pair, *quick).stdout
    assert "integrate" in table
    assert "H@1" in table
    again = call("train", "--resume", "--out", tmp_path / "run", "--json")
    assert "integrate: reused" in again.stderr
    assert len(again.json()["history"]) == 2
    assert "holds another run" in call("train", pair, *quick, "--seed", "5", expect=2).stderr


def test_what_needs_no_torch_does_not_wait_for_it() -> None:
    program = "import sys, largegnn, largegnn.cli.app; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")
def test_too_little_memory_is_said_without_a_traceback(tmp_path: Path) -> None:
    """Libraries that cannot be mapped end a command as a failed allocation does."""
    for name in ("1", "2"):
        (tmp_path / f"rel_triples_{name}").write_text(f"a{name}\tr\tb{name}\n")
    (tmp_path / "train_links").write_text("a1\ta2\n")
    command = f"ulimit -v 700000; exec {sys.executable} -m largegnn align {tmp_path} --dry-run"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert ended.returncode == 3, ended.stderr
    assert "not enough memory" in ended.stderr
    assert "Traceback" not in ended.stderr
