"""Write the output of the first run into `README.md`: `python -m lab.quickstart`, which takes a minute.

The commands are those of the README, which are those of `make demo`; what `largegnn align` prints at the end is put
between `<!-- output:quickstart -->` and `<!-- /output -->`. One thread, so that the figures are the same on other
machines to a few digits.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from lab import ROOT

README = ROOT / "README.md"
BETWEEN = re.compile(r"(?<=<!-- output:quickstart -->\n).*?(?=<!-- /output -->)", re.DOTALL)
COMMANDS = re.compile(r"^largegnn (?:generate|align|export) demo/.*$", re.MULTILINE)
FIRST_LINE = re.compile(r"^[\d,]+ pairs accepted", re.MULTILINE)


def commands() -> list[str]:
    """The commands of the first run, as they stand in the README."""
    return COMMANDS.findall(README.read_text(encoding="utf-8"))


def run(folder: Path) -> str:
    """What `largegnn align` prints at the end, in a folder of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    printed = {}
    for command in commands():
        words = [sys.executable, "-m", *shlex.split(command)]
        ended = subprocess.run(words, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        printed[words[3]] = ended.stdout
    found = FIRST_LINE.search(printed["align"])
    assert found is not None, "align ends with what it found"
    return printed["align"][found.start() :].strip()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        text = f"```\n{run(Path(scratch))}\n```\n"
    README.write_text(BETWEEN.sub(lambda _: text, README.read_text(encoding="utf-8")), encoding="utf-8")
