"""Test that more items than 32-bit ids can number are refused while loading, with their count."""

from __future__ import annotations

from pathlib import Path

import pytest

from largegnn import api
from largegnn.data import vocabulary
from largegnn.data.enlarge import Additions, enlarge_task
from largegnn.data.load import load_pair
from largegnn.data.vocabulary import refuse_too_many
from largegnn.errors import InputError


def test_the_largest_counts_pass_and_the_next_are_refused_with_the_number() -> None:
    refuse_too_many(entities=2**31 - 1, relations=2**30 - 1, triples=2**30 - 1)
    for what, count, most in (
        ("entities", 2**31, "2,147,483,647"),
        ("relations", 2**30, "1,073,741,823"),
        ("triples", 2**30, "1,073,741,823"),
    ):
        with pytest.raises(InputError, match=f"more {what} than") as caught:
            refuse_too_many(**{what: count})
        assert f"at most {most} {what}" in str(caught.value.expected)
        assert caught.value.found == f"{count:,}"


@pytest.mark.parametrize(("num_triples", "limit", "what"), [(4, 9, "entities"), (7, 13, "triples")])
def test_loading_and_enlarging_refuse(
    num_triples: int, limit: int, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each graph of five entities is within the limit, but both together are not."""
    for side, name in ((1, "a"), (2, "b")):
        lines = [f"{name}{i}\tr{side}\t{name}{(i + step) % 5}\n" for step in (1, 2) for i in range(5)]
        (tmp_path / f"rel_triples_{side}").write_text("".join(lines[:num_triples]))
    for split, number in (("train", 0), ("valid", 1), ("test", 2)):
        (tmp_path / f"{split}_links").write_text(f"a{number}\tb{number}\n")
    fine = load_pair(api.data_input(tmp_path))
    more = tmp_path / "more.tsv"
    more.write_text("a0\tr1\ta3\n")
    monkeypatch.setattr(vocabulary, "_LIMIT", limit)
    monkeypatch.setattr(vocabulary, "_NUMBERS_PER_ITEM", {"entities": 1, "relations": 1, "triples": 1})
    with pytest.raises(InputError, match=f"more {what} than"):
        load_pair(api.data_input(tmp_path))
    with pytest.raises(InputError, match=f"more {what} than"):
        enlarge_task(fine.task, fine.names, Additions(source_triples=(more,)))
