"""Fixtures shared by all tests: a toy pair small enough to check by hand, and the real data sets where they are."""

from __future__ import annotations

import logging
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from largegnn.artifacts import AlignmentTask, StringTable, TaskNames
from tests.fuzz.seed import pytest_report_header as pytest_report_header

# Examples are drawn the same way every time: a test run is a fact, not a lottery. Fuzz further with --hypothesis-seed.
settings.register_profile("project", deadline=None, derandomize=True)
settings.load_profile("project")

# Files that take long, longest first: they are started first, so that no worker is left alone with one at the end.
LONG = (
    "cli/test_killed_align.py",
    "cluster/test_two_nodes.py",
    "stages/test_train.py",
    "cli/test_large.py",
    "cli/test_interrupted.py",
    "data/test_hostile.py",
    "fuzz/test_fuzz_kills.py",
    "fuzz/test_fuzz_readers.py",
    "fuzz/test_fuzz_run_folder.py",
    "fuzz/test_fuzz_settings.py",
    "fuzz/test_fuzz_archives.py",
    "../lab/tests/test_accuracy.py",
    "test_extending.py",
    "test_examples.py",
    "test_api_align.py",
    "runs/test_limited_memory.py",
    "runs/test_repartition.py",
    "runs/test_pipeline.py",
    "embedding/test_resuming.py",
    "embedding/test_feeding.py",
    "cli/test_cli.py",
    "data/test_write.py",
)
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {(HERE / name).resolve(): rank for rank, name in enumerate(LONG)}
    items.sort(key=lambda item: ranks.get(item.path, len(LONG)))


SOURCE = "a r b\na r c\nb s c\nc s d\nd r e\n"
TARGET = "A p B\nA p C\nB q C\nC q D\nD p E\nE q F\n"
TRAIN, VALID, TEST = "a A\nc C\n", "b B\n", "d D\ne E\n"


def tabbed(text: str) -> str:
    return text.replace(" ", "\t")


@pytest.fixture(autouse=True)
def _all_is_logged() -> None:
    """Each test begins with loggers as they are at first: servers of earlier tests set them as they like."""
    logging.disable(logging.NOTSET)
    for name, logger in logging.root.manager.loggerDict.items():
        if name.partition(".")[0] == "largegnn" and isinstance(logger, logging.Logger):
            logger.disabled, logger.propagate = False, True
            logger.setLevel(logging.NOTSET)


@pytest.fixture
def toy_folder(tmp_path: Path) -> Path:
    """Two little graphs in DBpedia1M's layout.

    source            target
    a --r-- b         A --p-- B          train  a = A, c = C
     \\      |          \\      |          valid  b = B
      r     s           p     q          test   d = D, e = E
       \\    |            \\    |
        ---- c --s-- d --r-- e    ---- C --q-- D --p-- E --q-- F
    """
    folder = tmp_path / "toy"
    folder.mkdir()
    for name, text in (
        ("rel_triples_1", SOURCE),
        ("rel_triples_2", TARGET),
        ("train_links", TRAIN),
        ("valid_links", VALID),
        ("test_links", TEST),
    ):
        (folder / name).write_text(tabbed(text), encoding="utf-8")
    return folder


@pytest.fixture
def toy_task() -> AlignmentTask:
    """The toy pair with ids in alphabetical order: a..e are 0..4, A..F are 5..10; r s p q are 0..3."""
    source = [(0, 0, 1), (0, 0, 2), (1, 1, 2), (2, 1, 3), (3, 0, 4)]
    target = [(5, 2, 6), (5, 2, 7), (6, 3, 7), (7, 3, 8), (8, 2, 9), (9, 3, 10)]
    return AlignmentTask(
        num_source_entities=5,
        num_target_entities=6,
        num_source_relations=2,
        num_target_relations=2,
        triples=np.array(source + target),
        train_links=np.array([(0, 5), (2, 7)]),
        valid_links=np.array([(1, 6)]),
        test_links=np.array([(3, 8), (4, 9)]),
    )


@pytest.fixture
def toy_names() -> TaskNames:
    return TaskNames(StringTable.from_strings("abcdeABCDEF"), StringTable.from_strings("rspq"))


@pytest.fixture(scope="session")
def real_data(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Unpacks a real data set by name; skips the test, visibly, where there is none."""
    home = Path(os.environ.get("LARGEGNN_DATA", Path(__file__).parents[2] / "shared" / "data"))
    unpacked: dict[str, Path] = {}

    def find(name: str) -> Path:
        archive = home / f"{name}.tar.xz"
        if (home / name).is_dir():
            return home / name
        if not archive.exists():
            pytest.skip(f"no data set {name} in {home} (set LARGEGNN_DATA)")
        if name not in unpacked:
            folder = tmp_path_factory.mktemp("real")
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
            # The folder's own name may be shorter than the archive's.
            (unpacked[name],) = folder.iterdir()
        return unpacked[name]

    return find


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Products of a few rows gain nothing from more threads, and lose much where other work runs beside."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
