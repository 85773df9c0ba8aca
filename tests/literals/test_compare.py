"""The step `literals`: what reviewers chose to look at teaches nothing about all others."""

from __future__ import annotations

import dataclasses

import numpy as np

from largegnn.artifacts import AlignmentTask, StringTable, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.literals.compare import LiteralsResult, compare_literals
from largegnn.settings import CompareSettings, ProtocolSettings

COUNT = 120
NONE = np.empty((0, 2), dtype=np.int32)


def named_world() -> tuple[AlignmentTask, TaskNames, Literals]:
    """Entity i of either side has the same name and a note; from the 80th on the names differ, the notes agree."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghijklmnop"), 6)) for _ in range(4 * COUNT)]
    rows = []
    for side in (0, 1):
        for number in range(COUNT):
            entity, differs = side * COUNT + number, number >= 80 and side
            name = f"{words[number]} {words[COUNT + number]}" if not differs else words[3 * COUNT + number]
            rows += [(entity, 0, name), (entity, 1, f"a note on {words[2 * COUNT + number]} and no more")]
    owners, predicates, texts = zip(*rows, strict=True)
    none = np.zeros(len(rows))
    found = Literals(
        np.array(owners), np.array(predicates), StringTable.from_strings(texts), none, none,
        StringTable.from_strings(["http://x.org/label", "http://x.org/note"]), StringTable.from_strings([""]),
        StringTable.from_strings([""]),
    )  # fmt: skip
    heads, relations = np.arange(COUNT - 1), np.zeros(COUNT - 1, dtype=np.int64)
    chain = np.stack([heads, relations, heads + 1], axis=1)
    triples = np.concatenate([chain, chain + np.array([COUNT, 1, COUNT])])
    identifiers = StringTable.from_strings(f"Q{number}" for number in range(2 * COUNT))
    names = TaskNames(identifiers, StringTable.from_strings("rs"))
    return AlignmentTask(COUNT, COUNT, 1, 1, triples, NONE, NONE, NONE), names, found


def compare(task: AlignmentTask, names: TaskNames, found: Literals) -> LiteralsResult:
    return compare_literals(task, names, found, ("structure", "literals"), ProtocolSettings(), CompareSettings(), 0)


def test_reviewed_seeds_teach_no_weights_and_leave_the_anchors() -> None:
    task, names, found = named_world()
    # A reviewer was shown the hard pairs: those whose names differ.
    hard = np.array([(number, COUNT + number) for number in range(80, COUNT)])
    without = compare(task, names, found)
    seeded = dataclasses.replace(task, train_links=hard)
    taught = compare(seeded, names, found)
    reviewed = compare(dataclasses.replace(seeded, reviewed=hard), names, found)
    assert reviewed.outcome.weights == without.outcome.weights
    assert taught.outcome.weights != without.outcome.weights, "given seeds are believed to be a sample"
    assert reviewed.outcome.num_anchors == without.outcome.num_anchors > 30


def test_forbidden_pairs_are_in_no_evidence() -> None:
    task, names, found = named_world()
    wrong = np.array([(0, COUNT), (1, COUNT + 1)])
    made = compare(dataclasses.replace(task, forbidden=wrong), names, found).literal_evidence
    held = {tuple(pair) for pair in made.pairs.tolist()} | {tuple(pair) for pair in made.anchors.tolist()}
    assert not held & {(0, COUNT), (1, COUNT + 1)}
    assert (2, COUNT + 2) in held
