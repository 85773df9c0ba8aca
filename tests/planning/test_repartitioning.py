from __future__ import annotations

from largegnn.planning.repartitioning import epochs_between_divisions
from largegnn.settings import TrainSettings


def test_a_processor_is_slower_than_the_divisions() -> None:
    assert epochs_between_divisions(TrainSettings(repartition_every=2), 10**8, 10**4, on_gpu=False) == 2
    assert epochs_between_divisions(TrainSettings(repartition_every=0), 10**5, 10**4, on_gpu=True) == 0


def test_divisions_take_no_longer_than_what_they_serve() -> None:
    train = TrainSettings(epochs=24, batch_size=500, repartition_every=2)
    # 100,000 triples: 0.8 s a division, of which 30 s hold 37: as the setting says.
    assert epochs_between_divisions(train, 100_000, 5_000, on_gpu=True) == 2
    # A million: 8 s, 3 of them in 30 s: four divisions with the first, six epochs each.
    assert epochs_between_divisions(train, 1_000_000, 5_000, on_gpu=True) == 6
    # 5 million: 40 s. 24 epochs of 500 steps, 5 ms each, are 60 s: one more division.
    assert epochs_between_divisions(train, 5_000_000, 250_000, on_gpu=True) == 12
    # 10 million: 80 s, too long.
    assert epochs_between_divisions(train, 10_000_000, 250_000, on_gpu=True) == 0
