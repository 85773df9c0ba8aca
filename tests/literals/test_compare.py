"""Test the step `literals`: nothing is learnt from reviewed pairs, and forbidden pairs never appear."""

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
    """Entity i of both sides has the same name and the same note; from entity 80 on the names differ."""
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
    literals = Literals(
        np.array(owners), np.array(predicates), StringTable.from_strings(texts), none, none,
        StringTable.from_strings(["http://x.org/label", "http://x.org/note"]), StringTable.from_strings([""]),
        StringTable.from_strings([""]),
    )  # fmt: skip
    heads, relations = np.arange(COUNT - 1), np.zeros(COUNT - 1, dtype=np.int64)
    chain = np.stack([heads, relations, heads + 1], axis=1)
    triples = np.concatenate([chain, chain + np.array([COUNT, 1, COUNT])])
    identifiers = StringTable.from_strings(f"Q{number}" for number in range(2 * COUNT))
    names = TaskNames(identifiers, StringTable.from_strings("rs"))
    return AlignmentTask(COUNT, COUNT, 1, 1, triples, NONE, NONE, NONE), names, literals


def compare(task: AlignmentTask, names: TaskNames, literals: Literals) -> LiteralsResult:
    return compare_literals(task, names, literals, ("structure", "literals"), ProtocolSettings(), CompareSettings(), 0)


def test_reviewed_seeds_change_neither_weights_nor_anchors() -> None:
    task, names, literals = named_world()
    # A reviewer was shown only the pairs whose names differ.
    hard = np.array([(number, COUNT + number) for number in range(80, COUNT)])
    without = compare(task, names, literals)
    seeded = dataclasses.replace(task, train_links=hard)
    taught = compare(seeded, names, literals)
    reviewed = compare(dataclasses.replace(seeded, reviewed=hard), names, literals)
    assert reviewed.outcome.weights == without.outcome.weights
    assert taught.outcome.weights != without.outcome.weights, "given seeds are believed to be a sample"
    assert reviewed.outcome.num_anchors == without.outcome.num_anchors > 30


def test_forbidden_pairs_are_in_no_evidence() -> None:
    task, names, literals = named_world()
    wrong = np.array([(0, COUNT), (1, COUNT + 1)])
    evidence = compare(dataclasses.replace(task, forbidden=wrong), names, literals).literal_evidence
    pairs = {tuple(pair) for pair in evidence.pairs.tolist()} | {tuple(pair) for pair in evidence.anchors.tolist()}
    assert not pairs & {(0, COUNT), (1, COUNT + 1)}
    assert (2, COUNT + 2) in pairs
