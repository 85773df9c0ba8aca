"""The examples of the guide run from end to end: passed as objects, named on the command line, installed.

One run has a part of every table at once, so that trying all of them takes seconds.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import largegnn
from largegnn.data.batch import Reader
from largegnn.datasets.generator import GeneratedPair
from largegnn.export import Exporter
from largegnn.parts import TABLES
from largegnn.settings import Settings
from tests.cli.small_runs import WORLD

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "guides" / "extending.md").read_text(encoding="utf-8")
MODULES = dict(re.findall(r'```python title="(\w+)\.py"\n(.*?)```', PAGE, flags=re.DOTALL))
SMALL = {"device": "cpu", "train.dim": 8, "train.epochs": 2, "train.repartition_every": 0}
KEY_OF_TABLE = {
    "readers": "data.format",
    "partitioners": "division.partitioner",
    "encoders": "train.encoder",
    "searchers": "search.method",
    "scorings": "match.scoring",
    "exporters": "--form",
    "text_encoders": "compare.text_encoder",
}


def options_of_page() -> list[tuple[str, str]]:
    """Every `--set key=value` and `--form value` in the page's shell examples, in order."""
    found = []
    for block in re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL):
        words = shlex.split(block)
        for flag, value in itertools.pairwise(words):
            if flag == "--set":
                key, _, text = value.rpartition("=")
                found.append((key, text))
            elif flag == "--form":
                found.append((flag, value))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's modules, and a pair whose triples are written with arrows, with a name for every entity."""
    folder = tmp_path_factory.mktemp("extending")
    for name, code in MODULES.items():
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    made = largegnn.generate(WORLD, folder=folder / "pair", form="tsv")
    _write_names(made, folder)
    for side in ("source", "target"):
        triples = (folder / "pair" / f"{side}.tsv").read_text(encoding="utf-8").splitlines()
        rows = (line.split("\t") for line in triples[triples[0].startswith("head") :])
        text = "".join(f"{head} -{relation}-> {tail}\n" for head, relation, tail in rows)
        (folder / f"{side}.arrows").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def modules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the page's modules importable, and forget them afterwards."""
    monkeypatch.syspath_prepend(str(folder))
    # The processes that divide beside the training find them too.
    monkeypatch.setenv("PYTHONPATH", str(folder))
    yield
    for name in MODULES:
        sys.modules.pop(name, None)
    for table in TABLES.values():
        table._registered.clear()


def run(*words: str | Path, path: Path, expected: int = 0) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, with a folder on its path."""
    environment = {**os.environ, "PYTHONPATH": str(path), "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "largegnn", *map(str, words)]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ended.returncode == expected, ended.stderr
    return ended


def inputs(folder: Path) -> dict[str, Any]:
    """What goes with the two graphs."""
    links = {name: folder / "pair" / f"{name}.tsv" for name in ("train_links", "valid_links", "test_links")}
    links["seeds"] = links.pop("train_links")
    return links | {name: folder / f"{name}.tsv" for name in ("source_names", "target_names")}


def small() -> list[str]:
    return [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]


def test_the_page_has_one_example_for_every_table() -> None:
    assert set(KEY_OF_TABLE) == {*TABLES, "text_encoders"}, "a new table needs an example in docs/guides/extending.md"
    titles = [title.lower() for title in re.findall(r"^## (.*)$", PAGE, flags=re.MULTILINE)]
    assert titles == [name.removesuffix("s").replace("_", " ") for name in KEY_OF_TABLE]
    assert len(MODULES) == len(KEY_OF_TABLE)
    assert [key for key, _ in options_of_page()] == list(KEY_OF_TABLE.values())
    rows = re.findall(r"^\| `(\w+)` \| `([\w .-]+)` \| `(\w+)` \| `([\w/]+\.py)` \|$", PAGE, flags=re.MULTILINE)
    assert [name for name, *_ in rows] == list(KEY_OF_TABLE)
    for _, key, kind, file in rows:
        assert key.removeprefix("export ") in KEY_OF_TABLE.values()
        text = (ROOT / "src" / "largegnn" / file).read_text(encoding="utf-8")
        assert re.search(rf"^(class {kind}\b|{kind} = )", text, flags=re.MULTILINE), f"{kind} is not in {file}"


def test_the_examples_are_about_twenty_lines() -> None:
    sizes = {name: sum(bool(line.strip()) for line in code.splitlines()) for name, code in MODULES.items()}
    assert max(sizes.values()) <= 30, sizes


@pytest.mark.usefixtures("modules", "one_thread")
def test_every_example_works_as_an_object_in_settings(folder: Path, tmp_path: Path) -> None:
    calls: Counter[str] = Counter()

    def part(address: str) -> Any:
        """The part at an address, which counts from now on how often it is called."""
        module, _, name = address.partition(":")
        found = getattr(importlib.import_module(module), name)
        setattr(sys.modules[module], name, counted := _counted(found, name, calls))
        return counted

    # Repartitioning takes place in another process, which must not stumble over an object that only this one knows.
    values: dict[str, Any] = SMALL | {"train.repartition_every": 1}
    for key, text in options_of_page():
        if key != "--form":
            values[key] = part(text)
    graphs = (folder / "source.arrows", folder / "target.arrows")
    result = largegnn.align(*graphs, **inputs(folder), out=tmp_path / "run", settings=Settings.of(values))
    assert result.export(part("json_lines:JSON_LINES"), tmp_path / "pairs.jsonl") == len(result.pairs)
    assert set(calls) == {text.rpartition(":")[2] for _, text in options_of_page()}
    _check_run(tmp_path / "run")
    assert largegnn.open_run(tmp_path / "run").pairs.equals(result.pairs)


def test_every_example_works_on_the_command_line(folder: Path, tmp_path: Path) -> None:
    options = options_of_page()
    chosen = [word for key, text in options if key != "--form" for word in ("--set", f"{key}={text}")]
    graphs = [folder / "source.arrows", folder / "target.arrows"]
    given = [word for name, path in inputs(folder).items() for word in (f"--{name.replace('_', '-')}", path)]
    run("align", *graphs, *given, "--out", tmp_path / "run", *small(), *chosen, path=folder)
    _check_run(tmp_path / "run")
    forms = [word for key, text in options if key == "--form" for word in (key, text)]
    run("export", tmp_path / "run", *forms, path=folder)
    exported = (tmp_path / "run" / "alignment.jsonl").read_text(encoding="utf-8").splitlines()
    table = pl.read_csv(tmp_path / "run" / "alignment.tsv", separator="\t")
    assert [json.loads(line)["source"] for line in exported] == table["source"].to_list()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The little package of tests/plugin, built into a wheel and installed by pip into a folder of its own."""
    target = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    command += ["--disable-pip-version-check", "--target", str(target), str(ROOT / "tests" / "plugin")]
    subprocess.run(command, check=True, capture_output=True)
    return target


def test_an_installed_package_adds_entries_by_name(folder: Path, installed: Path, tmp_path: Path) -> None:
    run("align", folder / "pair", "--out", tmp_path / "run", *small(), "--set", "match.scoring=doubled", path=installed)
    report = json.loads((tmp_path / "run" / "report.json").read_text(encoding="utf-8"))
    assert report["settings"]["match"]["scoring"] == "doubled"
    run("export", tmp_path / "run", "--form", "markdown", path=installed)
    exported = (tmp_path / "run" / "alignment.md").read_text(encoding="utf-8").splitlines()
    pairs = pl.read_csv(tmp_path / "run" / "alignment.tsv", separator="\t")
    assert len(exported) == 2 + len(pairs)


def test_names_of_installed_packages_are_listed(installed: Path) -> None:
    assert "doubled" in run("config", path=installed).stdout
    wrong = run("config", "--set", "match.scoring=double", path=installed, expected=2).stderr
    assert "no scoring is called 'double'" in wrong
    assert "cosine, csls, transport, partial_transport, reciprocal, " in wrong
    assert "did you mean doubled?" in wrong


def test_a_package_that_cannot_be_loaded_is_named(folder: Path, installed: Path, tmp_path: Path) -> None:
    words: list[str | Path] = ["--set", "data.format=broken", "--out", tmp_path / "run"]
    message = run("align", folder / "pair", *words, path=installed, expected=2).stderr
    assert "'broken' of largegnn-example-plugin cannot be loaded" in message
    assert "Traceback" not in message


def _write_names(made: GeneratedPair, folder: Path) -> None:
    """A name for every entity, the same for both ends of a link."""
    task, entities = made.task, list(made.names.entities)
    same = {int(source): int(target) for links in (task.train_links, task.valid_links) for source, target in links}
    same |= {int(source): int(target) for source, target in task.test_links}
    names = {entity: f"thing number {same.get(entity, entity)}" for entity in range(task.num_entities)}
    split = task.num_source_entities
    for side, ids in (("source", range(split)), ("target", range(split, task.num_entities))):
        text = "".join(f"{entities[entity]}\t{names[entity]}\n" for entity in ids)
        (folder / f"{side}_names.tsv").write_text(text, encoding="utf-8")


def _counted(part: Any, name: str, calls: Counter[str]) -> Any:
    if isinstance(part, Reader):
        return replace(part, triples=_counted(part.triples, name, calls))
    if isinstance(part, Exporter):
        return replace(part, write=_counted(part.write, name, calls))
    function: Callable[..., Any] = part

    @functools.wraps(function)
    def counting(*arguments: Any, **options: Any) -> Any:
        calls[name] += 1
        return function(*arguments, **options)

    return counting


def _check_run(folder: Path) -> None:
    """What a run with all examples at once leaves behind."""
    report: Mapping[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    settings = report["settings"]
    assert settings["division"]["partitioner"] == "in_turn:in_turn"
    assert settings["train"]["encoder"] == "mean_encoder:MeanEncoder"
    assert settings["match"]["scoring"] == "blended:blended"
    assert settings["compare"]["text_encoder"] == "hashed_words:hashed_words"
    assert "compare_all" in json.dumps(report["search"])
    assert {"cosine", "csls", "name", "meaning", "support"} <= set(report["evidence"])
    assert len(pl.read_csv(folder / "alignment.tsv", separator="\t"))
