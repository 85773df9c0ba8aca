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
from largegnn.artifacts import REASONS, PairFigures
from largegnn.errors import InputError
from largegnn.matching.nearest import SearchResult
from largegnn.pipeline import run_pipeline
from largegnn.run import Run
from largegnn.settings import STEPS, Settings, TrainSettings
from tests.cli.small_runs import WORLD

QUICK = Settings(device="cpu", train=TrainSettings(dim=8, epochs=4, repartition_every=0))
EVIDENCE = ["cosine", "csls", "support"]
COLUMNS = ["source", "target", "score", "margin", *EVIDENCE, "confidence", "mutual", "rank", "accepted"]
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
    assert found.unmatched.equals(result.unmatched)
    assert found.summary.evaluation == result.summary.evaluation


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
    assert found.summary.evaluation is not None
    assert found.summary.evaluation.protocol.num_test_links == 60
    assert found.pairs["source"].str.contains(r"^\d+$").all()


def test_the_same_frames_are_the_same_run(
    frames: Frames, result: largegnn.AlignmentResult, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="largegnn")
    kept = largegnn.align(**given(frames), out=tmp_path / "run")
    assert kept.candidates.equals(result.candidates)
    assert list(kept.summary.costs) == [name for name in STEPS if name != "rounds"]
    opened = largegnn.open_run(tmp_path / "run")
    assert opened.candidates.equals(result.candidates)
    assert json.dumps(opened.summary.to_dict()) == json.dumps(kept.summary.to_dict())
    caplog.clear()
    again = largegnn.align(**given(frames), out=tmp_path / "run")
    assert not [message for message in caplog.messages if message.endswith("started")], "the same frames, the same run"
    assert again.pairs.equals(kept.pairs)
    fewer = given(frames, test_links=frames["test_links"][:-1])
    with pytest.raises(InputError, match="holds another run"):
        largegnn.align(**fewer, out=tmp_path / "run")


def test_an_interrupted_run_of_frames_goes_on(frames: Frames, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> SearchResult:
        raise KeyboardInterrupt

    with monkeypatch.context() as impatient:
        impatient.setattr("largegnn.pipeline.find_nearest", interrupt)
        with pytest.raises(KeyboardInterrupt):
            largegnn.align(**given(frames), out=tmp_path / "run")
    with pytest.raises(InputError, match="no match yet"):
        largegnn.open_run(tmp_path / "run")
    begun = Run.open(tmp_path / "run")
    run_pipeline(tmp_path / "run", begun.given, begun.settings)
    assert len(largegnn.open_run(tmp_path / "run").pairs)


def test_pairs_candidates_and_unmatched_entities(result: largegnn.AlignmentResult) -> None:
    assert result.pairs.columns == result.candidates.columns == COLUMNS
    assert result.pairs.equals(result.candidates.filter("accepted"))
    assert result.candidates["confidence"].is_between(0, 1).all()
    assert result.candidates["rank"].min() == 1
    unmatched = result.unmatched
    assert unmatched.columns == ["side", "entity", "reason", "best_candidate", "matched_with", "score"]
    assert set(unmatched["reason"]) <= set(REASONS) - {"aligned", "seed"}
    assert not set(unmatched.filter(pl.col("side") == "source")["entity"]) & set(result.pairs["source"])
    assert len(unmatched) + 2 * len(result.pairs) + 2 * len(result.task.train_links) == result.task.num_entities


def test_the_nearest_are_those_of_the_other_side(result: largegnn.AlignmentResult) -> None:
    pair = result.candidates.sort("cosine").row(-1, named=True)  # rules may propose pairs that the search did not find
    near = result.nearest(pair["source"])
    assert near.columns == ["entity", "cosine"]
    assert len(near) == QUICK.search.k
    assert near["cosine"].is_sorted(descending=True)
    assert near.filter(pl.col("entity") == pair["target"])["cosine"].item() == pytest.approx(pair["cosine"], abs=1e-5)
    assert all(result.entity(name, "target") for name in near["entity"])
    assert all(result.entity(name, "source") < 200 for name in result.nearest(pair["target"])["entity"])
    seed = result.names.entities[int(result.task.train_links[0, 0])]
    with pytest.raises(InputError, match="was not searched for") as error:
        result.nearest(seed)
    assert error.value.found == "it is seed"


def test_explain_names_matched_neighbors_on_both_sides(result: largegnn.AlignmentResult) -> None:
    pair = result.pairs.sort("confidence").row(-1, named=True)
    found = result.explain(pair["source"])
    assert (found.entity, found.side, found.state) == (pair["source"], "source", "aligned")
    expected = result.candidates.filter(source=pair["source"])["target"].to_list()
    assert [candidate.target for candidate in found.candidates] == expected
    best = next(candidate for candidate in found.candidates if candidate.accepted)
    assert (best.source, best.target, best.confidence) == (pair["source"], pair["target"], pair["confidence"])
    assert best.evidence == {name: pair[name] for name in EVIDENCE}
    task, touching = result.task, {}
    for side, name in ((0, pair["source"]), (1, pair["target"])):
        entity = result.entity(name, ("source", "target")[side])
        ends = task.triples[(task.triples[:, (0, 2)] == entity).any(axis=1)][:, (0, 2)]
        touching[side] = set(result.names.entities.take(np.unique(ends)))
    assert best.matched_neighbors
    assert all(near.source in touching[0] and near.target in touching[1] for near in best.matched_neighbors)
    assert all(near.source_relations and near.target_relations for near in best.matched_neighbors)


def test_evaluate_by_ids_and_by_names(result: largegnn.AlignmentResult, frames: Frames) -> None:
    evaluation, found = result.summary.evaluation, result.alignment
    assert evaluation is not None
    assert evaluation.real is not None
    figures = result.evaluate(result.task.test_links)
    assert figures == evaluation.real["accepted"]
    assert result.evaluate(frames["test_links"]) == figures
    accepted = found.pairs[found.accepted]
    assert result.evaluate(accepted) == PairFigures(1.0, 1.0, 1.0, len(accepted), 1.0, 1.0, len(accepted))
    assert result.evaluate(result.pairs).f1 == 1.0
    assert (result.evaluate(frames["valid_links"]).recall or 0) > 0
    assert result.evaluate(result.task.test_links[:0]).recall is None


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
    for look in (result.entity, result.nearest, result.explain):
        with pytest.raises(InputError, match="no entity is called 'unknown'"):
            look("unknown")
    with pytest.raises(InputError, match="no side 'left'"):
        result.entity("unknown", "left")
    with pytest.raises(InputError, match="no entity is called"):
        result.evaluate(pl.DataFrame({"a": ["unknown"], "b": ["unknown"]}))


def test_both_graphs_may_use_a_name(frames: Frames) -> None:
    shared = {name: frame.select(pl.all().str.extract(r"(\d+)$")) for name, frame in frames.items()}
    result = largegnn.align(**given(shared))
    names = result.names.entities.take(range(380))
    name = next(name for name in names[:200] if name in names[200:])
    with pytest.raises(InputError, match="both graphs have an entity"):
        result.explain(name)
    assert result.entity(name, "source") == names.index(name)
    assert result.entity(name, "target") == names.index(name, 200)


FORMS = {"tsv": "a.tsv", "parquet": "a.parquet", "sameas": "a.nt", "sssom": "a.sssom.tsv", "alignment-api": "a.rdf"}


def test_files(result: largegnn.AlignmentResult, tmp_path: Path) -> None:
    for form, name in FORMS.items():
        assert result.export(form, tmp_path / name) == len(result.pairs)
    assert result.export("parquet", str(tmp_path / "all.parquet"), accepted_only=False) == len(result.candidates)
    assert result.export("embeddings-safetensors", tmp_path / "v.safetensors") == result.task.num_entities
    assert result.export("embeddings-npy", tmp_path / "v.npy") == result.task.num_entities
    assert pl.read_parquet(tmp_path / "a.parquet").equals(result.pairs)
    assert np.load(tmp_path / "v.npy").shape == (380, 48)
    with pytest.raises(InputError, match="no export form is called 'xml'"):
        result.export("xml", tmp_path / "a.xml")


WRONG: list[tuple[str, Any, str]] = [
    ("source", None, "nothing to align the source with"),
    ("source", 7, "of a kind that cannot be read"),
    ("source", ["abc", "def"], "of a kind that cannot be read"),
    ("source", [("a", "r", "b"), ("a", "r")], "of a kind that cannot be read"),
    ("source", [("a", "r", None)], "the source have an empty name"),
    ("source", [("a", "r", float("nan"))], "the source have an empty name"),
    ("source", [("a", "r", "")], "the source have an empty name"),
    ("source", [("a", "r", b"b")], "something that is not a name"),
    ("source", [("a", "b")], "the source have 2 columns"),
    ("target", pl.DataFrame({"a": ["x"], "b": ["y"]}), "the target have 2 columns"),
    ("target", pl.DataFrame({"h": [["x"]], "r": ["y"], "t": ["z"]}), "a column that is not text"),
    ("seeds", pl.DataFrame({"a": ["x"], "b": [None]}), "the seeds have an empty name"),
    ("seeds", [("a", "r", "b")], "the seeds have 3 columns"),
    ("seeds", [("unknown", "no one")], "links name entities"),
    ("seeds", {"a": "b"}, "of a kind that cannot be read"),
    ("seeds", None, "nothing to start from: no seeds"),
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
