"""The door to the partitioners; what each promises is tested in `tests/contracts/test_partitioners.py`."""

from __future__ import annotations

import subprocess
import sys

from largegnn.division import partition
from largegnn.parts import PARTITIONERS


def test_the_table_names_the_functions_of_the_same_names() -> None:
    for name in list(PARTITIONERS):
        part = getattr(partition, name)
        assert PARTITIONERS[name] is part
        assert PARTITIONERS.name_of(part) == name


def test_the_room_opens_without_what_is_heavy() -> None:
    code = (
        "import sys\n"
        "import largegnn.division, largegnn.division.partition\n"
        "heavy = {'pymetis', 'kaminpar', 'numba', 'scipy', 'torch', 'polars'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
