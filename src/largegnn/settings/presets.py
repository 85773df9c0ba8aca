"""Named sets of settings: by the size of the graphs, and by the paper's names of the methods."""

from __future__ import annotations

from typing import Any

__all__ = ["METHODS", "PRESETS"]

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
