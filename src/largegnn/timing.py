"""How long a run will take on this machine, to the order of magnitude.

In: a task, settings, the plan of its division. Out: seconds of the stages that take long. The work of a training step
is counted in floating-point operations, the machine's speed is measured in a moment with a matrix product, and the
share of that speed that steps reach was measured once (two CPU cores, EN_FR_15K_V1; an H200, DEBIAN_FILES_1M).
"""

from __future__ import annotations

import time

from largegnn.artifacts import AlignmentTask
from largegnn.config import Settings
from largegnn.sizing import DivisionPlan

__all__ = ["estimate_seconds"]

_SIDE = 1024  # of the matrix that is multiplied to see how fast the machine is
_SHARE = {"cpu": 0.25, "cuda": 0.05}
_LEAST_STEP = {"cpu": 0.02, "cuda": 0.02}  # seconds; below this a step is bound by other things than arithmetic
_OUTPUT_PER_DIM = 6  # two blocks of input, first and second layer
_DIVIDE_PER_TRIPLE = 8e-6
_LOAD_PER_TRIPLE = 3e-6


def estimate_seconds(task: AlignmentTask, settings: Settings, plan: DivisionPlan) -> dict[str, float]:
    """Seconds of the stages, rounds included."""
    from largegnn.training import choose_device

    device = choose_device(settings.device)
    speed = _speed(device) * _SHARE[device.type]
    train, num_seeds = settings.train, len(task.seeds(settings.protocol.seeds_from))
    share = plan.cap / max(task.num_entities, 1)
    nodes = min(plan.cap, task.num_entities)
    triples = len(task.triples) * min(share, 1.0)
    negatives = min(train.negatives or nodes, nodes)
    # Forward and backward: products of the loss, messages along triples, proxies and gates of the outputs.
    output = _OUTPUT_PER_DIM * train.dim
    loss = 3 * 2 * 2 * train.batch_size * (negatives + 2 * train.batch_size) * output
    encoder = 3 * (2 * triples * 16 * train.dim + (negatives + 2 * train.batch_size) * output * (output + 128))
    step = max((loss + encoder) / speed, _LEAST_STEP[device.type])
    steps = max(
        plan.num_parts, num_seeds * max(plan.cap * plan.num_parts / max(task.num_entities, 1), 1) / train.batch_size
    )
    epochs = train.epochs + settings.rounds.number * settings.rounds.epochs
    pairs = task.num_source_entities * task.num_target_entities
    searches = 1 + settings.rounds.number
    return {
        "load": _LOAD_PER_TRIPLE * len(task.triples),
        "divide": _DIVIDE_PER_TRIPLE * len(task.triples),
        "train": step * steps * epochs,
        "search": searches * 2 * 2 * pairs * output / (2 * speed),
    }


def _speed(device: object) -> float:
    """Floating-point operations a second in a matrix product."""
    import torch

    matrix = torch.ones(_SIDE, _SIDE, device=str(device))
    best = float("inf")
    for _ in range(4):
        started = time.perf_counter()
        float((matrix @ matrix)[0, 0])  # reading a value waits for a GPU
        best = min(best, time.perf_counter() - started)
    return 2 * _SIDE**3 / best
