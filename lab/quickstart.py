"""Write the output of the first run into `README.md`: `python -m lab.quickstart`, which takes a minute.

It runs the commands in the README, which `make demo` runs too, and puts the findings that `largegnn align` prints
between `<!-- output:quickstart -->` and `<!-- /output -->`. It uses one thread, so that the figures agree to a few
digits with other machines.
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
    """Return the commands of the first run from the README."""
    return COMMANDS.findall(README.read_text(encoding="utf-8"))


def run(folder: Path) -> str:
    """Run the commands in a folder, and return the findings that `largegnn align` prints at the end."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    printed = {}
    for command in commands():
        words = [sys.executable, "-m", *shlex.split(command)]
        ended = subprocess.run(words, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        printed[words[3]] = ended.stdout
    match = FIRST_LINE.search(printed["align"])
    assert match is not None, "align prints its findings at the end"
    return printed["align"][match.start() :].strip()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        text = f"```\n{run(Path(scratch))}\n```\n"
    README.write_text(BETWEEN.sub(lambda _: text, README.read_text(encoding="utf-8")), encoding="utf-8")
