"""Test that added entities are numbered after the old ones, and that nothing old is lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from largegnn.artifacts import AlignmentTask, IntArray, TaskNames
from largegnn.data.enlarge import Additions, EnlargedTask, enlarge_task, shifted_ids
from largegnn.errors import InputError
from tests.conftest import tabbed


def write(path: Path, text: str) -> Path:
    path.write_text(tabbed(text), encoding="utf-8")
    return path


def named(grown: EnlargedTask, triples: IntArray) -> set[tuple[str, str, str]]:
    entities, relations = grown.names.entities, grown.names.relations
    return {(entities[head], relations[relation], entities[tail]) for head, relation, tail in triples.tolist()}


def test_old_ids_keep_their_order() -> None:
    assert shifted_ids(3, 2, 4).tolist() == [0, 1, 2, 7, 8]
    assert shifted_ids(3, 2, 0).tolist() == [0, 1, 2, 3, 4]


def test_the_toy_grows_on_both_sides(toy_task: AlignmentTask, toy_names: TaskNames, tmp_path: Path) -> None:
    """Add source triples e r f, f t g and the old a r b; target triples F q G and the old D p E, in two files."""
    added = Additions(
        (write(tmp_path / "source", "e r f\nf t g\na r b\n"),),
        (write(tmp_path / "one", "F q G\n"), write(tmp_path / "two", "D p E\n")),
        seeds=write(tmp_path / "seeds", "f F\na A\n"),
        test_links=write(tmp_path / "test", "g G\n"),
    )
    grown = enlarge_task(toy_task, toy_names, added)
    task, names = grown.task, list(grown.names.entities)
    assert (task.num_source_entities, task.num_target_entities) == (7, 7)
    assert (names[:5], set(names[5:7]), names[7:]) == (list("abcde"), {"f", "g"}, list("ABCDEFG"))
    assert list(grown.names.relations) == list("rstpq")
    assert grown.entity_of_old.tolist() == [0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 12]
    assert grown.relation_of_old.tolist() == [0, 1, 3, 4]
    assert grown.num_added_entities == (2, 1)
    assert grown.num_added_relations == (1, 0)
    assert grown.num_added_triples == (2, 1)
    old = {(toy_names.entities[h], toy_names.relations[r], toy_names.entities[t]) for h, r, t in toy_task.triples}
    assert named(grown, task.triples) == old | {("e", "r", "f"), ("f", "t", "g"), ("F", "q", "G")}
    assert np.array_equal(task.triples, np.unique(task.triples, axis=0)), "sorted and distinct, as a loaded task"
    links = {
        split: {(names[source], names[target]) for source, target in getattr(task, f"{split}_links").tolist()}
        for split in ("train", "valid", "test")
    }
    assert links == {
        "train": {("a", "A"), ("c", "C"), ("f", "F")},
        "valid": {("b", "B")},
        "test": {("d", "D"), ("e", "E"), ("g", "G")},
    }


def test_nothing_new_changes_nothing(toy_task: AlignmentTask, toy_names: TaskNames, tmp_path: Path) -> None:
    grown = enlarge_task(toy_task, toy_names, Additions((write(tmp_path / "again", "a r b\nc s d\n"),)))
    for field in ("triples", "train_links", "valid_links", "test_links"):
        assert np.array_equal(getattr(grown.task, field), getattr(toy_task, field))
    assert list(grown.names.entities) == list(toy_names.entities)
    assert grown.num_added_triples == (0, 0)


def test_what_is_refused(toy_task: AlignmentTask, toy_names: TaskNames, tmp_path: Path) -> None:
    def grow(**files: Path | tuple[Path, ...] | None) -> EnlargedTask:
        return enlarge_task(toy_task, toy_names, Additions(**files))  # type: ignore[arg-type]

    good = (write(tmp_path / "good", "e r f\n"),)
    strange, swapped = write(tmp_path / "strange", "x r y\n"), write(tmp_path / "swapped", "A p X\n")
    with pytest.raises(InputError, match="no triples were given"):
        grow(seeds=strange)
    with pytest.raises(InputError, match="have no entity of the source graph"):
        grow(source_triples=(strange,))
    with pytest.raises(InputError, match=r"triples of the target graph, not of the source(.|\n)*--target-triples"):
        grow(source_triples=(swapped,))
    with pytest.raises(InputError, match="triples of the source graph, not of the target graph"):
        grow(target_triples=good)
    with pytest.raises(InputError, match="not in the graphs"):
        grow(source_triples=good, seeds=write(tmp_path / "unknown", "z A\n"))
    with pytest.raises(InputError, match="train links are test links too"):
        grow(source_triples=good, seeds=write(tmp_path / "tested", "d D\n"))
