"""`largegnn.align` for programs: every kind of input, and everything a result can be asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

import largegnn
from largegnn import api
from largegnn.artifacts import REASONS, Alignment
from largegnn.errors import InputError
from largegnn.runs.pipeline import resume_input, run_pipeline
from largegnn.settings import Settings, TrainSettings
from largegnn.stages import STAGE_NAMES
from tests.cli.small_runs import WORLD

QUICK = Settings(device="cpu", train=TrainSettings(dim=8, epochs=4, repartition_every=0))
COLUMNS = ["source", "target", "score", "cosine", "margin", "confidence", "mutual", "rank", "accepted"]
Frames = dict[str, pl.DataFrame]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("api") / "pair"
    api.generate(WORLD, folder=folder)
    return folder


@pytest.fixture(scope="module")
def frames(pair: Path) -> Frames:
    """The files of the pair as frames, under the names of `align`'s arguments."""
    files = {
        "source": "rel_triples_1",
        "target": "rel_triples_2",
        "seeds": "721_5fold/1/train_links",
        "valid_links": "721_5fold/1/valid_links",
        "test_links": "721_5fold/1/test_links",
    }
    return {
        name: pl.read_csv(pair / file, separator="\t", has_header=False, quote_char=None)
        for name, file in files.items()
    }


@pytest.fixture(scope="module")
def result(pair: Path) -> largegnn.AlignmentResult:
    return largegnn.align(pair, settings=QUICK)


def given(frames: Frames, **changed: Any) -> dict[str, Any]:
    return {**frames, **changed, "settings": QUICK}


KINDS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "frames": lambda frame: frame,
    "lazy frames": pl.DataFrame.lazy,
    "arrays": lambda frame: frame.to_numpy().astype(str),
    "arrays of objects": pl.DataFrame.to_numpy,
    "lists": lambda frame: [list(row) for row in frame.rows()],
    "tuples": pl.DataFrame.rows,
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_in_memory_is_read_like_files(kind: str, frames: Frames, result: largegnn.AlignmentResult) -> None:
    found = largegnn.align(**{name: KINDS[kind](frame) for name, frame in frames.items()}, settings=QUICK)
    assert found.pairs.equals(result.pairs)
    assert found.left_out.equals(result.left_out)
    assert found.report["ideal"] == result.report["ideal"]


def test_paths_as_text_and_mixed_with_frames(pair: Path, frames: Frames, result: largegnn.AlignmentResult) -> None:
    assert largegnn.align(str(pair), settings=QUICK).pairs.equals(result.pairs)
    mixed = given(frames, source=pair / "rel_triples_1", seeds=str(pair / "721_5fold" / "1" / "train_links"))
    assert largegnn.align(**mixed).pairs.equals(result.pairs)


def test_columns_are_told_by_name_or_from_left_to_right(frames: Frames, result: largegnn.AlignmentResult) -> None:
    turned = frames["source"].select(pl.nth(2).alias("tail"), pl.nth(1).alias("relation"), pl.nth(0).alias("head"))
    seeds = frames["seeds"]
    scored = seeds.select(score=pl.lit(1.0), target=pl.nth(1), source=pl.nth(0))
    assert largegnn.align(**given(frames, source=turned, seeds=scored)).pairs.equals(result.pairs)
    named = seeds.rename(dict(zip(seeds.columns, ("mine", "yours"), strict=True)))
    assert largegnn.align(**given(frames, seeds=named)).pairs.equals(result.pairs)


def test_numbers_are_names_too(frames: Frames) -> None:
    def numbered(frame: pl.DataFrame) -> Any:
        return frame.select(pl.all().str.extract(r"(\d+)$").cast(pl.Int64)).to_numpy()

    found = largegnn.align(**{name: numbered(frame) for name, frame in frames.items()}, settings=QUICK)
    assert found.report["protocol"]["num_test_links"] == 60
    assert found.pairs["source"].str.contains(r"^\d+$").all()


def test_in_memory_and_in_a_run_folder_are_the_same(
    frames: Frames, result: largegnn.AlignmentResult, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="largegnn")
    kept = largegnn.align(**given(frames), out=tmp_path / "run")
    assert kept.candidates.equals(result.candidates)
    assert kept.report.keys() == result.report.keys()
    assert list(kept.report["stages"]) == list(STAGE_NAMES)
    opened = largegnn.open_run(tmp_path / "run")
    assert opened.candidates.equals(result.candidates)
    assert json.dumps(opened.report) == json.dumps(kept.report)
    caplog.clear()
    again = largegnn.align(**given(frames), out=tmp_path / "run")
    assert not [message for message in caplog.messages if message.endswith("started")], "the same frames, the same run"
    assert again.pairs.equals(kept.pairs)
    fewer = given(frames, test_links=frames["test_links"][:-1])
    with pytest.raises(InputError, match="holds another run"):
        largegnn.align(**fewer, out=tmp_path / "run")


def test_an_interrupted_run_of_frames_goes_on(frames: Frames, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as impatient:
        impatient.setattr("largegnn.aligning.search", interrupt)
        with pytest.raises(KeyboardInterrupt):
            largegnn.align(**given(frames), out=tmp_path / "run")
    with pytest.raises(InputError, match="no stage match"):
        largegnn.open_run(tmp_path / "run")
    run_pipeline(tmp_path / "run", *resume_input(tmp_path / "run"))
    assert len(largegnn.open_run(tmp_path / "run").pairs)


def test_pairs_candidates_and_what_is_left_out(result: largegnn.AlignmentResult) -> None:
    assert result.pairs.columns == result.candidates.columns == COLUMNS
    assert result.pairs.equals(result.candidates.filter("accepted"))
    assert result.candidates["confidence"].is_between(0, 1).all()
    assert result.candidates["rank"].min() == 1
    left_out = result.left_out
    assert left_out.columns == ["side", "entity", "reason"]
    assert set(left_out["reason"]) <= set(REASONS) - {"aligned", "seed"}
    assert not set(left_out.filter(pl.col("side") == "source")["entity"]) & set(result.pairs["source"])
    assert len(left_out) + 2 * len(result.pairs) + 2 * len(result.task.train_links) == result.task.num_entities


def test_neighbors_are_those_of_the_other_side(result: largegnn.AlignmentResult) -> None:
    pair = result.candidates.row(0, named=True)
    near = result.neighbors(pair["source"])
    assert near.columns == ["entity", "cosine"]
    assert len(near) == QUICK.search.k
    assert near["cosine"].is_sorted(descending=True)
    assert near.filter(pl.col("entity") == pair["target"])["cosine"].item() == pytest.approx(pair["cosine"], abs=1e-5)
    assert all(result.entity(name, "target") for name in near["entity"])
    assert all(result.entity(name, "source") < 200 for name in result.neighbors(pair["target"])["entity"])
    seed = result.names.entities[int(result.task.train_links[0, 0])]
    with pytest.raises(InputError, match="was not searched for") as error:
        result.neighbors(seed)
    assert error.value.found == "it is seed"


def test_explain_names_matched_neighbors_on_both_sides(result: largegnn.AlignmentResult) -> None:
    pair = result.pairs.sort("confidence").row(-1, named=True)
    found = result.explain(pair["source"])
    assert [row["target"] for row in found] == result.candidates.filter(source=pair["source"])["target"].to_list()
    best = next(row for row in found if row["accepted"])
    assert {key: best[key] for key in ("source", "target", "confidence")} == {
        key: pair[key] for key in ("source", "target", "confidence")
    }
    task, touching = result.task, {}
    for side, name in ((0, pair["source"]), (1, pair["target"])):
        entity = result.entity(name, ("source", "target")[side])
        ends = task.triples[(task.triples[:, (0, 2)] == entity).any(axis=1)][:, (0, 2)]
        touching[side] = set(result.names.entities.take(np.unique(ends)))
    assert best["matched_neighbors"]
    assert all(source in touching[0] and target in touching[1] for source, target in best["matched_neighbors"])


def test_evaluate_by_ids_and_by_names(result: largegnn.AlignmentResult, frames: Frames) -> None:
    figures = result.evaluate(result.task.test_links)
    assert figures == {key: value for key, value in result.report["real"]["threshold"].items() if key != "pairs"}
    assert result.evaluate(frames["test_links"]) == figures
    found = result.run.artifact("alignment", Alignment)
    assert result.evaluate(found.pairs[found.accepted]) == {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert result.evaluate(result.pairs)["f1"] == 1.0
    assert (result.evaluate(frames["valid_links"])["recall"] or 0) > 0
    assert result.evaluate(result.task.test_links[:0])["recall"] is None


@pytest.mark.parametrize(
    "links",
    [
        [("a", "b")],
        "links.tsv",
        np.zeros((2, 3), dtype=int),
        np.zeros(4, dtype=int),
        np.array([[0.5, 300.0]]),
        np.array([[0, 0]]),
        np.array([[300, 10]]),
        np.array([[0, 380]]),
        pl.DataFrame({"source": ["x"]}),
    ],
    ids=str,
)
def test_links_of_other_kinds_are_refused(links: Any, result: largegnn.AlignmentResult) -> None:
    with pytest.raises(InputError, match="these links cannot be read"):
        result.evaluate(links)


def test_names_that_are_not_there(result: largegnn.AlignmentResult) -> None:
    for look in (result.entity, result.neighbors, result.explain):
        with pytest.raises(InputError, match="no entity is called 'nobody'"):
            look("nobody")
    with pytest.raises(InputError, match="no side 'left'"):
        result.entity("nobody", "left")
    with pytest.raises(InputError, match="no entity is called"):
        result.evaluate(pl.DataFrame({"a": ["nobody"], "b": ["nobody"]}))


def test_both_graphs_may_use_a_name(frames: Frames) -> None:
    shared = {name: frame.select(pl.all().str.extract(r"(\d+)$")) for name, frame in frames.items()}
    result = largegnn.align(**given(shared))
    names = result.names.entities.take(range(380))
    name = next(name for name in names[:200] if name in names[200:])
    with pytest.raises(InputError, match="both graphs have an entity"):
        result.explain(name)
    assert result.entity(name, "source") == names.index(name)
    assert result.entity(name, "target") == names.index(name, 200)


def test_files(result: largegnn.AlignmentResult, tmp_path: Path) -> None:
    accepted = len(result.pairs)
    assert result.to_tsv(tmp_path / "a.tsv") == accepted
    assert result.to_parquet(str(tmp_path / "a.parquet")) == accepted
    assert result.to_sameas(tmp_path / "a.nt") == accepted
    assert result.to_sssom(tmp_path / "a.sssom.tsv") == accepted
    assert result.to_alignment_api(tmp_path / "a.rdf") == accepted
    assert result.to_embeddings(tmp_path / "v.safetensors") == result.task.num_entities
    assert result.to_embeddings(tmp_path / "v.npy", "embeddings-npy") == result.task.num_entities
    assert pl.read_parquet(tmp_path / "a.parquet").equals(result.pairs)
    assert np.load(tmp_path / "v.npy").shape == (380, 48)
    with pytest.raises(InputError, match="no export form is called 'xml'"):
        result.to("xml", tmp_path / "a.xml")


WRONG: list[tuple[str, Any, str]] = [
    ("source", None, "nothing to align the source with"),
    ("source", 7, "of a kind that cannot be read"),
    ("source", ["abc", "def"], "of a kind that cannot be read"),
    ("source", [("a", "r", "b"), ("a", "r")], "of a kind that cannot be read"),
    ("source", [("a", "r", None)], "the source have an empty name"),
    ("source", [("a", "r", float("nan"))], "the source have an empty name"),
    ("source", [("a", "r", "")], "the source have an empty name"),
    ("source", [("a", "r", b"b")], "something that is no name"),
    ("source", [("a", "b")], "the source have 2 columns"),
    ("target", pl.DataFrame({"a": ["x"], "b": ["y"]}), "the target have 2 columns"),
    ("target", pl.DataFrame({"h": [["x"]], "r": ["y"], "t": ["z"]}), "a column that is no text"),
    ("seeds", pl.DataFrame({"a": ["x"], "b": [None]}), "the seeds have an empty name"),
    ("seeds", [("a", "r", "b")], "the seeds have 3 columns"),
    ("seeds", [("nobody", "no one")], "links name entities"),
    ("seeds", {"a": "b"}, "of a kind that cannot be read"),
    ("seeds", None, "no seeds were given"),
    ("seeds", Path("nowhere.tsv"), "the file does not exist"),
]


@pytest.mark.parametrize(("argument", "value", "message"), WRONG, ids=str)
def test_wrong_kinds_are_input_errors(argument: str, value: Any, message: str, frames: Frames) -> None:
    values = given(frames, **{argument: value})
    if argument == "source" and value is None:
        values["target"] = None
    with pytest.raises(InputError, match=message):
        largegnn.align(**values)


def test_one_frame_is_not_enough(frames: Frames) -> None:
    with pytest.raises(InputError, match="nothing to align the source with"):
        largegnn.align(frames["source"], settings=QUICK)
