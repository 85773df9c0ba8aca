"""How often a graph is divided again: divisions must not take longer than the training they serve.

In: the setting `train.repartition_every`, the size of the task, the device. Out: the epochs between two divisions.
The idea: divisions are made beside the training. On a processor that is always the slower of the two. On a GPU an epoch
of a million entities takes seconds and a division a minute, so the training would wait: then there are fewer divisions.
It follows from sizes and not from a clock, so that an interrupted run resumes with the same divisions.
"""

from __future__ import annotations

from largegnn.settings import TrainSettings

__all__ = ["divisions_of_training", "epochs_between_divisions"]

_STEP_SECONDS = 0.005
_DIVIDE_PER_TRIPLE = 8e-6
_ALWAYS_ALLOWED = 30.0  # seconds for divisions in all, however short the training


def epochs_between_divisions(train: TrainSettings, num_triples: int, num_seeds: int, on_gpu: bool) -> int:
    """Epochs that one division serves; 0: all of them."""
    every = train.repartition_every
    if not every or not on_gpu:
        return every
    training = train.epochs * _STEP_SECONDS * num_seeds / train.batch_size
    division = _DIVIDE_PER_TRIPLE * max(num_triples, 1)
    fresh = int(max(training, _ALWAYS_ALLOWED) / division)
    if not fresh:
        return 0
    return max(every, -(-train.epochs // (fresh + 1)))


def divisions_of_training(train: TrainSettings, every: int) -> int:
    """Divisions that one training takes, if each serves `every` epochs."""
    return -(-train.epochs // every) if every else 1
