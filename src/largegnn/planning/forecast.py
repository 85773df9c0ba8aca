"""Estimate the sizes, seconds and memory of a run before it starts, to the order of magnitude.

In: the input files and settings. Out: a `Forecast` of plain values, with warnings. Seconds: the number of operations of
a stage divided by the speed of this machine, which a matrix product measures, or a constant per triple, pair or link.
Memory: what the process holds at the peak of a stage. The constants were measured with EN_FR_15K_V1, ContEA_FR_EN,
DEBIAN_FILES_1M and ten million entities per side on two cores, and on an H200. Memory-mapped arrays count as memory, as
they do in the figures of the system.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from largegnn.artifacts import AlignmentTask, DivisionPlan, to_plain
from largegnn.data.inputs import DataInput
from largegnn.data.load import load_pair
from largegnn.machine.devices import choose_device, num_processors
from largegnn.machine.metering import available_memory_mb
from largegnn.matching.search import is_exact
from largegnn.planning.plan import plan_for, seeds_warning
from largegnn.settings import Settings

__all__ = ["Forecast", "estimate_memory_mb", "estimate_seconds", "forecast"]

_MB = 1024 * 1024
_OUTPUT_PER_DIM = 6  # two blocks of input, first and second layer

# Memory: the program without and with PyTorch; bytes per triple by stage, per literal and per candidate pair; a chunk
# of scores, and the maximum of mapped vectors in matching.
_PROGRAM_MB, _WITH_TORCH_MB = 260, 620
_LOAD_BYTES, _DIVIDE_BYTES, _TRAIN_BYTES, _INTEGRATE_BYTES, _MATCH_BYTES = 120, 150, 500, 250, 40
_LITERAL_BYTES, _PAIR_BYTES = 400, 60
_CHUNK_MB, _MATCH_MAPPED_MB = 370, 1024

# Seconds: the minimum of a stage; per triple by stage, per literal, per candidate pair, per number of a vector, and per
# test link; per number of a query in an approximate search among 1.5 million vectors; the share of the measured speed
# that training and search reach; the minimum of a training step.
_MIN_SECONDS, _LOAD_SECONDS, _DIVIDE_SECONDS, _INTEGRATE_SECONDS = 0.2, 1.5e-6, 2.5e-6, 1.2e-6
_LITERAL_SECONDS, _LITERAL_SECONDS_SHARED = 2.3e-5, 1.07e-4  # the second is divided by the number of processors
_PAIR_SECONDS, _PAIR_SECONDS_SHARED = 4e-7, 5e-6
_NUMBER_SECONDS, _APPROXIMATE_SECONDS, _LINK_SECONDS = 2e-8, 2.2e-6, 7e-5
_TRAIN_SHARE, _SEARCH_SHARE = {"cpu": 0.25, "cuda": 0.3}, {"cpu": 0.95, "cuda": 1.5}
_MIN_STEP_SECONDS = {"cpu": 0.02, "cuda": 0.0015}
_MATRIX_SIZE = 1024  # rows of the matrix whose product measures the speed


@dataclass(frozen=True)
class Forecast:
    """Sizes of a run, and the seconds and peak memory of its stages, to the order of magnitude."""

    source_entities: int
    target_entities: int
    triples: int
    seeds: int
    valid_links: int
    subgraphs: int
    cap: int
    reason: str
    seconds: Mapping[str, float]
    memory_mb: Mapping[str, float]
    warnings: tuple[str, ...]

    @property
    def peak_memory_mb(self) -> float:
        """The largest peak of any stage."""
        return max(self.memory_mb.values())

    def rows(self) -> list[tuple[str, str]]:
        """Return the sizes as labels and texts for a table."""
        names = ("source_entities", "target_entities", "triples", "seeds", "valid_links", "subgraphs", "cap")
        return [(name.replace("_", " "), f"{getattr(self, name):,}") for name in names]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, and the peak memory, as plain values."""
        return {**to_plain(self), "peak_memory_mb": self.peak_memory_mb}


def forecast(given: DataInput, settings: Settings) -> Forecast:
    """Read the input and estimate a run with it on this machine."""
    pair = load_pair(given, settings.data, keep_literals=settings.keep_literals)
    task, num_literals = pair.task, len(pair.literals)
    seeds_from = settings.protocol.seeds_from
    plan = plan_for(task, settings.division, settings.landmarks, settings.device)
    memory = {stage: round(mb) for stage, mb in estimate_memory_mb(task, settings, num_literals).items()}
    seconds = estimate_seconds(task, settings, plan, num_literals)
    warnings = [seeds_warning(task, seeds_from)]
    free = available_memory_mb()
    stage = max(memory, key=lambda name: memory[name])
    if free is not None and memory[stage] > free:
        warnings.append(
            f"the stage {stage} needs about {memory[stage]:,.0f} MB, and {free:,.0f} MB are free: "
            "use a machine with more memory, or lower train.dim"
        )
    return Forecast(
        source_entities=task.num_source_entities,
        target_entities=task.num_target_entities,
        triples=len(task.triples),
        seeds=len(task.seeds(seeds_from)),
        valid_links=len(task.held_out(seeds_from)),
        subgraphs=plan.num_parts,
        cap=plan.cap,
        reason=plan.reason,
        seconds={stage: round(value, 1) for stage, value in seconds.items()},
        memory_mb=memory,
        warnings=tuple(warning for warning in warnings if warning is not None),
    )


def estimate_memory_mb(task: AlignmentTask, settings: Settings, num_literals: int = 0) -> dict[str, float]:
    """Estimate the peak memory of each stage, in MB; `num_literals` is the number of literals to compare."""
    triples, entities = len(task.triples) / _MB, task.num_entities / _MB  # in units of 2**20
    dim, members = settings.train.dim, settings.train.members
    vectors = 4 * entities * _OUTPUT_PER_DIM * dim
    all_vectors = members * vectors
    tables = (1 + members) * 4 * entities * dim  # rows of all ensemble members, optimiser state of one
    graph = _TRAIN_BYTES * min(triples, 4e6 * settings.train.max_memory_gb / _MB)
    resident = _WITH_TORCH_MB + tables + all_vectors + graph / 4
    chunk = min(_CHUNK_MB, 1000 * settings.search.max_memory_gb)
    allowed = 1024 * settings.train.max_memory_gb
    on_gpu = choose_device(settings.device).type == "cuda"
    test_scores = 4 * len(task.test_links) ** 2 / _MB
    held_scores = 0.0 if on_gpu else min(test_scores, 954 * settings.search.max_memory_gb)
    literals = {"literals": _PROGRAM_MB + _LOAD_BYTES * triples + _LITERAL_BYTES * num_literals / _MB}
    return {
        "load": _PROGRAM_MB + _LOAD_BYTES * triples,
        **(literals if num_literals else {}),
        "divide": _PROGRAM_MB + _DIVIDE_BYTES * triples,
        "train": _WITH_TORCH_MB + tables + vectors + graph,
        "integrate": _WITH_TORCH_MB + tables / 2 + min(2 * all_vectors, allowed / 2) + _INTEGRATE_BYTES * triples,
        "search": resident + min(chunk, 4 * task.num_source_entities * task.num_target_entities / _MB),
        "match": _WITH_TORCH_MB
        + min(all_vectors, _MATCH_MAPPED_MB)
        + _PAIR_BYTES * settings.search.k * entities
        + _MATCH_BYTES * triples,
        "evaluate": resident + held_scores + min(chunk, test_scores),
    }


def estimate_seconds(
    task: AlignmentTask, settings: Settings, plan: DivisionPlan, num_literals: int = 0
) -> dict[str, float]:
    """Estimate the seconds of each stage with all rounds; `num_literals` is the number of literals to compare."""
    device = choose_device(settings.device)
    speed, processors = _measure_speed(device), num_processors()
    train, rounds = settings.train, settings.rounds
    num_seeds, num_links = len(task.seeds(settings.protocol.seeds_from)), len(task.test_links)
    searches = rounds.number + 2 if rounds.number else 1  # before the first round, after each round, and at the end
    triples, width = len(task.triples), _width(settings)
    num_sources, num_targets = _free_entities(task, settings)
    pairs = settings.search.k * (num_sources + num_targets)
    search = _search_seconds(num_sources, num_targets, width, device, speed)
    literals = {"literals": num_literals * (_LITERAL_SECONDS + _LITERAL_SECONDS_SHARED / processors)}
    # Operations of a step, forward and backward: products of the loss, messages along triples, proxies and gates.
    output = _OUTPUT_PER_DIM * train.dim
    nodes = min(plan.cap, task.num_entities)
    rows = min(train.negatives or nodes, nodes) + 2 * train.batch_size
    messages = 32 * train.dim * triples * nodes / max(task.num_entities, 1)
    operations = 12 * train.batch_size * rows * output + 3 * (messages + rows * output * (output + 128))
    step = max(operations / (speed * _TRAIN_SHARE[device.type]), _MIN_STEP_SECONDS[device.type])
    overlap = max(plan.cap * plan.num_parts / max(task.num_entities, 1), 1)
    steps = max(plan.num_parts, num_seeds * overlap / train.batch_size)
    return {
        "load": _MIN_SECONDS + _LOAD_SECONDS * triples,
        **(literals if num_literals else {}),
        "divide": _MIN_SECONDS + _DIVIDE_SECONDS * triples,
        "train": step * steps * (train.epochs + rounds.number * rounds.epochs) * train.members,
        "integrate": (1 + rounds.number)
        * (train.members * _INTEGRATE_SECONDS * triples + _NUMBER_SECONDS * task.num_entities * width),
        "search": searches * search,
        "match": searches * (_PAIR_SECONDS + _PAIR_SECONDS_SHARED / processors) * pairs,
        # Ranks by cosines, by CSLS and by transport take about as long as six searches.
        "evaluate": 6 * _search_seconds(num_links, num_links, width, device, speed) + _LINK_SECONDS * num_links,
    }


def _free_entities(task: AlignmentTask, settings: Settings) -> tuple[int, int]:
    """Count the source and target entities that are not seeds."""
    num_seeds = len(task.seeds(settings.protocol.seeds_from))
    return task.num_source_entities - num_seeds, task.num_target_entities - num_seeds


def _width(settings: Settings) -> int:
    """Return the length of an output vector."""
    return _OUTPUT_PER_DIM * settings.train.dim * settings.train.members


def _search_seconds(num_sources: int, num_targets: int, width: int, device: torch.device, speed: float) -> float:
    """Estimate the seconds of a search in both directions, exact or approximate as `auto` would choose."""
    if is_exact(num_sources, num_targets, width, device):
        return 4.0 * num_sources * num_targets * width / (speed * _SEARCH_SHARE[device.type])
    queries = num_sources * math.sqrt(num_targets) + num_targets * math.sqrt(num_sources)
    return _APPROXIMATE_SECONDS * width * queries / math.sqrt(1.5e6)


def _measure_speed(device: torch.device) -> float:
    """Measure floating-point operations per second in a matrix product."""
    matrix = torch.ones(_MATRIX_SIZE, _MATRIX_SIZE, device=str(device))
    seconds = float("inf")
    for _ in range(4):
        started = time.perf_counter()
        float((matrix @ matrix)[0, 0])  # reading a value waits until a GPU has finished
        seconds = min(seconds, time.perf_counter() - started)
    return 2 * _MATRIX_SIZE**3 / seconds
