"""How long a run will take on this machine, to the order of magnitude.

In: a task, settings, the plan of its division. Out: seconds of the stages that take long. The work of a stage is
counted in floating-point operations, the machine's speed is measured in a moment with a matrix product, and the share
of it that a stage reaches is what makes the estimate come out at what was seen: EN_FR_15K_V1 on two CPU cores (training
49 s, search 2.4 s, evaluation 11 s), DEBIAN_FILES_1M on an H200 (4.5 ms a step, integration 27 s, search 30 s) and on
two cores (division 17 s, approximate search 237 s for a million queries of 96 numbers, evaluation 7e-5 s a link beside
the products).
"""

from __future__ import annotations

import math
import time

import torch

from largegnn.artifacts import AlignmentTask, DivisionPlan
from largegnn.evaluation.metrics import MOST_PRODUCTS
from largegnn.machine.devices import choose_device, num_processors
from largegnn.matching.faiss_search import MOST_EXACT
from largegnn.matching.search import is_exact
from largegnn.matching.transport import fits_dense
from largegnn.settings import Settings

__all__ = ["estimate_seconds", "longest_search_seconds"]

_SIDE = 1024  # of the matrix that is multiplied to see how fast the machine is
_SHARE = {"cpu": 0.25, "cuda": 0.3}
_LEAST_STEP = {"cpu": 0.02, "cuda": 0.0015}  # seconds; below this a step is bound by other things than arithmetic
_OUTPUT_PER_DIM = 6  # two blocks of input, first and second layer
_SEARCH_SHARE = {"cpu": 0.9, "cuda": 1.5}  # half precision on a GPU is faster than what was measured
_BOTH_AT_ONCE = {"cpu": 1.5, "cuda": 1.0}  # as fast as two searches is one in both directions
_LEAST_SECONDS = 0.2  # of loading and dividing: files are opened and compiled code is read
_DIVIDE_PER_TRIPLE = 2.5e-6
_LOAD_PER_TRIPLE = 1.5e-6
# 6.8 million literals of 2.4 million entities took 519 s on two cores and 245 s on eight: some of it is done by one.
_PER_LITERAL, _SHARED_PER_LITERAL = 2.3e-5, 1.07e-4
_INTEGRATE_PER_TRIPLE, _INTEGRATE_PER_NUMBER = 1.2e-6, 2e-8
_APPROXIMATE_PER_NUMBER = 2.2e-6  # of a query, against 1.5 million; lists are read in the square root of the corpus
# For each pair a search found. 10 million entities a side took 888 s on two cores, half a million 24 s, DEBIAN_FILES_1M
# 27 s on sixteen: some of it is done by one.
_MATCH_PER_EDGE, _SHARED_MATCH_PER_EDGE = 4e-7, 5e-6
_TRANSPORT_PER_CELL = {"cpu": 4e-8, "cuda": 4e-10}
_EVALUATE_PER_LINK = 7e-5  # what is done for the candidates of a test link, on a processor in any case


def estimate_seconds(
    task: AlignmentTask, settings: Settings, plan: DivisionPlan, num_literals: int = 0
) -> dict[str, float]:
    """Seconds of the stages, rounds included; `num_literals` are those to compare."""
    device = choose_device(settings.device)
    measured = _speed(device)
    speed = measured * _SHARE[device.type]
    train, num_seeds = settings.train, len(task.seeds(settings.protocol.seeds_from))
    share = plan.cap / max(task.num_entities, 1)
    nodes = min(plan.cap, task.num_entities)
    triples = len(task.triples) * min(share, 1.0)
    negatives = min(train.negatives or nodes, nodes)
    # Forward and backward: products of the loss, messages along triples, proxies and gates of the outputs.
    output = _OUTPUT_PER_DIM * train.dim
    width = train.members * output
    loss = 3 * 2 * 2 * train.batch_size * (negatives + 2 * train.batch_size) * output
    encoder = 3 * (2 * triples * 16 * train.dim + (negatives + 2 * train.batch_size) * output * (output + 128))
    step = max((loss + encoder) / speed, _LEAST_STEP[device.type])
    steps = max(
        plan.num_parts, num_seeds * max(plan.cap * plan.num_parts / max(task.num_entities, 1), 1) / train.batch_size
    )
    epochs = train.epochs + settings.rounds.number * settings.rounds.epochs
    sides = task.num_source_entities - num_seeds, task.num_target_entities - num_seeds
    num_links = len(task.test_links)
    is_small = fits_dense((num_links, num_links), device, int(1e9 * settings.search.max_memory_gb))
    search = _search_seconds(*sides, width, device, measured)
    # Before the first round, after each, and in the end.
    looks = settings.rounds.number + 2 if settings.rounds.number else 1
    return {
        "load": _LEAST_SECONDS + _LOAD_PER_TRIPLE * len(task.triples),
        **(
            {"literals": num_literals * (_PER_LITERAL + _SHARED_PER_LITERAL / num_processors())} if num_literals else {}
        ),
        "divide": _LEAST_SECONDS + _DIVIDE_PER_TRIPLE * len(task.triples),
        "train": step * steps * epochs * train.members,
        "integrate": (1 + settings.rounds.number)
        * (
            train.members * _INTEGRATE_PER_TRIPLE * len(task.triples)
            + _INTEGRATE_PER_NUMBER * task.num_entities * width
        ),
        "search": looks * search,
        "match": looks * (_MATCH_PER_EDGE + _SHARED_MATCH_PER_EDGE / num_processors()) * settings.search.k * sum(sides),
        "evaluate": _search_seconds(num_links, num_links, width, device, measured)
        + min(4.0 * num_links**2 * width, 2 * MOST_PRODUCTS[device.type]) / (measured * _SEARCH_SHARE[device.type])
        + (_TRANSPORT_PER_CELL[device.type] * num_links**2 if is_small else 0.0)
        + _EVALUATE_PER_LINK * num_links,
    }


def longest_search_seconds(task: AlignmentTask, settings: Settings) -> float | None:
    """What a search takes that begins by inverted lists and has to end exactly; None where it is or stays the same."""
    device = choose_device(settings.device)
    num_seeds = len(task.seeds(settings.protocol.seeds_from))
    dim = _OUTPUT_PER_DIM * settings.train.dim * settings.train.members
    sides = task.num_source_entities - num_seeds, task.num_target_entities - num_seeds
    is_approximate = settings.search.method == "auto" and not is_exact(*sides, dim, device)
    if not is_approximate or float(sides[0]) * sides[1] * dim > MOST_EXACT:
        return None
    return 4.0 * sides[0] * sides[1] * dim / (_speed(device) * _SEARCH_SHARE[device.type])


def _search_seconds(num_sources: int, num_targets: int, dim: int, device: torch.device, speed: float) -> float:
    """Of a search in both directions, exact or approximate, whichever `auto` would choose."""
    if is_exact(num_sources, num_targets, dim, device):
        one_way = 2.0 * num_sources * num_targets * dim / (speed * _SEARCH_SHARE[device.type])
        return 2.0 * one_way / _BOTH_AT_ONCE[device.type]
    queries = (num_sources * math.sqrt(num_targets), num_targets * math.sqrt(num_sources))
    return _APPROXIMATE_PER_NUMBER * dim * sum(queries) / math.sqrt(1.5e6)


def _speed(device: torch.device) -> float:
    """Floating-point operations a second in a matrix product."""
    matrix = torch.ones(_SIDE, _SIDE, device=str(device))
    best = float("inf")
    for _ in range(4):
        started = time.perf_counter()
        float((matrix @ matrix)[0, 0])  # reading a value waits for a GPU
        best = min(best, time.perf_counter() - started)
    return 2 * _SIDE**3 / best
