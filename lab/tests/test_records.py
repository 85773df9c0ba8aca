"""Stored results: what is taken and what is refused, means by hand, and the page that is made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab import CONFIGS, RESULTS
from lab.origin import origin_of
from lab.records import (
    ResultRecord,
    add_record,
    made_by,
    read_records,
    read_results,
    summarise_records,
    supersede,
)
from lab.sweep import mean_rows, read_subgraphs, subgraph_section
from lab.systems import BEST, PLAIN, TABLES, PaperSystem, read_systems
from lab.tables import fill_page, make_rows, page_sections, rows_as_json, scoring_section, table_markdown
from largegnn.errors import InputError
from largegnn.settings import Settings
from largegnn.version import __version__


def record(system: str = PLAIN, seed: int = 0, hits: float = 0.6, **changes: Any) -> dict[str, Any]:
    figures = {"hits@1": hits, "hits@5": 0.8, "hits@10": 0.9, "mrr": 0.7}
    partition = {"train_kept": 1.0, "test_kept": 0.95, "mean_size": 7500.0, "seconds": 0.2, "peak_memory_mb": None}
    return {
        "dataset": "EN_FR_15K_V1",
        "system": system,
        "random_seed": seed,
        "machine": "a test",
        "settings": {"parts": 5},
        "ideal": {"cosine": figures, "csls": None},
        "real": {"mutual_5nn": {"precision": 0.25, "recall": 0.5, "f1": 0.333, "pairs": 10}},
        "partition": partition,
        "training": {"seconds": 40, "peak_memory_mb": 900.0, "peak_gpu_mb": None},
    } | changes


def write(folder: Path, *records: Any, name: str = "EN_FR_15K_V1") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(records))
    return folder / f"{name}.json"


def system(dataset: str = "EN_FR_15K_V1", name: str = PLAIN, **changes: Any) -> PaperSystem:
    values: dict[str, Any] = {
        "name": name,
        "dataset": dataset,
        "tables": ("15k",),
        "training": "shared",
        "stands_in_for": (),
        "paper": {"hits@1": 0.576, "mean_size": 7500.0},
        "settings": Settings(),
    }
    return PaperSystem(**values | changes)


def test_records_are_read_and_added(tmp_path: Path) -> None:
    assert read_results(tmp_path / "none") == []
    write(tmp_path, record())
    add_record(tmp_path, ResultRecord.model_validate(record(seed=1, hits=0.61)))
    add_record(tmp_path, ResultRecord.model_validate(record(dataset="other")))
    assert [(one.dataset, one.random_seed) for one in read_results(tmp_path)] == [
        ("EN_FR_15K_V1", 0),
        ("EN_FR_15K_V1", 1),
        ("other", 0),
    ]
    assert read_records(tmp_path / "EN_FR_15K_V1.json")[0].model_dump() == record() | {"origin": None}
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"random_seed": -1}, "random_seed"),
        ({"ideal": {"cosine": {"hits@5": 0.5}, "csls": None}}, "needs hits@1"),
        ({"ideal": {"cosine": None}}, "the scoring csls is missing"),
        ({"ideal": {"cosine": None, "csls": None}}, "no scoring was measured"),
        ({"real": {"mutual_5nn": {"precision": 1.5, "recall": 0, "f1": 0, "pairs": 1}}}, "real.mutual_5nn.precision"),
        ({"real": {"mutual_5nn": {"precision": None, "recall": 0, "f1": 0}}}, "real.mutual_5nn.pairs"),
        ({"partition": {"train_kept": 1.0}}, "partition.test_kept"),
        ({"training": {"seconds": float("nan"), "peak_memory_mb": 1, "peak_gpu_mb": 1}}, "training.seconds"),
        ({"more": 1}, "more"),
    ],
)
def test_a_wrong_record_is_named(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    file = write(tmp_path, record(), record(seed=1) | wrong)
    with pytest.raises(InputError) as error:
        read_records(file)
    assert f"{file}, record 2 (LargeGNN)" in str(error.value)
    assert said in str(error.value)


def test_records_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="recorded twice"):
        read_records(write(tmp_path, record(), record()))
    with pytest.raises(InputError, match="different settings"):
        read_records(write(tmp_path, record(), record(seed=1, settings={"parts": 6})))
    with pytest.raises(InputError, match="another data set"):
        read_records(write(tmp_path, record(), name="EN_DE_15K_V1"))
    for text in ("{}", "[1]", "["):
        (tmp_path / "EN_FR_15K_V1.json").write_text(text)
        with pytest.raises(InputError, match=r"EN_FR_15K_V1\.json"):
            read_records(tmp_path / "EN_FR_15K_V1.json")
    file = write(tmp_path, record())
    with pytest.raises(InputError, match="recorded twice"):
        add_record(tmp_path, ResultRecord.model_validate(record()))
    assert len(read_records(file)) == 1


def test_superseded_records_are_kept_with_the_reason(tmp_path: Path) -> None:
    write(tmp_path, record(), record(seed=1), record(BEST))
    assert supersede(tmp_path, "EN_FR_15K_V1", PLAIN, "made with the weighted mean") == 2
    assert [one.system for one in read_results(tmp_path)] == [BEST]
    assert supersede(tmp_path, "EN_FR_15K_V1", PLAIN, "again") == 0
    assert supersede(tmp_path, "nowhere", PLAIN, "again") == 0
    assert supersede(tmp_path, "EN_FR_15K_V1", BEST, "another reason") == 1
    older = json.loads((tmp_path / "superseded" / "EN_FR_15K_V1.json").read_text())
    assert [(one["system"], one["random_seed"], one["reason"]) for one in older] == [
        (PLAIN, 0, "made with the weighted mean"),
        (PLAIN, 1, "made with the weighted mean"),
        (BEST, 0, "another reason"),
    ]


def test_means_and_differences_by_hand() -> None:
    records = [ResultRecord.model_validate(record(seed=seed, hits=hits)) for seed, hits in enumerate((0.5, 0.6, 0.7))]
    rows = make_rows([system(), system(name=BEST, paper={})], records, "15k")
    cell = rows[0].cells["hits@1"]
    assert cell.ours is not None
    assert cell.ours.mean == pytest.approx(0.6)
    assert cell.ours.runs == 3
    assert cell.ours.deviation == pytest.approx(0.1), "of a sample: two degrees of freedom"
    assert cell.difference == pytest.approx(0.024)
    assert rows[0].cells["csls_hits@1"].ours is None
    assert rows[0].cells["mean_size"].difference is None
    assert (rows[1].runs, rows[1].cells["hits@1"].ours) == (0, None)
    assert summarise_records(records, lambda one: one.partition.peak_memory_mb) is None
    text = table_markdown(rows, "15k")
    assert "| LargeGNN | .576 | .600 ± .100 | +.024 | – | – | 3 |" in text
    assert "| LargeGNN (best) | – | not run | – | not run | not run | 0 |" in text
    # The file of the system has other settings than the records, which do not say what made them.
    assert (
        "- Recorded by version 0.1.0, commit unknown; with settings that the file no longer has: parts 5, now" in text
    )
    assert json.loads(json.dumps(rows_as_json(rows, "15k")))["rows"][0]["cells"]["hits@1"]["difference"] > 0


def test_one_run_has_no_spread_and_a_stand_in_no_difference() -> None:
    other = ResultRecord.model_validate(record(dataset="ContEA_FR_EN"))
    one = system("ContEA_FR_EN", tables=("100k",), stands_in_for=("EN_FR_100K_V1",))
    rows = make_rows([one], [other], "100k")
    assert rows[0].cells["hits@1"].difference is None
    text = table_markdown(rows, "100k")
    assert "| .600 |" in text
    assert "not with the paper" in text
    assert "| LargeGNN | .250 | .500 | .333 |" in text


def test_precision_has_no_difference_and_recall_has() -> None:
    large = ResultRecord.model_validate(record(dataset="DBpedia1M_EN_FR"))
    paper = {"precision": 0.393, "recall": 0.183, "f1": 0.25, "mrr": 0.245, "hits@5": 0.314, "hits@1": 0.178}
    (row,) = make_rows([system("DBpedia1M_EN_FR", tables=("1m",), paper=paper)], [large], "1m")
    assert row.cells["precision"].difference is row.cells["f1"].difference is None
    assert row.cells["recall"].difference == pytest.approx(0.317)
    text = table_markdown([row], "1m")
    assert "| LargeGNN | .393 | .250 | .183 | .500 | +.317 | .250 | .333 |" in text
    assert "not available" not in text


def test_cost_and_best_need_records() -> None:
    systems = [system(), system(name=BEST)]
    empty = page_sections(systems, [])
    assert set(empty) == {*TABLES, "best", "cost"}
    assert empty["cost"] == "Not run."
    found = page_sections(systems, [ResultRecord.model_validate(record()), ResultRecord.model_validate(record(BEST))])
    assert "| EN_FR_15K_V1 | LargeGNN | a test | 0.20 | – | 40.0 | 900 | – | – | 1 |" in found["cost"]
    assert "| EN_FR_15K_V1 | .600 | .600 |" in found["best"]


def test_a_page_is_filled_between_its_marks() -> None:
    page = "before\n<!-- table:a -->\nold\n<!-- /table -->\nbetween\n<!-- table:b -->\n<!-- /table -->\nafter\n"
    filled = fill_page(page, {"a": r"new \1", "b": "x"})
    assert filled == page.replace("old", r"new \1").replace("b -->\n", "b -->\nx\n")
    assert fill_page(filled, {"a": r"new \1", "b": "x"}) == filled
    with pytest.raises(InputError, match="do not correspond"):
        fill_page(page, {"a": "new"})


def test_stored_records_belong_to_systems() -> None:
    known = {(one.dataset, one.name) for one in read_systems(CONFIGS)}
    assert {(one.dataset, one.system) for one in read_results(RESULTS)} <= known


def test_scorings_side_by_side(tmp_path: Path) -> None:
    figures = {"cosine": {"hits@1": 0.5}, "csls": {"hits@1": 0.6}, "transport+rules": {"hits@1": 0.7}}
    other = figures | {"transport+rules": {"hits@1": 0.8}}
    file = write(tmp_path, record(ideal=figures), record(seed=1, ideal=other), record("LargeEA", ideal=figures))
    table = scoring_section(read_records(file))
    assert "| EN_FR_15K_V1 | LargeGNN | .500 ± .000 | .600 ± .000 | – | – | .750 ± .071 | 2 |" in table
    assert "LargeEA" not in table


def subgraph(seed: int = 0, parts: int = 3, **changes: Any) -> dict[str, Any]:
    origin = origin_of(Settings(seed=seed), []).model_dump()
    names = {"key": f"A, csg, {parts}, {seed}", "dataset": "A", "method": "csg", "parts": parts, "random_seed": seed}
    return names | {"train_kept": 1.0, "test_kept": 0.9 + seed / 50, "origin": origin} | changes


def write_lines(file: Path, *lines: dict[str, Any]) -> Path:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_subgraph_records(tmp_path: Path) -> None:
    trained = [subgraph(seed, 4, **{"hits@1": hits}) for seed, hits in enumerate((0.5, 0.6))]
    file = write_lines(tmp_path / "subgraphs.jsonl", *trained, subgraph(), subgraph(1))
    records = read_subgraphs(file)
    assert mean_rows(records, "test_kept")[0] == {
        "dataset": "A",
        "method": "csg",
        "parts": 3,
        "value": pytest.approx(0.91),
        "spread": pytest.approx(0.02 / 2**0.5),
        "runs": 2,
    }
    section = subgraph_section(records)
    assert "| A | CSG (METIS + landmarks) | .910 | .910 |" in section
    assert "| A | CSG (METIS + landmarks) | .550 ± .071 |" in section
    assert f"version {__version__}" in section
    assert "Peak memory of training, MB, against the number of subgraphs: not run." in section
    for wrong in (subgraph(method="kmeans"), subgraph(test_kept=2), subgraph(), subgraph(1, origin=None)):
        with pytest.raises(InputError, match="line 2"):
            read_subgraphs(write_lines(file, subgraph(), wrong))


def test_what_made_runs_shows_that_no_commit_had_all_changes() -> None:
    origin = origin_of(Settings(), []).model_dump() | {"version": "0.2.0", "tree": None}
    commits = ("1234567890", "1234567890+", "1234567890")
    runs = [ResultRecord.model_validate(record(origin=origin | {"commit": commit})) for commit in commits]
    assert made_by(runs) == "version 0.2.0, commits 12345678, 12345678+"
    assert made_by(runs[:1]) == "version 0.2.0, commit 12345678"
