"""Test that our programs set short spins for OpenMP threads, and that values set by the user are kept."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from largegnn.machine.devices import set_short_spins, spin_variables

NAMES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def run_clean(code: str) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in NAMES}
    subprocess.run([sys.executable, "-c", code], check=True, env=clean)


def test_importing_the_package_changes_no_variable_and_loads_nothing_large() -> None:
    run_clean(
        "import os, sys\n"
        "before = dict(os.environ)\n"
        "import largegnn\n"
        "assert dict(os.environ) == before\n"
        "assert not {'torch', 'faiss', 'numba', 'scipy', 'numpy'} & set(sys.modules)\n"
        "largegnn.align\n"
        "assert {'OMP_WAIT_POLICY', 'GOMP_SPINCOUNT', 'KMP_BLOCKTIME'}.isdisjoint(os.environ)\n"
    )


def test_the_command_line_sets_a_short_spin_before_it_loads_what_reads_it() -> None:
    run_clean(
        "import os, sys\n"
        "import largegnn.cli\n"
        "assert not {'torch', 'faiss', 'numba'} & set(sys.modules)\n"
        "try:\n"
        "    largegnn.cli.main(['--version'])\n"
        "except SystemExit:\n"
        "    pass\n"
        "assert (os.environ['GOMP_SPINCOUNT'], os.environ['KMP_BLOCKTIME']) == ('1000', '1')\n"
    )


@pytest.mark.parametrize("name", NAMES)
def test_values_of_the_user_are_kept(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in NAMES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(name, "7")
    assert spin_variables() == {name: "7"}
    set_short_spins()
    assert {variable: os.environ[variable] for variable in NAMES if variable in os.environ} == {name: "7"}
