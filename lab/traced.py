"""Fill the figures of the documents in from their records.

A figure in a sentence stands between two comments, of which the first names its record:

    LargeGNN finds <!-- = EN_FR_15K_V1 :: LargeGNN (best) :: ideal.csls.hits@1 -->.648<!-- / -->

- a file of `lab/results` without its ending (or `paper`: the figures that the paper prints, from `lab/configs`)
- the system (of superseded records `SYSTEM, REASON`), or the key of the line; `*` stands for anything, and the mean
  over all that fit is taken
- the place of the figure in the record, with dots between the steps; then `- SYSTEM` takes off the same figure of
  another (`paper`: what the paper prints for it), `/ SYSTEM` divides by it, `±` adds the sample deviation (of a
  difference: of both ends together), `n` gives the number of runs. A difference is called one only beyond its deviation

A test fails where a sentence has a figure that names no record (`untraced`). What others published is a record too
(`published.jsonl`), with its protocol and the place where it was read.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from lab import CONFIGS, MEASUREMENTS, RESULTS, ROOT
from lab.systems import read_systems
from lab.text import difference

DOCS = ROOT / "docs"
GENERATED = (DOCS / "reference" / "settings.md", DOCS / "reference" / "commands.md")
FILLED = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(path for path in sorted(DOCS.rglob("*.md")) if path not in GENERATED),
    MEASUREMENTS / "results.md",
]
FIGURE = re.compile(r"<!-- = (?P<address>[^\n]*?) -->(?P<shown>[^\n]*?)<!-- / -->")
# What is no figure of a measurement, or has its record: comments with what they enclose, examples, code, addresses.
COVERED = (
    FIGURE,
    re.compile(r"<!-- ([a-z][a-z ]*?)(?::\S+)? -->.*?<!-- /\1 -->", re.DOTALL),
    re.compile(r"^(```+).*?^\1", re.DOTALL | re.MULTILINE),
    re.compile(r"`[^`\n]*`"),
    re.compile(r"\]\([^)\s]*\)"),
)
SHARE = r"(?<![\w.,/:-])[-+]?[01]?\.\d{2,4}(?![\w.]*\d)"
AMOUNT = r"(?<![\w.,])\d[\d,.]* ?(?:s|ms|µs|min|minutes|seconds|hours|MB|GB|GiB|MiB)\b"
NUMBER = r"(?:\d[\d,.]*|two|three|four|five|six|seven|eight|nine|ten|dozens of|hundreds of)"
RATIO = rf"(?<![\w.,])(?:\d[\d,]*\.\d+ times\b|(?:{NUMBER} times|twice) (?:as|the|faster|slower|more|less)\b)"
SHORT = r"(?:half|third|quarter|fifth|tenth)"
IN_WORDS = rf"\b{SHORT} (?:an? (?:second|minute|hour)|of the (?:\w+ )?(?:time|memory)|as (?:long|much))\b"
UNTRACED = re.compile(f"{SHARE}|{AMOUNT}|{RATIO}|{IN_WORDS}")


def fill(text: str) -> str:
    """A page with its figures as the records have them."""
    return FIGURE.sub(lambda found: f"<!-- = {found['address']} -->{figure(found['address'])}<!-- / -->", text)


def figure(address: str) -> str:
    """The figure at an address, as a page shows it."""
    file, key, path = (part.strip() for part in address.split("::"))
    wants_spread, wants_number = path.endswith("±"), path.endswith(" n")
    path = path.removesuffix("±").removesuffix(" n").strip()
    path, operator, other = next((path.partition(sign) for sign in (" - ", " / ") if sign in path), (path, "", ""))
    values = find(file, key, path)
    if wants_number:
        return str(len(values))
    if operator == " / ":
        return shown_ratio(statistics.fmean(values) / statistics.fmean(find(file, other, path)))
    taken = [0.0]
    if other:
        taken = find("paper", key, path, file) if other == "paper" else find(file, other, path)
    gain, deviation = difference(values, taken)
    sign = ("-" if gain < 0 else "+") if other else ""
    # One run has no deviation.
    spread = f" ± {shown(deviation, path)}" if wants_spread and max(len(values), len(taken)) > 1 else ""
    return f"{sign}{shown(abs(gain), path)}{spread}"


def find(file: str, key: str, path: str, dataset: str = "") -> list[float]:
    """The values of all records of a file that fit a key, at least one."""
    values = []
    for record_key, record in records(file):
        if fnmatchcase(record_key, f"{dataset}, {key}" if dataset else key):
            value: Any = record
            for step in path.split("."):
                value = value.get(step) if isinstance(value, dict) else None
            if isinstance(value, int | float):
                values.append(float(value))
    if not values:
        raise KeyError(f"no record of {file} fits {key} and has {path}")
    return values


def records(file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The records of a file, each with what it is called."""
    if file == "paper":
        for system in read_systems(CONFIGS):
            yield f"{system.dataset}, {system.name}", {"ideal": {"cosine": system.paper}, **system.paper}
    elif (RESULTS / f"{file}.json").exists():
        for record in json.loads((RESULTS / f"{file}.json").read_text(encoding="utf-8")):
            # Of superseded records there are several generations: the reason tells them apart.
            yield ", ".join(record[name] for name in ("system", "reason") if name in record), record
    else:
        for line in (RESULTS / f"{file}.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            # Some lines have no key of their own: what tells them apart stands in its place.
            parts = (str(record[name]) for name in ("set", "run", "variant", "order") if name in record)
            yield record.get("key") or ", ".join(parts), record


def shown(value: float, path: str) -> str:
    """A share with three digits, an amount with as many as it is worth."""
    if value <= 1 and not path.endswith(("seconds", "_mb", "_size", "pairs")):
        return f"{value:.3f}".removeprefix("0")
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def shown_ratio(ratio: float) -> str:
    """A ratio as its amount is worth: `1.8`, `11`."""
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2f}".removeprefix("0")


def untraced(path: Path) -> list[str]:
    """The figures of a page that name no record, each with its line."""
    text = path.read_text(encoding="utf-8")
    for covered in COVERED:
        text = covered.sub(lambda found: "\n" * found[0].count("\n") or " ", text)
    return [
        f"{path.relative_to(ROOT)}:{number}: {found[0]}"
        for number, line in enumerate(text.splitlines(), start=1)
        for found in UNTRACED.finditer(line)
    ]
