"""Every figure of the documents from its record: `traced.py` fills them in, `traced.py --list` names those without one.

A figure in a sentence stands between two comments, of which the first says where it comes from:

    LargeGNN finds <!-- = EN_FR_15K_V1 | LargeGNN (best) | ideal.csls.hits@1 -->.648<!-- / -->

- a file of `docs/results` without its ending (or `paper`: the figures the paper prints, from `configs/paper`)
- the system, or the key of the line; `*` stands for anything, and the mean over all that fit is taken
- where the figure is in the record, dots between the steps; `- SYSTEM` behind it takes off the same figure of another
  (`paper` in its place: what the paper prints for it), `±` adds the sample deviation (of a difference: of both ends
  together), `n` gives the number of runs. A difference is called one only beyond its deviation

Tables come from records as a whole, between `<!-- table:NAME -->` and `<!-- /table -->` (see `make docs`). Figures that
were measured before there were records stand between `<!-- by hand: KEY -->` and `<!-- /by hand -->`; their text is
kept in `docs/results/by_hand.jsonl` with the version that made them and what is not known of them. To change such a
block, measure again and write a record; `traced.py --keep KEY REASON` keeps the block as it stands, with the reason.
"""

from __future__ import annotations

import datetime
import json
import math
import re
import statistics
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from largegnn.paper.origin import read_lines
from largegnn.paper.systems import read_systems
from largegnn.version import __version__

ROOT = Path(__file__).parents[2]
DOCS, RESULTS = ROOT / "docs", ROOT / "docs" / "results"
BY_HAND = RESULTS / "by_hand.jsonl"
# Written from the program (reference), or not about what it reaches now (notebook); the index is the README.
EXEMPT = ("notebook.md", "index.md", "reference/settings.md", "reference/commands.md")
PAGES = [
    ROOT / "README.md",
    *(path for path in sorted(DOCS.rglob("*.md")) if str(path.relative_to(DOCS)) not in EXEMPT),
]
FIGURE = re.compile(r"<!-- = (?P<address>[^\n]*?) -->(?P<shown>[^\n]*?)<!-- / -->")
BLOCK = re.compile(r"<!-- by hand: (?P<key>[\w-]+) -->\n(?P<text>.*?)<!-- /by hand -->", re.DOTALL)
# What is no figure of a measurement, or has its record: comments with what they enclose, examples, code, addresses.
COVERED = (
    FIGURE,
    BLOCK,
    re.compile(r"<!-- (table|output)\b.*?<!-- /\1 -->", re.DOTALL),
    re.compile(r"^(```+).*?^\1", re.DOTALL | re.MULTILINE),
    re.compile(r"`[^`\n]*`"),
    re.compile(r"\]\([^)\s]*\)"),
)
SHARE = r"(?<![\w.,/:-])[-+]?[01]?\.\d{2,4}(?![\w.]*\d)"
AMOUNT = r"(?<![\w.,])\d[\d,.]* ?(?:s|ms|µs|min|minutes|seconds|hours|MB|GB|GiB|MiB)\b"
UNTRACED = re.compile(f"{SHARE}|{AMOUNT}")


def fill(text: str) -> str:
    """A page with its figures and its blocks as the records have them."""
    kept = {line["key"]: line["text"] for line in read_lines(BY_HAND)}

    def block(found: re.Match[str]) -> str:
        if found["key"] not in kept:
            raise KeyError(f"no block {found['key']} in {BY_HAND.name}: keep it with --keep KEY REASON")
        return f"<!-- by hand: {found['key']} -->\n{kept[found['key']]}<!-- /by hand -->"

    text = BLOCK.sub(block, text)
    return FIGURE.sub(lambda found: f"<!-- = {found['address']} -->{figure(found['address'])}<!-- / -->", text)


def figure(address: str) -> str:
    """The figure at an address, as a page shows it."""
    file, key, path = (part.strip() for part in address.split("|"))
    wants_spread, wants_number = path.endswith("±"), path.endswith(" n")
    path, _, other = path.removesuffix("±").removesuffix(" n").strip().partition(" - ")
    values = find(file, key, path)
    if wants_number:
        return str(len(values))
    mean = statistics.fmean(values)
    if other:
        taken = find("paper", key, path, file) if other == "paper" else find(file, other, path)
        difference = mean - statistics.fmean(taken)
        text, both = f"{'-' if difference < 0 else '+'}{shown(abs(difference), path)}", [values, taken]
    else:
        text, both = shown(mean, path), [values]
    # Of a difference: that of its two ends together. One run has none.
    spreads = [statistics.stdev(one) for one in both if len(one) > 1]
    return f"{text} ± {shown(math.hypot(*spreads), path)}" if wants_spread and spreads else text


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
        for system in read_systems(ROOT / "configs" / "paper"):
            yield f"{system.dataset}, {system.name}", {"ideal": {"cosine": system.paper}, **system.paper}
    elif (RESULTS / f"{file}.json").exists():
        for record in json.loads((RESULTS / f"{file}.json").read_text(encoding="utf-8")):
            name = record.get("system") or f"{record['dataset']}, {record['method']}, {record['parts']}"
            yield name, record
    else:
        for record in read_lines(RESULTS / f"{file}.jsonl"):
            yield record["key"], record


def shown(value: float, path: str) -> str:
    """A share with three digits, an amount with as many as it is worth."""
    if value <= 1 and not path.endswith(("seconds", "_mb", "_size", "pairs")):
        return f"{value:.3f}".removeprefix("0")
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


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


def keep(key: str, reason: str) -> None:
    """Keep the block of a key as it stands in its page."""
    page, text = next(
        (path, found["text"])
        for path in PAGES
        for found in BLOCK.finditer(path.read_text(encoding="utf-8"))
        if found["key"] == key
    )
    lines = [line for line in read_lines(BY_HAND) if line["key"] != key] if BY_HAND.exists() else []
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    about = {"page": str(page.relative_to(DOCS)), "version": __version__, "commit": None, "date": today}
    lines.append({"key": key, **about, "reason": reason, "text": text})
    BY_HAND.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


def main() -> None:
    """Fill in all pages, list what names no record, or keep a block."""
    if sys.argv[1:2] == ["--list"]:
        sys.stdout.write("".join(f"{line}\n" for path in PAGES for line in untraced(path)))
    elif sys.argv[1:2] == ["--keep"]:
        keep(*sys.argv[2:4])
    else:
        for path in PAGES:
            path.write_text(fill(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
