"""How threads wait for each other is set before PyTorch is loaded, and what the user chose stays."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from largegnn.machine.threads import wait_asleep

NAMES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def test_importing_the_package_sets_a_short_spin_and_loads_nothing_that_reads_it() -> None:
    code = (
        "import os, sys, largegnn\n"
        "assert (os.environ['GOMP_SPINCOUNT'], os.environ['KMP_BLOCKTIME']) == ('1000', '1')\n"
        "assert not {'torch', 'faiss', 'numba', 'scipy', 'numpy'} & set(sys.modules)\n"
    )
    clean = {name: value for name, value in os.environ.items() if name not in NAMES}
    subprocess.run([sys.executable, "-c", code], check=True, env=clean)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_user_chose_stays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in NAMES:
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "7")
    wait_asleep()
    assert {other: os.environ[other] for other in NAMES if other in os.environ} == {name: "7"}
