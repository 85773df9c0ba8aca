"""Test the worklist (filters, search, orders, random sample) by hand, and the session that uses it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from largegnn.artifacts import AlignmentTask, TaskNames
from largegnn.errors import InputError
from largegnn.review.pair_view import audit_sample
from largegnn.review.session import ReviewSession
from largegnn.review.worklist import Filters
from tests.review.small_alignment import toy_alignment, toy_literals, toy_summary

# Rows of the toy: 0 b=B .99, 1 b=D .01, 2 d=D .8, 3 d=E .1, 4 e=D .3, 5 e=E .2.


@pytest.fixture
def session(toy_task: AlignmentTask, toy_names: TaskNames, tmp_path: Path) -> ReviewSession:
    file = tmp_path / "decisions.jsonl"
    return ReviewSession(toy_task, toy_names, toy_literals(), toy_alignment(), toy_summary(), file)


def rows(session: ReviewSession, **filters: object) -> list[int]:
    return [int(row) for row in session.find(Filters(**filters))]  # type: ignore[arg-type]


def test_selected_pairs_and_best_candidates_are_on_the_list(session: ReviewSession) -> None:
    assert rows(session, order="most confident") == [0, 2, 4]
    assert rows(session, order="least confident") == [4, 2, 0]
    assert rows(session, order="nearest the threshold") == [4, 2, 0], "from .5: .2, .3, .49"
    assert sorted(rows(session, order="random")) == [0, 2, 4]


def test_filters_by_hand(session: ReviewSession) -> None:
    assert rows(session, state="accepted", order="most confident") == [0, 2]
    assert rows(session, state="not mutual") == [4]
    assert rows(session, low=0.25, high=0.9, order="most confident") == [2, 4]
    assert rows(session, min_degree=2, order="most confident") == [0, 2], "e has one triple"
    assert rows(session, max_degree=1) == [4]
    assert rows(session, contradiction=True) == []
    assert sorted(rows(session, audit=True)) == [0, 2]


def test_search_looks_into_names_and_identifiers_of_both_sides(session: ReviewSession) -> None:
    assert rows(session, query="OF THE") == [0], "B is called B of the target"
    assert rows(session, query="das") == [0], "the name of b in German"
    assert rows(session, query="no such name") == []
    assert rows(session, query=".*") == [], "letters, not a pattern"


def test_decisions_move_pairs_off_the_list_and_undo_brings_them_back(session: ReviewSession) -> None:
    session.decide(2, "accept", "ann")
    assert rows(session, order="most confident") == [0, 4]
    assert rows(session, decided="done") == [2]
    assert session.undo("ben") is None
    assert session.undo("ann") == 2
    assert rows(session, order="most confident") == [0, 2, 4]


def test_choosing_another_rejects_and_accepts_at_once(session: ReviewSession) -> None:
    """The best candidate of e is D, which is matched with d; a reviewer knows that e is E."""
    assert session.candidates(4) == [5, 2, 1], "the other candidate of e, then the others of D"
    session.decide(4, "", "ann", instead=5)
    found = session.verdict(4), session.verdict(5)
    assert [one.decision for one in found if one is not None] == ["reject", "accept"]
    session.undo("ann")
    assert (session.verdict(4), session.verdict(5)) == (None, None)
    with pytest.raises(InputError, match="not a candidate"):
        session.decide(4, "", "ann", instead=0)
    with pytest.raises(InputError, match="does not exist"):
        session.decide(99, "accept", "ann")
    assert session.log.decisions() == []


def test_precision_is_measured_on_the_random_sample(session: ReviewSession) -> None:
    before = session.progress()
    assert (before.precision, before.low, before.high, before.sample, before.total) == (None, 0.0, 1.0, 2, 3)
    session.decide(0, "accept", "ann")
    session.decide(4, "reject", "ann")  # the run did not accept this pair, so it does not count for the precision
    session.decide(2, "reject", "ann")
    now = session.progress()
    assert (now.judged, now.right, now.precision, now.rejected) == (2, 1, 0.5, 2)
    assert 0.0 < now.low < 0.5 < now.high < 1.0
    session.decide(2, "accept", "ben")
    disputed = session.progress()
    assert (disputed.judged, disputed.disputed) == (1, 1), "a disputed pair is not judged"


def test_a_session_resumes(session: ReviewSession, toy_task: AlignmentTask, toy_names: TaskNames) -> None:
    session.decide(0, "accept", "ann")
    again = ReviewSession(toy_task, toy_names, toy_literals(), toy_alignment(), toy_summary(), session.log.path)
    assert rows(again, order="most confident") == [2, 4]
    assert again.progress() == session.progress()


def test_a_larger_random_sample_starts_with_a_smaller_one() -> None:
    alignment = toy_alignment()
    assert audit_sample(alignment, 1).tolist() == audit_sample(alignment, 2).tolist()[:1]
    assert np.all(alignment.accepted[audit_sample(alignment, 9)])
