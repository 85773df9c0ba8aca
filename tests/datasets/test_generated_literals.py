"""Test names and values of synthetic pairs: similar for linked entities, as noisy as requested, written and read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rapidfuzz.distance import JaroWinkler

from largegnn import api
from largegnn.artifacts import IntArray
from largegnn.artifacts.literals import Literals
from largegnn.datasets.generator import GeneratedPair, generate_pair
from largegnn.settings import WorldSettings

NAMES = ("http://www.w3.org/2000/01/rdf-schema#label", "http://target.example.org/property/title")


def pair_with(noise: float, seed: int = 0) -> GeneratedPair:
    return generate_pair(WorldSettings(literals=True, noise=noise), seed)


def values_of(literals: Literals, predicate: str) -> dict[int, str]:
    rows = np.flatnonzero(literals.predicates == list(literals.predicate_names).index(predicate))
    return dict(zip(literals.entities[rows].tolist(), literals.values.take(rows.tolist()), strict=True))


def links_of(pair: GeneratedPair) -> IntArray:
    return np.concatenate([pair.task.train_links, pair.task.valid_links, pair.task.test_links])


def similarities(pair: GeneratedPair) -> list[float]:
    """Return the similarity of the names of linked entities, if both have a name."""
    source, target = (values_of(pair.literals, predicate) for predicate in NAMES)
    links = [(left, right) for left, right in links_of(pair).tolist() if left in source and right in target]
    return [JaroWinkler.similarity(source[left], target[right]) for left, right in links]


def test_without_noise_linked_entities_have_equal_values() -> None:
    pair = pair_with(0.0)
    assert len(similarities(pair)) == len(links_of(pair))
    assert min(similarities(pair)) == 1.0
    founded, since = (values_of(pair.literals, f"http://{name}") for name in SAME_DATE)
    assert all(founded[left] == since[right] for left, right in links_of(pair).tolist())


SAME_DATE = ("source.example.org/property/founded", "target.example.org/property/since")


def test_noise_is_the_share_that_differs() -> None:
    calm, wild = pair_with(0.1), pair_with(0.6)
    assert np.mean(similarities(calm)) > np.mean(similarities(wild)) > 0.5
    for pair, noise in ((calm, 0.1), (wild, 0.6)):
        lacking = 1 - len(values_of(pair.literals, NAMES[1])) / pair.task.num_target_entities
        assert lacking == pytest.approx(noise, abs=0.03)


def test_the_graphs_are_the_same_with_and_without_names() -> None:
    named, plain = pair_with(0.2), generate_pair(WorldSettings(), 0)
    np.testing.assert_array_equal(named.task.triples, plain.task.triples)
    np.testing.assert_array_equal(links_of(named), links_of(plain))
    assert not len(plain.literals)
    assert list(pair_with(0.2).literals.values) == list(named.literals.values)
    assert list(pair_with(0.2, seed=1).literals.values) != list(named.literals.values)


@pytest.mark.parametrize("form", ["openea", "nt"])
def test_what_is_written_is_read_back(tmp_path: Path, form: str) -> None:
    settings = WorldSettings(
        source_entities=60, target_entities=50, links=40, source_triples=200, target_triples=180, literals=True
    )
    pair = api.generate(settings, folder=tmp_path / "pair", form=form)
    if form == "openea":
        read = api.load(tmp_path / "pair").literals
    else:
        read = api.load(*(tmp_path / "pair" / f"{side}.nt" for side in ("source", "target"))).literals
    assert sorted(read.values) == sorted(pair.literals.values)
