"""Named sets of settings: by the size of the graphs, by the paper's names of the methods, and for generated pairs."""

from __future__ import annotations

from typing import Any

__all__ = ["METHODS", "PRESETS", "WORLD_PRESETS"]

# The paper's sizes, for 15 thousand, 100 thousand and a million entities a side; for a million also the settings of
# training that `lab/configs` measures there.
PRESETS: dict[str, dict[str, Any]] = {
    "15k": {"division": {"parts": 5}, "landmarks": {"cap": 7_500}},
    "100k": {"division": {"parts": 10}, "landmarks": {"cap": 25_000}},
    "1m": {
        "division": {"parts": 40},
        "landmarks": {"cap": 90_000},
        "train": {"batch_size": 1_024, "negatives": 8_192, "repartition_every": 0},
    },
}

# The paper's names for a partitioner with landmarks or without; landmarks go over any partitioner.
METHODS: dict[str, dict[str, dict[str, Any]]] = {
    "csg": {"division": {"partitioner": "metis"}, "landmarks": {"enabled": True}},
    "metis": {"division": {"partitioner": "metis"}, "landmarks": {"enabled": False}},
    "cps": {"division": {"partitioner": "cps"}, "landmarks": {"enabled": False}},
    "sbp": {"division": {"partitioner": "sbp"}, "landmarks": {"enabled": False}},
}

WORLD_PRESETS: dict[str, dict[str, Any]] = {
    "small": {"missing": 0.12},
    "15k": {
        "source_entities": 15_000,
        "target_entities": 15_000,
        "links": 15_000,
        "source_relations": 267,
        "target_relations": 210,
        "source_triples": 47_334,
        "target_triples": 40_864,
        "missing": 0.24,
        "degree_exponent": 1.8,
        "community_size": 60,
        "inside": 0.98,
    },
    "100k": {
        "source_entities": 100_000,
        "target_entities": 100_000,
        "links": 100_000,
        "source_relations": 400,
        "target_relations": 300,
        "source_triples": 309_607,
        "target_triples": 258_285,
        "missing": 0.32,
        "degree_exponent": 1.9,
        "community_size": 80,
        "inside": 0.97,
    },
    "dbpedia1m": {
        "source_entities": 1_211_270,
        "target_entities": 1_176_869,
        "links": 488_563,
        "source_relations": 595,
        "target_relations": 400,
        "source_triples": 8_150_656,
        "target_triples": 4_268_719,
        "missing": 0.5,
        "degree_exponent": 2.0,
        "community_size": 400,
        "inside": 0.94,
    },
}
