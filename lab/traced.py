"""Fill in the figures in the documents from their records.

A figure in a sentence stands between two comments, the first of which gives the address of the figure:

    LargeGNN finds <!-- = EN_FR_15K_V1 :: LargeGNN (best) :: ideal.csls.hits@1 -->.648<!-- / -->

- a file of `lab/results` without its ending (or `paper`: the figures that the paper prints, from `lab/configs`)
- the system (for superseded records `SYSTEM, REASON`), or the key of the line; `*` matches any text, and the mean over
  all matching records is taken
- the path of the figure in the record, with dots between the keys. After it, `- SYSTEM` subtracts the figure of another
  system (`paper`: the figure that the paper prints), `/ SYSTEM` divides by it, `±` adds the sample deviation (for a
  difference: of both samples), `n` gives the number of runs

A test fails if a figure in a sentence has no address (`untraced`). Figures published by others are records too
(`published.jsonl`), with their protocol and source.
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
# Text without untraced figures: figures with an address, filled-in tables, code blocks, code, links.
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
    """Fill in the figures of a page from the records."""
    return FIGURE.sub(lambda match: f"<!-- = {match['address']} -->{figure(match['address'])}<!-- / -->", text)


def figure(address: str) -> str:
    """Return the figure at an address, formatted for a page."""
    file, key, path = (part.strip() for part in address.split("::"))
    wants_spread = path.endswith("±")
    wants_number = path.endswith(" n")
    path = path.removesuffix("±").removesuffix(" n").strip()
    path, operator, other = next((path.partition(sign) for sign in (" - ", " / ") if sign in path), (path, "", ""))
    values = find(file, key, path)
    if wants_number:
        return str(len(values))
    if operator == " / ":
        return shown_ratio(statistics.fmean(values) / statistics.fmean(find(file, other, path)))
    subtracted = [0.0]
    if other:
        subtracted = find("paper", key, path, file) if other == "paper" else find(file, other, path)
    gain, deviation = difference(values, subtracted)
    sign = ("-" if gain < 0 else "+") if other else ""
    # A single run has no deviation.
    spread = f" ± {shown(deviation, path)}" if wants_spread and max(len(values), len(subtracted)) > 1 else ""
    return f"{sign}{shown(abs(gain), path)}{spread}"


def find(file: str, key: str, path: str, dataset: str = "") -> list[float]:
    """Return the values at a path in all records of a file that match a key; there must be at least one."""
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
    """Yield the records of a file, each with its key."""
    if file == "paper":
        for system in read_systems(CONFIGS):
            yield f"{system.dataset}, {system.name}", {"ideal": {"cosine": system.paper}, **system.paper}
    elif (RESULTS / f"{file}.json").exists():
        for record in json.loads((RESULTS / f"{file}.json").read_text(encoding="utf-8")):
            # A system may have been superseded several times: the reason distinguishes its records.
            yield ", ".join(record[name] for name in ("system", "reason") if name in record), record
    else:
        for line in (RESULTS / f"{file}.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            # Lines without a key are identified by the fields that distinguish them.
            parts = (str(record[name]) for name in ("set", "run", "variant", "order") if name in record)
            yield record.get("key") or ", ".join(parts), record


def shown(value: float, path: str) -> str:
    """Format a share with three digits, an amount with none or one."""
    if value <= 1 and not path.endswith(("seconds", "_mb", "_size", "pairs")):
        return f"{value:.3f}".removeprefix("0")
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def shown_ratio(ratio: float) -> str:
    """Format a ratio with two significant digits: `1.8`, `11`."""
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2f}".removeprefix("0")


def untraced(path: Path) -> list[str]:
    """List the figures of a page that have no address, each with its line."""
    text = path.read_text(encoding="utf-8")
    for covered in COVERED:
        text = covered.sub(lambda match: "\n" * match[0].count("\n") or " ", text)
    return [
        f"{path.relative_to(ROOT)}:{number}: {found[0]}"
        for number, line in enumerate(text.splitlines(), start=1)
        for found in UNTRACED.finditer(line)
    ]
