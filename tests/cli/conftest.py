"""One small pair and one finished run for all tests of commands that only look; whoever changes it takes a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.small_runs import HASTY, QUICK, call, make_pair


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pair(tmp_path_factory.mktemp("commands") / "pair")


@pytest.fixture(scope="session")
def finished(pair: Path) -> Path:
    folder = pair.parent / "finished"
    call("align", pair, "--out", folder, *QUICK)
    return folder


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    """A finished run that may be changed."""
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture(scope="session")
def untested(pair: Path) -> Path:
    """A run on two files and seeds alone: there is nothing to measure it by."""
    folder, seeds = pair.parent / "untested", pair / "721_5fold" / "1" / "train_links"
    call("align", pair / "rel_triples_1", pair / "rel_triples_2", "--seeds", seeds, "--out", folder, *HASTY)
    return folder
