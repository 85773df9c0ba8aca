"""Test relations in SSSOM with the sssom package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from largegnn.artifacts import RelationAlignment, StringTable, TaskNames
from largegnn.errors import InputError
from largegnn.export import export, export_relations, file_of_form, form_names
from largegnn.review.tables import relations_table
from tests.export.nasty import INFO, table_of
from tests.export.test_sssom import parsed, uses_sssom

NAMES = TaskNames(
    StringTable.from_strings(["a", "b", "x", "y"]),
    StringTable.from_strings(["http://one.org/born", "http://one.org/child", "a\tb", "http://two.org/born"]),
)
# born and born, child and born: narrower; child and born inverse; the third: seen too seldom.
RELATIONS = RelationAlignment(
    pairs=np.array([(0, 3), (1, 3), (1, 3), (2, 3), (2, 3)]),
    is_inverse=np.array([False, False, True, False, True]),
    scores=np.array([0.9, 0.6, 0.5, 0.1, 0.6], dtype=np.float32),
    source_shares=np.array([0.9, 0.8, 0.9, 1.0, 0.1], dtype=np.float32),
    target_shares=np.array([0.9, 0.2, 0.9, 1.0, 0.9], dtype=np.float32),
    counts=np.array([40, 10, 8, 1, 9]),
    examples=np.concatenate([[[[0, 1, 2, 3], [1, 0, 3, 2], [-1] * 4]], np.full((4, 3, 4), -1)]),
)


def test_a_table_in_names() -> None:
    table = relations_table(RELATIONS, NAMES)
    assert table.columns[:4] == ["source", "target", "inverse", "mapping"]
    assert table["mapping"].to_list() == ["exact", "narrower", "exact", "related", "broader"]
    assert table["examples"].to_list() == ["a b = x y; b a = y x", "", "", "", ""]
    assert table["count"].to_list() == [40, 10, 8, 1, 9]
    assert len(relations_table(RelationAlignment.empty(), NAMES)) == 0


@uses_sssom
def test_what_says_more_than_related_is_written(tmp_path: Path) -> None:
    path = tmp_path / file_of_form("sssom-relations")
    assert export_relations(relations_table(RELATIONS, NAMES), path, INFO) == 3
    frame = pl.DataFrame(parsed(path).df.to_dict("list")).sort("predicate_id")
    assert frame["predicate_id"].to_list() == ["owl:inverseOf", "skos:broadMatch", "skos:exactMatch"]
    assert [name.partition(":")[2] for name in frame["subject_id"]] == ["child", "child", "born"]
    assert set(frame["mapping_justification"]) == {"semapv:InstanceBasedMatching"}
    assert [float(score) for score in frame["similarity_score"]] == pytest.approx([0.5, 0.6, 0.9])
    assert frame["comment"].to_list() == ["8 matched triples", "10 matched triples", "40 matched triples"]
    assert export_relations(relations_table(RelationAlignment.empty(), NAMES), path, INFO) == 0


def test_pairs_are_no_relations(tmp_path: Path) -> None:
    assert "sssom-relations" in form_names()
    with pytest.raises(InputError, match="takes relations"):
        export("sssom-relations", table_of([("a", "b")]), tmp_path / "x", INFO)
