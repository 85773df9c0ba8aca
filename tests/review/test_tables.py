"""Test the table of unmatched entities: the reason, the best candidate, and its accepted partner."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import REASONS, Alignment, AlignmentTask, FloatArray, StringTable, TaskNames
from largegnn.review.tables import unmatched_table
from tests.review.small_alignment import F2, no_candidates, toy_alignment

COLUMNS = {
    "side": pl.String,
    "entity": pl.String,
    "reason": pl.String,
    "best_candidate": pl.String,
    "matched_with": pl.String,
    "score": pl.Float32,
}


def test_by_hand(toy_task: AlignmentTask, toy_names: TaskNames) -> None:
    """The best candidate of e is D, which is matched with d; that of E is e, which is unmatched; F has no candidate."""
    table = unmatched_table(toy_task, toy_names, toy_alignment())
    assert dict(table.schema) == COLUMNS
    assert table.drop("score").rows() == [
        ("source", "e", "not mutual", "D", "d"),
        ("target", "E", "not mutual", "e", None),
        ("target", "F", "isolated", None, None),
    ]
    assert table["score"].to_list() == [pytest.approx(1.2), pytest.approx(1.0), None]


def test_seeds_and_aligned_entities_are_not_listed(toy_task: AlignmentTask, toy_names: TaskNames) -> None:
    alignment = toy_alignment()
    seen = dataclasses.replace(alignment, reasons=np.zeros(11))
    assert unmatched_table(toy_task, toy_names, seen).schema == COLUMNS
    assert len(unmatched_table(toy_task, toy_names, seen)) == 0
    listed = unmatched_table(toy_task, toy_names, alignment)["entity"].to_list()
    assert not {"a", "c", "A", "C", "b", "d", "B", "D"} & set(listed)


def test_a_candidate_below_the_threshold_is_still_the_best(toy_task: AlignmentTask, toy_names: TaskNames) -> None:
    alignment = toy_alignment()
    reasons = alignment.reasons.copy()
    reasons[[3, 8]] = REASONS.index("below threshold")
    accepted = alignment.accepted.copy()
    accepted[2] = False
    table = unmatched_table(toy_task, toy_names, dataclasses.replace(alignment, reasons=reasons, accepted=accepted))
    rows = {row[1]: row[2:5] for row in table.rows()}
    assert rows["d"] == ("below threshold", "D", None)
    assert rows["D"] == ("below threshold", "d", None)
    assert rows["e"] == ("not mutual", "D", None), "D is unmatched now"


def test_no_entity_has_a_candidate(toy_task: AlignmentTask, toy_names: TaskNames) -> None:
    table = unmatched_table(toy_task, toy_names, no_candidates("not covered"))
    assert dict(table.schema) == COLUMNS
    assert table["entity"].to_list() == list("abcdeABCDEF")
    assert table["best_candidate"].null_count() == table["score"].null_count() == 11


def test_names_are_kept_as_they_are(toy_task: AlignmentTask) -> None:
    entities = ["a", "b", "c", "d", "tab\there", "A", "B", "C", "D", "nul\x00", 'quote"']
    names = TaskNames(StringTable.from_strings(entities), StringTable.from_strings("rspq"))
    table = unmatched_table(toy_task, names, toy_alignment())
    assert table["entity"].to_list() == ["tab\there", "nul\x00", 'quote"']
    assert table["best_candidate"].to_list() == ["D", "tab\there", None]


@st.composite
def alignments(draw: st.DrawFn) -> Alignment:
    """Draw candidates between a..e and A..F with distinct scores, and a one-to-one choice of accepted pairs."""
    edges = sorted(draw(st.sets(st.tuples(st.integers(0, 4), st.integers(5, F2)), max_size=12)))
    scores = np.array(draw(st.permutations(range(len(edges)))), dtype=np.float32) / 16
    pairs = np.array(edges, dtype=np.int32).reshape(-1, 2)
    ranks = [
        [
            1 + sum(scores[o] > scores[e] for o in range(len(edges)) if edges[o][side] == edges[e][side])
            for e in range(len(edges))
        ]
        for side in (0, 1)
    ]
    taken: set[int] = set()
    accepted = []
    for edge in edges:
        wanted = draw(st.booleans()) and not taken & set(edge)
        accepted.append(wanted)
        taken |= set(edge) if wanted else set()
    reasons = [0 if entity in taken else draw(st.integers(1, len(REASONS) - 1)) for entity in range(11)]
    order = np.lexsort((np.array(ranks[0], dtype=np.int64), pairs[:, 0]))
    plain: FloatArray = scores[order].astype(np.float32)
    return Alignment(
        pairs[order],
        ("cosine",),
        plain[None],
        plain,
        plain,
        np.array(ranks[0], dtype=np.int32)[order],
        np.array(ranks[1], dtype=np.int32)[order],
        plain,
        np.array(accepted, dtype=bool)[order],
        np.array(reasons),
    )


NAMES = "abcdeABCDEF"
NO_ENTITY = np.empty((0, 2), dtype=np.int32)
TASK = AlignmentTask(5, 6, 1, 1, np.empty((0, 3), dtype=np.int32), NO_ENTITY, NO_ENTITY, NO_ENTITY)


@given(alignment=alignments())
def test_the_table_is_its_definition(alignment: Alignment) -> None:
    names = TaskNames(StringTable.from_strings(NAMES), StringTable.from_strings("rp"))
    pairs = [(int(source), int(target)) for source, target in alignment.pairs]
    scores = dict(zip(pairs, alignment.scores.tolist(), strict=True))
    partner: dict[int, int] = {}
    for pair, accepted in zip(pairs, alignment.accepted.tolist(), strict=True):
        if accepted:
            partner |= {pair[0]: pair[1], pair[1]: pair[0]}
    expected = []
    for entity in range(11):
        reason = REASONS[int(alignment.reasons[entity])]
        if reason in ("aligned", "seed"):
            continue
        best = max((pair for pair in pairs if entity in pair), key=lambda pair: scores[pair], default=None)
        candidate = None if best is None else best[0] if best[1] == entity else best[1]
        matched_with = None if candidate is None else partner.get(candidate)
        side = "source" if entity < 5 else "target"
        named = [None if other is None else NAMES[other] for other in (candidate, matched_with)]
        expected.append((side, NAMES[entity], reason, *named, None if best is None else scores[best]))
    assert unmatched_table(TASK, names, alignment).rows() == expected
