"""`largegnn explain`: what an entity is matched with and why, or who stands in its way; and help with names."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from largegnn import AlignmentResult, api
from tests.cli.small_runs import call


@pytest.fixture(scope="module")
def result(finished: Path) -> AlignmentResult:
    return api.open_run(finished)


def best_pair(finished: Path) -> dict[str, object]:
    pairs = pl.read_csv(finished / "alignment.tsv", separator="\t", quote_char=None)
    return pairs.sort("support", descending=True).row(0, named=True)


def test_a_matched_entity_with_its_evidence_and_relations(finished: Path, result: AlignmentResult) -> None:
    best = best_pair(finished)
    source, target = str(best["source"]), str(best["target"])
    found = call("explain", finished, source, "--json").json()
    assert (found["entity"], found["side"], found["state"], found["seed_partner"]) == (
        source,
        "source",
        "aligned",
        None,
    )
    accepted = [row for row in found["candidates"] if row["accepted"]]
    assert [(row["source"], row["target"]) for row in accepted] == [(source, target)]
    assert accepted[0]["evidence"].keys() >= {"cosine", "csls", "support"}
    assert [row["rank"] for row in found["candidates"]] == sorted(row["rank"] for row in found["candidates"])
    near = accepted[0]["matched_neighbors"]
    relations = set(result.names.relations.take(range(len(result.names.relations))))
    assert near
    for pair in near:
        assert pair["source_relations"]
        assert pair["target_relations"]
        assert {name.removeprefix("^") for name in pair["source_relations"] + pair["target_relations"]} <= relations
    shown = call("explain", finished, target, "--side", "target").stdout
    assert f"{target} (target) is matched." in shown
    assert f"{source} = {target}   accepted" in shown
    assert f"confidence {best['confidence']:.3f}, score" in shown
    assert f"support {best['support']:.3f}" in shown
    one = near[0]
    relations_shown = f"({', '.join(one['source_relations'])}) = {one['target']} ({', '.join(one['target_relations'])})"
    assert f"matched neighbours: {one['source']} {relations_shown}" in shown


def test_relations_that_are_shown_are_triples(finished: Path, result: AlignmentResult) -> None:
    """`^` before a relation means that its triple comes from the neighbour."""
    best, task, names = best_pair(finished), result.task, result.names
    entity = result.entity(str(best["source"]), "source")
    triples = {(head, names.relations[relation], tail) for head, relation, tail in task.triples.tolist()}
    near = next(row for row in result.explain(str(best["source"])).candidates if row.accepted).matched_neighbors
    for pair in near:
        neighbor = result.entity(pair.source, "source")
        for relation in pair.source_relations:
            name = relation.removeprefix("^")
            expected = (neighbor, name, entity) if relation.startswith("^") else (entity, name, neighbor)
            assert expected in triples


def test_a_seed_is_said_to_be_one(finished: Path, result: AlignmentResult) -> None:
    source, target = (result.names.entities[int(end)] for end in result.task.train_links[0])
    assert (
        f"{source} (source) is a seed: its given counterpart is {target}." in call("explain", finished, source).stdout
    )
    found = call("explain", finished, target, "--json").json()
    assert (found["state"], found["seed_partner"], found["candidates"]) == ("seed", source, [])


def test_an_unmatched_entity_is_told_who_has_its_candidate(finished: Path, result: AlignmentResult) -> None:
    taken = result.unmatched.filter((pl.col("reason") == "not mutual") & pl.col("matched_with").is_not_null())
    row = taken.row(0, named=True)
    shown = call("explain", finished, row["entity"], "--side", row["side"]).stdout
    assert f"{row['entity']} ({row['side']}) is unmatched" in shown
    assert f"Its best candidate {row['best_candidate']} is matched with {row['matched_with']}." in shown
    assert f"matched elsewhere: {row['matched_with']}" in shown
    assert "not accepted" in shown
    for reason, words in (("below threshold", "its best pair is below the threshold"),):
        below = result.unmatched.filter(pl.col("reason") == reason)
        if len(below):
            name, side = below.row(0, named=True)["entity"], below.row(0, named=True)["side"]
            assert words in call("explain", finished, name, "--side", side).stdout


def test_an_entity_without_any_candidate(finished: Path, result: AlignmentResult) -> None:
    lonely = result.unmatched.filter(pl.col("best_candidate").is_null())
    assert len(lonely), "the test has something to show"
    row = lonely.row(0, named=True)
    shown = call("explain", finished, row["entity"], "--side", row["side"]).stdout
    assert "It has no candidate: " in shown


def test_mistyped_names_get_near_ones(finished: Path) -> None:
    name = str(best_pair(finished)["source"])
    for mistyped in (name + "x", name[:-1].replace("http://", "https://") + name[-1], name.rsplit("/", 1)[1]):
        ended = call("explain", finished, mistyped, expect=2)
        assert f"no entity is called {mistyped!r}" in ended.stderr
        assert "written as in its file" in ended.stderr
        assert "did you mean" in ended.stderr
        assert repr(name) in ended.stderr
    ended = call("explain", finished, "no entity at all", expect=2)
    assert "no entity is called 'no entity at all'" in ended.stderr
    assert "fix: " in ended.stderr
    assert "no side 'left'" in call("explain", finished, "unknown", "--side", "left", expect=2).stderr
    long = call("explain", finished, "x" * 60_000, expect=2).stderr
    assert len(long) < 1_000, "a name is not printed whole"
