"""Divide the merged graph again during training, so that no triple is cut in every epoch.

In: a run folder whose graph is merged. Out: the division of any number, mapped from a scratch artifact. The next one is
always being made, in a process of its own: METIS and KaMinPar hold the interpreter's lock and would stop the training.
A partitioner that only this process knows is called here. Scratch artifacts are removed once training is past them.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from largegnn.artifacts import AlignmentTask, DivisionPlan, MergedGraph, SubgraphSet, from_plain, to_plain
from largegnn.embedding.train import divisions_of_training, epochs_between_divisions
from largegnn.errors import HelperError
from largegnn.machine.devices import choose_device
from largegnn.machine.processes import HelperProcess
from largegnn.parts import PARTITIONERS
from largegnn.run import Run
from largegnn.runfolder.store import RunStore
from largegnn.settings import Settings

__all__ = ["Repartitioner"]

_log = logging.getLogger(__name__)


class Repartitioner:
    """The divisions of a training by number; number 0 is the division in the run folder."""

    def __init__(
        self, store: RunStore, folder: Path, settings: Settings, plan: DivisionPlan, seed: int, task: AlignmentTask
    ) -> None:
        """`folder`, inside the run folder, holds the scratch artifacts."""
        self._folder = folder.relative_to(store.folder)
        self._store, self._settings, self._plan, self._seed = store, settings, plan, seed
        self._num_divisions = _num_divisions(task, settings)
        self._making: dict[int, Future[None]] = {}
        self._helper: HelperProcess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._helper is not None:
            self._helper.close()
            self._helper = None

    def __call__(self, number: int) -> SubgraphSet:
        """Return the division of this number, and start computing the next."""
        if number == 0:
            self._start(1)
            return self._store.load("subgraphs", "subgraphs", SubgraphSet)
        found = self._finish(number)
        self._remove(number - 1)
        self._start(number + 1)
        return found

    def _finish(self, number: int) -> SubgraphSet:
        """Wait for a division; if it is missing, damaged, or lost with its process, compute it here."""
        task = self._making.pop(number, None)
        if task is not None:
            try:
                task.result()
            except HelperError as error:
                _log.warning("repartitioning: %s; the division is made here", error)
        found = self._store.load_scratch(self._file(number), SubgraphSet)
        if found is None:
            _make(*self._arguments(number))
            found = self._store.load_scratch(self._file(number), SubgraphSet)
        assert found is not None
        return found

    def _start(self, number: int) -> None:
        """Start a division in the helper process, unless it is past the last one or exists."""
        if number >= self._num_divisions or number in self._making or self._exists(number):
            return
        if PARTITIONERS.is_local(self._settings.division.partitioner):
            return
        if self._helper is None:
            self._helper = HelperProcess("repartitioning")
        self._making[number] = self._helper.submit(_make, *self._arguments(number))

    def _exists(self, number: int) -> bool:
        return self._store.load_scratch(self._file(number), SubgraphSet) is not None

    def _arguments(self, number: int) -> tuple[Path, dict[str, Any], dict[str, Any], str, int]:
        # Only what a division depends on: other settings may name parts that the helper process does not know.
        values = self._settings.model_dump(mode="json", include={"protocol", "division", "landmarks"})
        return self._store.folder, values, to_plain(self._plan), self._file(number), self._seed + number

    def _remove(self, number: int) -> None:
        if number:
            self._store.remove_scratch(self._file(number))

    def _file(self, number: int) -> str:
        return str(self._folder / f"division-{number:04d}")


def _num_divisions(task: AlignmentTask, settings: Settings) -> int:
    train, num_seeds = settings.train, len(task.seeds(settings.protocol.seeds_from))
    on_gpu = train.repartition_every > 0 and choose_device(settings.device).type != "cpu"
    every = epochs_between_divisions(train, len(task.triples), num_seeds, on_gpu)
    return train.members * divisions_of_training(train, every)


def _make(folder: Path, values: dict[str, Any], plan: dict[str, Any], file: str, seed: int) -> None:
    """Compute one division and save it in the run folder; arguments are plain, so that another process can do it."""
    from largegnn.division.subgraphs import divide_again

    run = Run(Settings.model_validate(values), RunStore(folder))
    task, merged = run.task.without_test_links(), run.artifact("merged", MergedGraph)
    sections = run.settings.protocol, run.settings.division, run.settings.landmarks
    run.store.save_scratch(file, divide_again(task, merged, from_plain(DivisionPlan, plan), *sections, seed))
