"""Divisions with other random seeds, made beside the training, so that no triple is lost to it for good.

In: a run folder whose graph is merged. Out: the k-th division as a `SubgraphSet`, mapped from a scratch file. The next
one is always in the making, in a process of its own: METIS holds the interpreter's lock and would stop the training.
Scratch files are named after the division they vary and are removed once training is past them; the folder they lie in
goes with the stage.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from largegnn.artifacts import AlignmentTask, MergedGraph, Partition, SubgraphSet
from largegnn.division import add_landmarks, build_subgraphs
from largegnn.runs.store import RunStore
from largegnn.seams.tables import PARTITIONERS
from largegnn.settings import PRESETS, Settings, resolve

__all__ = ["FreshDivisions", "divide_once"]


def divide_once(
    task: AlignmentTask, graph: MergedGraph, settings: Settings, num_parts: int, cap: int, seed: int
) -> SubgraphSet:
    """One division of a merged graph: parts, landmarks if they are on, subgraphs."""
    seeds = task.seeds(settings.protocol.seeds_from)
    partitioner = PARTITIONERS[settings.division.partitioner]
    cover: Partition = partitioner(task, graph, settings.protocol.seeds_from, num_parts, seed)
    # A part that METIS made larger than the cap gets no landmarks; the first division was checked against it.
    if settings.landmarks.enabled:
        options = settings.landmarks
        cover = add_landmarks(graph, cover, seeds, cap, eta=options.eta, decay=options.decay, hops=options.hops)
    return build_subgraphs(task, seeds, cover)


class FreshDivisions:
    """The divisions of a training run by number; number 0 is the one the run folder holds."""

    def __init__(self, store: RunStore, folder: Path, settings: Settings, seed: int, num_rounds: int) -> None:
        """`folder` lies in the run folder and takes the scratch files; there are `num_rounds` divisions in all."""
        self._folder = folder.relative_to(store.folder)
        self._store, self._settings, self._seed, self._num_rounds = store, settings, seed, num_rounds
        self._plan = store.stages["partition"].facts
        self._name = store.stages["landmarks"].fingerprint[:12]
        self._making: dict[int, Future[None]] = {}
        self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def __call__(self, number: int) -> SubgraphSet:
        """The division of this number; starts on the one after it."""
        if number:
            self._start(number)
            self._making[number].result()
            self._remove(number - 1)
        if number + 1 < self._num_rounds:
            self._start(number + 1)
        if number == 0:
            return self._store.load("subgraphs", "subgraphs", SubgraphSet)
        found = self._store.load_scratch(self._file(number), SubgraphSet)
        assert found is not None
        return found

    def _start(self, number: int) -> None:
        if number in self._making:
            return
        if (self._store.folder / self._file(number)).is_file():
            done: Future[None] = Future()
            done.set_result(None)
            self._making[number] = done
            return
        arguments = (
            self._store.folder,
            self._settings.model_dump(),
            self._plan,
            self._file(number),
            self._seed + number,
        )
        self._making[number] = self._pool.submit(_make, *arguments)

    def _remove(self, number: int) -> None:
        (self._store.folder / self._file(number)).unlink(missing_ok=True)

    def _file(self, number: int) -> str:
        return str(self._folder / f"division-{self._name}-{number:04d}.npz")


def _make(folder: Path, values: dict[str, Any], plan: dict[str, Any], file: str, seed: int) -> None:
    """Make one division in this process and leave it in the run folder."""
    store, settings = RunStore(folder), resolve(Settings, PRESETS, values=values)
    task, graph = store.load("load", "task", AlignmentTask), store.load("merge", "merged", MergedGraph)
    store.save_scratch(file, divide_once(task, graph, settings, plan["num_parts"], plan["cap"], seed))
