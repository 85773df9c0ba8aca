"""Measure speed and memory of training on subgraphs: two questions, one table each.

    training.py steps FOLDER [--parts 5 --cap 7500]      seconds of an epoch and a step for d = 64 and 128, by operator
    training.py memory FOLDER [--dim 64]                 peak memory of an epoch against the number of subgraphs

FOLDER is a data set; seeds are train + valid, as in the paper. `steps` uses the GPU if there is one. For `memory`
the subgraphs are memory-mapped from a run folder; each number has a process of its own, whose cache of structures is
empty. `--json FILE` stores the figures.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from lab.lines import write_rows
from lab.runs import RunStore, run_task
from largegnn import api
from largegnn.artifacts import SubgraphSet
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.trainer import Trainer
from largegnn.machine.metering import Meter
from largegnn.settings import PRESETS, Settings, TrainSettings, resolve

Figures = dict[str, Any]
WARM_UP_EPOCHS = 1
MEASURED_EPOCHS = 3
MAX_OPERATORS = 10


def settings_of(parts: int, cap: int | None) -> Settings:
    """Return the settings of a division with landmarks; by default, the cap is a quarter above an even share."""
    values: Figures = {"protocol": {"seeds_from": "train+valid"}, "division": {"parts": parts}}
    values["landmarks"] = {} if cap is None else {"cap": cap}
    return resolve(Settings, PRESETS, values=values)


def options_of(dim: int, epochs: int) -> TrainSettings:
    """Return the default training options, with one division."""
    return TrainSettings(dim=dim, epochs=epochs, repartition_every=0)


def trainer_for(subgraphs: SubgraphSet, counts: tuple[int, int], options: TrainSettings) -> Trainer:
    """Make a trainer with a new model; `counts`: numbers of entities and relations."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = EmbeddingModel(*counts, options, device, seed=0)
    return Trainer(model, lambda _: subgraphs, counts[1], options, seed=0)


def count_steps(subgraphs: SubgraphSet, options: TrainSettings) -> int:
    """Count the batches of an epoch."""
    sizes = (subgraphs.seed_ptr[1:] - subgraphs.seed_ptr[:-1]).tolist()
    return sum(-(-size // options.batch_size) for size in sizes)


def slowest_operators(trainer: Trainer) -> list[Figures]:
    """Profile an epoch of a new trainer, and return the operators that take the most time."""
    on_gpu = trainer.model.device.type == "cuda"
    with profile(activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]) as profiler:
        trainer.run()
    measure = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    rows = [(event.key, getattr(event, measure), event.count) for event in profiler.key_averages()]
    total = max(sum(row[1] for row in rows), 1)
    rows.sort(key=lambda row: -row[1])
    return [{"operator": key, "share": time / total, "calls": count} for key, time, count in rows[:MAX_OPERATORS]]


def measure_steps(folder: str, parts: int, cap: int | None, dim: int) -> Figures:
    """Measure one dimension: train a few epochs, then profile one epoch."""
    task = api.load(folder).task
    subgraphs = api.divide(task, settings_of(parts, cap)).subgraphs
    options = options_of(dim, WARM_UP_EPOCHS + MEASURED_EPOCHS)
    counts = (task.num_entities, task.num_relations)
    trainer = trainer_for(subgraphs, counts, options)
    meter = Meter()
    history = trainer.run()
    usage = meter.read()
    seconds = statistics.mean(record.seconds for record in history[WARM_UP_EPOCHS:])
    on_gpu = trainer.model.device.type == "cuda"
    return {
        "set": Path(folder).name,
        "device": torch.cuda.get_device_name() if on_gpu else f"cpu, {torch.get_num_threads()} threads",
        "parts": parts,
        "dim": dim,
        "steps": count_steps(subgraphs, options),
        "first_epoch_seconds": history[0].seconds,
        "epoch_seconds": seconds,
        "step_seconds": seconds / count_steps(subgraphs, options),
        "peak_memory_mb": usage.peak_memory_mb,
        "gpu_peak_memory_mb": torch.cuda.max_memory_allocated() / 2**20 if on_gpu else None,
        "operators": slowest_operators(trainer_for(subgraphs, counts, options.model_copy(update={"epochs": 1}))),
    }


def measure_memory(folder: str, counts: tuple[int, int], dim: int) -> Figures:
    """Measure one epoch on the subgraphs of a run folder."""
    subgraphs = RunStore(Path(folder)).load("subgraphs", "subgraphs", SubgraphSet)
    options = options_of(dim, 1).model_copy(update={"max_memory_gb": 0.0})
    before = Meter().read().peak_memory_mb
    meter = Meter()
    trainer_for(subgraphs, counts, options).run()
    usage = meter.read()
    largest = max((subgraphs.entity_ptr[1:] - subgraphs.entity_ptr[:-1]).tolist())
    return {
        "parts": len(subgraphs),
        "dim": dim,
        "largest": largest,
        "seconds": usage.seconds,
        "memory_before_mb": before,
        "peak_memory_mb": usage.peak_memory_mb,
        "gpu_peak_memory_mb": torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else None,
    }


def in_own_process(work: Any, *arguments: Any) -> Figures:
    """Call `work` in a new process, and return its figures."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        figures: Figures = pool.apply(work, arguments)
    return figures


def compare_dims(folder: str, parts: int, cap: int | None) -> list[Figures]:
    """Compare seconds, memory and operators for two dimensions."""
    rows = []
    for dim in (64, 128):
        row = in_own_process(measure_steps, folder, parts, cap, dim)
        rows.append(row)
        print(
            f"{row['set']:<16} {row['device']}, {parts} subgraphs, d = {dim}: {row['epoch_seconds']:.2f} s an epoch "
            f"of {row['steps']} steps ({1000 * row['step_seconds']:.0f} ms each), "
            f"first {row['first_epoch_seconds']:.2f} s, {row['peak_memory_mb']:,.0f} MB",
            flush=True,
        )
        for operator in row["operators"]:
            print(f"    {operator['share']:6.1%} {operator['calls']:>7,} calls  {operator['operator']}")
    return rows


def compare_numbers(folder: str, dim: int) -> list[Figures]:
    """Compare the peak memory for several numbers of subgraphs of the same graph."""
    task = api.load(folder).task
    rows = []
    for parts in (10, 20, 40, 80, 160):
        with tempfile.TemporaryDirectory() as run_folder:
            run_task(run_folder, task, settings=settings_of(parts, None), last="subgraphs")
            row = in_own_process(measure_memory, run_folder, (task.num_entities, task.num_relations), dim)
        rows.append({"set": Path(folder).name} | row)
        print(
            f"{Path(folder).name:<16} {parts:>4} subgraphs of up to {row['largest']:,} entities, d = {dim}: "
            f"{row['peak_memory_mb']:,.0f} MB ({row['memory_before_mb']:,.0f} before), {row['seconds']:.1f} s",
            flush=True,
        )
    return rows


def main() -> None:
    """Answer the chosen question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", choices=("steps", "memory"))
    parser.add_argument("folder")
    parser.add_argument("--parts", type=int, default=5)
    parser.add_argument("--cap", type=int)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.question == "steps":
        rows = compare_dims(arguments.folder, arguments.parts, arguments.cap)
    else:
        rows = compare_numbers(arguments.folder, arguments.dim)
    if arguments.json:
        write_rows(arguments.json, rows, [Path(arguments.folder)])


if __name__ == "__main__":
    main()
