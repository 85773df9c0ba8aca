"""A run grows by what came later: known things stay, new things are found, nothing is half-written."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from largegnn import api
from largegnn import enlarge_run as updating
from largegnn.artifacts import (
    REASONS,
    Alignment,
    AlignmentTask,
    EntityEmbeddings,
    IntArray,
    Neighbors,
    SubgraphSet,
    TrainedModel,
    UpdateReport,
    are_among,
)
from largegnn.embedding.encode import integrate
from largegnn.enlarge_run import cost_of_adding
from largegnn.errors import InputError
from largegnn.evaluation.metrics import rank_links
from largegnn.pipeline import run_pipeline
from largegnn.result import AlignmentResult
from largegnn.run import Run
from largegnn.settings import PRESETS, STEPS, Settings, WorldSettings, resolve

WORLD = WorldSettings(
    source_entities=360,
    target_entities=340,
    links=300,
    source_relations=12,
    target_relations=10,
    source_triples=1_800,
    target_triples=1_600,
    missing=0.05,
    train_share=0.3,
    valid_share=0.2,
)
QUICK = [
    "train.dim=16",
    "train.epochs=5",
    "train.repartition_every=0",
    "division.parts=2",
    "landmarks.cap=460",
    "device=cpu",
]


def settings(*overrides: str) -> Settings:
    return resolve(Settings, PRESETS, overrides=[*QUICK, "device=cpu", *overrides])


def write(path: Path, rows: list[tuple[str, ...]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


@dataclasses.dataclass(frozen=True)
class Withheld:
    """A pair without a tenth of its test links' entities, and what was taken away."""

    base: Path
    source: Path
    target: Path
    links: Path


def withhold(folder: Path) -> Withheld:
    """Take the entities of every tenth link with all their triples out of a generated pair, test links only."""
    pair = api.generate(WORLD)
    task, entities, relations = pair.task, pair.names.entities, pair.names.relations
    held = task.test_links[::5]
    away = np.zeros(task.num_entities, dtype=bool)
    away[held.ravel()] = True

    def named(triples: IntArray) -> list[tuple[str, ...]]:
        return [(entities[head], relations[relation], entities[tail]) for head, relation, tail in triples.tolist()]

    def linked(links: IntArray) -> list[tuple[str, ...]]:
        return [(entities[source], entities[target]) for source, target in links.tolist()]

    gone = away[task.triples[:, (0, 2)]].any(axis=1)
    on_source = task.triples[:, 0] < task.num_source_entities
    for side, mask in (("1", on_source), ("2", ~on_source)):
        write(folder / "base" / f"rel_triples_{side}", named(task.triples[mask & ~gone]))
        write(folder / "added" / side, named(task.triples[mask & gone]))
    kept = task.test_links[~are_among(task.test_links, held)]
    for split, links in (("train", task.train_links), ("valid", task.valid_links), ("test", kept)):
        write(folder / "base" / f"{split}_links", linked(links))
    added = folder / "added"
    return Withheld(folder / "base", added / "1", added / "2", write(added / "links", linked(held)))


@pytest.fixture(scope="module")
def withheld(tmp_path_factory: pytest.TempPathFactory) -> Withheld:
    return withhold(tmp_path_factory.mktemp("withheld"))


@pytest.fixture(scope="module")
def base(withheld: Withheld, tmp_path_factory: pytest.TempPathFactory) -> AlignmentResult:
    return api.align(withheld.base, out=tmp_path_factory.mktemp("base") / "run", settings=settings())


def report_of(result: AlignmentResult) -> UpdateReport:
    """What the summary says of the update."""
    report = result.summary.update
    assert report is not None
    return report


@pytest.fixture(scope="module")
def updated(base: AlignmentResult, withheld: Withheld, tmp_path_factory: pytest.TempPathFactory) -> AlignmentResult:
    out = tmp_path_factory.mktemp("updated") / "run"
    files = (withheld.source, withheld.target)
    return api.update(base.run.folder, *files, test_links=withheld.links, out=out)


def same_pairs(one: AlignmentResult, other: AlignmentResult) -> bool:
    return bool(one.candidates.equals(other.candidates))


def test_known_entities_keep_names_rows_and_links(base: AlignmentResult, updated: AlignmentResult) -> None:
    new_id = {name: number for number, name in enumerate(updated.names.entities)}
    old_names = list(base.names.entities)
    map_ids = np.array([new_id[name] for name in old_names])
    shift = updated.task.num_source_entities - base.task.num_source_entities
    split = base.task.num_source_entities
    assert np.array_equal(map_ids, np.arange(len(old_names)) + np.where(np.arange(len(old_names)) < split, 0, shift))
    before, after = base.run.artifact("model", TrainedModel), updated.run.artifact("model", TrainedModel)
    had_triples = np.bincount(base.task.triples[:, (0, 2)].ravel(), minlength=base.task.num_entities) > 0
    assert np.array_equal(after.entity_rows[map_ids[had_triples]], before.entity_rows[had_triples])
    assert np.array_equal(after.relation_rows, before.relation_rows), "no relation is new here"
    assert np.array_equal(after.encoder_weights, before.encoder_weights)
    for split_name in ("train_links", "valid_links"):
        assert np.array_equal(map_ids[getattr(base.task, split_name)], getattr(updated.task, split_name))
    assert len(updated.task.triples) == WORLD.source_triples + WORLD.target_triples


def test_the_folder_holds_what_the_stages_make_of_the_enlarged_task(updated: AlignmentResult) -> None:
    run, chosen = updated.run, updated.run.settings
    task = run.task.without_test_links()
    model, subgraphs = run.artifact("model", TrainedModel), run.artifact("subgraphs", SubgraphSet)
    embeddings = integrate(task, model, subgraphs, chosen.train, chosen.integrate, device="cpu").embeddings
    assert np.array_equal(embeddings.vectors, run.artifact("embeddings", EntityEmbeddings).vectors)
    near_targets, near_sources = api.search(task, embeddings, chosen)
    assert np.array_equal(near_targets.ids, run.artifact("source_neighbors", Neighbors).ids)
    alignment, _ = api.match(task, embeddings, (near_targets, near_sources), chosen)
    for field in dataclasses.fields(Alignment):
        assert np.array_equal(getattr(alignment, field.name), getattr(updated.alignment, field.name))


def test_new_entities_are_found_far_better_than_chance(updated: AlignmentResult, withheld: Withheld) -> None:
    rows = [line.split("\t") for line in withheld.links.read_text().splitlines()]
    links = np.array([(updated.entity(s, "source"), updated.entity(t, "target")) for s, t in rows])
    vectors = updated.run.artifact("embeddings", EntityEmbeddings).vectors
    sources = np.arange(updated.task.num_source_entities)
    # Each new source ranks all targets, known ones included.
    scores = vectors[links[:, 0]] @ vectors[len(sources) :].T
    ranks = (scores >= scores[np.arange(len(links)), links[:, 1] - len(sources)][:, None]).sum(axis=1)
    assert (ranks <= 10).mean() > 0.5, "chance is .03"
    report = report_of(updated)
    assert report.entities[0] >= len(links)
    assert sum(report.embedded) >= 2 * len(links)
    assert report.not_reached == (0, 0)
    assert report.known_neighbors > 1
    pairs, cost = report.pairs, report.cost
    assert pairs is not None
    assert pairs.test_links == len(links)
    assert 0 < pairs.test_links_found <= pairs.pairs
    assert cost is not None
    assert (cost.links, cost.hidden_sides) == (50, ("source", "target"))
    assert 0 < cost.found_added <= 50
    assert cost.ratio == cost.found_added / cost.found_trained


def test_the_estimate_counts_what_trained_rows_find(updated: AlignmentResult) -> None:
    """With every valid link in the sample, the count of trained rows is that of the ranks, half from either side."""
    run, task = updated.run, updated.run.task.without_test_links()
    few = dataclasses.replace(task, valid_links=task.valid_links[:40])
    embeddings = run.artifact("embeddings", EntityEmbeddings)
    model, subgraphs = run.artifact("model", TrainedModel), run.artifact("subgraphs", SubgraphSet)
    everyone = np.ones(task.num_entities, dtype=bool)
    cost = cost_of_adding(few, model, everyone, embeddings, subgraphs, run.settings, (0,))
    assert cost is not None
    ranks = rank_links(embeddings.vectors[few.valid_links[:, 0]], embeddings.vectors[few.valid_links[:, 1]], "csls")
    assert cost.links == 40
    assert cost.found_trained == int((ranks.source_to_target == 1).sum())
    none = dataclasses.replace(task, valid_links=task.valid_links[:0])
    assert cost_of_adding(none, model, everyone, embeddings, subgraphs, run.settings, (0,)) is None
    paper = run.settings.model_copy(
        update={"protocol": run.settings.protocol.model_copy(update={"seeds_from": "train+valid"})}
    )
    assert cost_of_adding(task, model, everyone, embeddings, subgraphs, paper, (0,)) is None


def test_an_update_is_a_run_like_any_other(updated: AlignmentResult, tmp_path: Path) -> None:
    folder = updated.run.folder
    begun = Run.open(folder)
    again = run_pipeline(folder, begun.given, begun.settings, first="evaluate")
    assert again.finished == [name for name in STEPS if name != "rounds"]
    evaluation = updated.summary.evaluation
    assert evaluation is not None
    assert evaluation.ideal is not None
    assert (evaluation.ideal["csls"].source_to_target["hits@1"] or 0) > 0.2
    assert updated.export("tsv", tmp_path / "pairs.tsv") == len(updated.pairs)
    name = str(updated.pairs["source"][0])
    assert updated.explain(name, "source").candidates
    assert begun.settings.landmarks.cap == np.ceil(
        460 * updated.task.num_entities / (updated.task.num_entities - _added(updated))
    )


def _added(result: AlignmentResult) -> int:
    return sum(report_of(result).entities)


def test_the_same_again_gives_the_same_and_adds_nothing(
    base: AlignmentResult,
    updated: AlignmentResult,
    withheld: Withheld,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = ([withheld.source], [withheld.target])
    other = api.update(base.run.folder, *files, test_links=withheld.links, out=tmp_path / "other")
    assert same_pairs(updated, other)
    third = api.update(updated.run.folder, *files, out=tmp_path / "third")
    assert "nothing new" in caplog.text
    assert same_pairs(updated, third)
    assert np.array_equal(
        third.run.artifact("model", TrainedModel).entity_rows, updated.run.artifact("model", TrainedModel).entity_rows
    )


def test_large_growth_is_said(base: AlignmentResult, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    few = write(tmp_path / "few", [(base.names.entities[0], base.names.relations[0], "new")])
    api.update(base.run.folder, few, out=tmp_path / "small")
    assert "training saw nothing" not in caplog.text
    many: list[tuple[str, ...]] = [(base.names.entities[0], base.names.relations[0], f"new{i}") for i in range(100)]
    api.update(base.run.folder, write(tmp_path / "many", many), out=tmp_path / "large")
    assert "training saw nothing of 1" in caplog.text


def test_in_two_steps(base: AlignmentResult, updated: AlignmentResult, withheld: Withheld, tmp_path: Path) -> None:
    first = api.update(base.run.folder, withheld.source, out=tmp_path / "first")
    cost = report_of(first).cost
    assert cost is not None
    assert cost.hidden_sides == ("source",)
    second = api.update(tmp_path / "first", target_triples=withheld.target, out=tmp_path / "second")
    assert set(second.names.entities) == set(updated.names.entities)
    assert len(second.task.triples) == len(updated.task.triples)


def test_more_seeds_are_known_pairs(base: AlignmentResult, withheld: Withheld, tmp_path: Path) -> None:
    result = api.update(base.run.folder, withheld.source, withheld.target, withheld.links, out=tmp_path / "run")
    known = [line.split("\t") for line in withheld.links.read_text().splitlines()]
    assert report_of(result).seeds == len(known)
    codes = result.alignment.reasons[[result.entity(source, "source") for source, _ in known]]
    assert {REASONS[code] for code in codes} == {"seed"}


def test_what_nothing_known_touches_is_not_covered(base: AlignmentResult, tmp_path: Path) -> None:
    known, relation = base.names.entities[0], base.names.relations[0]
    rows: list[tuple[str, ...]] = [(known, relation, "near"), ("near", "new", "next"), ("far", relation, "farther")]
    result = api.update(base.run.folder, np.array(rows), out=tmp_path / "run")
    reasons = dict(zip(result.unmatched["entity"], result.unmatched["reason"], strict=True))
    assert (reasons["far"], reasons["farther"]) == ("not covered", "not covered")
    assert reasons.get("near", "") != "not covered"
    assert reasons.get("next", "") != "not covered"
    report = report_of(result)
    assert (report.entities, report.relations, report.triples) == ((4, 0), (1, 0), (3, 0))
    assert (report.embedded, report.beside_known, report.not_reached) == ((2, 0), (1, 0), (2, 0))


def test_what_is_refused(base: AlignmentResult, withheld: Withheld, tmp_path: Path) -> None:
    run = base.run.folder
    with pytest.raises(InputError, match="there already"):
        api.update(run, withheld.source, out=run)
    with pytest.raises(InputError, match="manifest"):
        api.update(tmp_path, withheld.source, out=tmp_path / "new")
    with pytest.raises(InputError, match="triples of the source graph"):
        api.update(run, target_triples=withheld.base / "rel_triples_1", out=tmp_path / "new")
    assert base.summary.update is None
    assert "update" not in base.summary.to_dict()
    divided = run_pipeline(tmp_path / "divided", api.data_input(withheld.base), settings(), last="subgraphs")
    with pytest.raises(InputError, match="no match yet"):
        api.update(divided.folder, withheld.source, out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_interrupted_update_leaves_nothing(
    base: AlignmentResult, withheld: Withheld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(run: Run) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(updating, "cost_of_adding", lambda *_: stop(base.run))
        with pytest.raises(KeyboardInterrupt):
            api.update(base.run.folder, withheld.source, out=tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".new.partial").mkdir()  # as a kill would leave it
    (tmp_path / ".new.partial" / "manifest.json").write_text("half")
    api.update(base.run.folder, withheld.source, out=tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_after_rounds_and_with_average(withheld: Withheld, tmp_path: Path) -> None:
    chosen = settings("rounds.number=1", "rounds.epochs=1", "integrate.method=average", "landmarks.cap=auto")
    api.align(withheld.base, out=tmp_path / "run", settings=chosen)
    result = api.update(tmp_path / "run", withheld.source, withheld.target, out=tmp_path / "new")
    refined = result.run.artifact("refined_model", TrainedModel)
    assert np.array_equal(refined.entity_rows, result.run.artifact("model", TrainedModel).entity_rows)
    assert result.summary.rounds is not None
    assert len(result.summary.rounds.history) == 1
    assert len(result.pairs)
    begun = Run.open(tmp_path / "new")
    trained = run_pipeline(tmp_path / "new", begun.given, begun.settings, force="train")
    assert trained.artifact("task", AlignmentTask).num_entities == WORLD.source_entities + WORLD.target_entities
    assert trained.summary.update is None, "it is trained on everything now"
