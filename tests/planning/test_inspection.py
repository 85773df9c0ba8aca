from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from largegnn import api
from largegnn.artifacts import AlignmentTask
from largegnn.datasets.benchmarks import BENCHMARKS, name_benchmark
from largegnn.division.merge import merge
from largegnn.planning.inspection import inspect_task


def test_the_toy_by_hand(toy_task: AlignmentTask) -> None:
    """Source degrees: a 2, b 2, c 3, d 2, e 1. Seeds touch all but e, E and F; two hops reach all but F."""
    inspection = inspect_task(toy_task, merge(toy_task), "train", attribute_triples=(7, 0))
    source = inspection.source
    assert (source.entities, source.relations, source.triples, source.attribute_triples) == (5, 2, 5, 7)
    assert (source.mean_degree, source.median_degree, source.max_degree) == (2.0, 2.0, 3)
    assert source.degree_histogram == {"1": 1, "2-3": 4}
    assert (source.components, source.largest_component_share, source.isolated_entities) == (1, 1.0, 0)
    seeds = inspection.seeds
    assert (seeds.source_share, seeds.target_share) == (2 / 5, 2 / 6)
    assert seeds.within_one_hop == pytest.approx(8 / 11)
    assert seeds.within_two_hops == pytest.approx(10 / 11)
    assert (inspection.merged_nodes, inspection.merged_edges, inspection.merged_components) == (9, 10, 1)
    assert inspection.benchmark is None
    assert json.loads(json.dumps(inspection.to_dict()))["size"]["num_parts"] == 1


def test_isolated_entities_are_components_of_their_own(toy_task: AlignmentTask) -> None:
    task = dataclasses.replace(toy_task, num_target_entities=7)
    target = inspect_task(task, merge(task), "train").target
    assert (target.isolated_entities, target.components, target.degree_histogram["0"]) == (1, 2, 1)


def test_known_benchmarks_are_named(real_data: Callable[[str], Path]) -> None:
    pair = api.load(real_data("EN_FR_15K_V1"))
    inspection = api.inspect(pair, memory_mb=16_000)
    assert inspection.benchmark == "OpenEA EN_FR_15K_V1"
    assert (inspection.size.num_parts, inspection.size.cap) == (5, 7_500)


def test_names_go_by_all_counts() -> None:
    """A benchmark is recognised by counts alone; one triple more or less makes the difference."""

    def task(triples: tuple[int, int]) -> AlignmentTask:
        source = np.stack([np.arange(triples[0]) % 15_000, np.arange(triples[0]) % 267, np.zeros(triples[0])], axis=1)
        target = np.stack([np.arange(triples[1]) % 15_000, np.arange(triples[1]) % 210, np.zeros(triples[1])], axis=1)
        rows = np.concatenate([source, target + np.array([15_000, 267, 15_000])])
        none = np.empty((0, 2))
        return AlignmentTask(15_000, 15_000, 267, 210, rows[np.argsort(rows[:, 0], kind="stable")], none, none, none)

    assert name_benchmark(task((47_334, 40_864))) == "OpenEA EN_FR_15K_V1"
    assert name_benchmark(task((47_334, 40_863))) is None
    assert "not OpenEA" in str(name_benchmark(task((36_508, 33_532))))
    assert len(set(BENCHMARKS.values())) == len(BENCHMARKS)
