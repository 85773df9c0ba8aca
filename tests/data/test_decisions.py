"""Test that decisions of reviewers become seeds and forbidden pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from largegnn.artifacts import AlignmentTask, CandidateGraph
from largegnn.data.inputs import DataInput
from largegnn.data.load import LoadedPair, load_pair
from largegnn.errors import InputError
from largegnn.settings import DataSettings

HEADER = "source\ttarget\tdecision\n"


def load(folder: Path, rows: str, **settings: bool) -> LoadedPair:
    path = folder / "decisions.tsv"
    path.write_text(HEADER + rows.replace(" ", "\t"), encoding="utf-8")
    return load_pair(DataInput(folder=folder, decisions=path), DataSettings(**settings))  # type: ignore[arg-type]


def named(pair: LoadedPair, links: np.ndarray[tuple[int, ...], np.dtype[np.int32]]) -> set[str]:
    name = pair.names.entities.__getitem__
    return {f"{name(source)} {name(target)}" for source, target in links.tolist()}


def test_accepted_pairs_are_seeds_and_rejected_ones_forbidden(toy_folder: Path) -> None:
    """Train links are a A and c C, the valid link is b B, test links are d D and e E."""
    pair = load(toy_folder, "d D accept\nb C reject\ne F reject\ne E unsure\n")
    task = pair.task
    assert named(pair, task.train_links) == {"a A", "c C", "d D"}
    assert named(pair, task.forbidden) == {"b C", "e F"}
    assert named(pair, task.reviewed) == {"d D"}
    assert named(pair, task.test_links) == {"e E"}, "what is trained on measures nothing"
    assert (pair.summary.num_accepted_decisions, pair.summary.num_rejected_decisions) == (1, 2)


def test_a_rejected_link_is_neither_seed_nor_valid_link(toy_folder: Path) -> None:
    pair = load(toy_folder, "a A reject\nb B reject\nd D reject\n")
    assert named(pair, pair.task.train_links) == {"c C"}
    assert named(pair, pair.task.valid_links) == set()
    assert named(pair, pair.task.test_links) == {"d D", "e E"}, "test links measure; they are not changed"
    assert named(pair, pair.task.forbidden) == {"a A", "b B", "d D"}


def test_unknown_names_are_refused_or_skipped(toy_folder: Path) -> None:
    with pytest.raises(InputError, match="1 of 2 decisions name entities"):
        load(toy_folder, "d D accept\nnobody D reject\n")
    pair = load(toy_folder, "d D accept\nnobody D reject\n", skip_unknown=True)
    assert named(pair, pair.task.train_links) == {"a A", "c C", "d D"}
    assert len(pair.task.forbidden) == 0


def test_without_decisions_nothing_is_forbidden(toy_folder: Path) -> None:
    assert len(load_pair(DataInput(folder=toy_folder)).task.forbidden) == 0


def test_forbidden_pairs_are_no_anchors(toy_task: AlignmentTask) -> None:
    import dataclasses

    task = dataclasses.replace(toy_task, forbidden=np.array([(3, 9)]))
    found = task.with_anchors(np.array([(3, 9), (4, 8)]))
    assert [*found.anchors.tolist(), *found.valid_links.tolist()] == [*task.valid_links.tolist(), [4, 8]]


def test_forbidden_pairs_are_no_candidates() -> None:
    graph = CandidateGraph(np.array([0, 0, 1]), np.array([5, 6, 5]), {"cosine": np.array([0.1, 0.2, 0.3])})
    left = graph.without(np.array([(0, 6), (1, 6)]))
    assert left.pairs().tolist() == [[0, 5], [1, 5]]
    assert left.column("cosine").tolist() == pytest.approx([0.1, 0.3])
    assert graph.without(np.empty((0, 2), dtype=np.int32)) is graph
