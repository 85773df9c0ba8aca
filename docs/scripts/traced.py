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
block, measure again and write a record. Where that cannot be, `traced.py --adopt REASON [PAGE ...]` puts what has no
record into blocks and keeps all blocks as they stand, with the reason; what they replace moves to `superseded`.
"""

from __future__ import annotations

import datetime
import itertools
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
    re.compile(r"<!-- (?!by hand)([a-z][a-z ]*?)(?::\S+)? -->.*?<!-- /\1 -->", re.DOTALL),
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
            raise KeyError(f"no block {found['key']} in {BY_HAND.name}: keep it with --adopt REASON")
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


def adopt(reason: str, pages: list[Path]) -> None:
    """Put what names no record into blocks, and keep all blocks of these pages as they stand."""
    before = read_lines(BY_HAND) if BY_HAND.exists() else []
    kept, older = {line["key"]: line for line in before}, []
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    for page in pages:
        name = str(page.relative_to(DOCS)) if page.is_relative_to(DOCS) else f"../{page.name}"
        text = in_blocks(page, set(kept))
        page.write_text(text, encoding="utf-8")
        own = {found["key"]: found["text"] for found in BLOCK.finditer(text)}
        older += [line for line in before if line["page"] == name and line["text"] != own.get(line["key"])]
        for gone in [key for key, line in kept.items() if line["page"] == name and key not in own]:
            del kept[gone]
        for key, block in own.items():
            if key not in kept or kept[key]["text"] != block:
                about = {"page": name, "version": __version__, "commit": None, "date": today, "reason": reason}
                kept[key] = {"key": key, **about, "text": block}
    write_lines(BY_HAND, list(kept.values()))
    if older:
        superseded = RESULTS / "superseded" / BY_HAND.name
        superseded.parent.mkdir(exist_ok=True)
        about = {"superseded": today, "superseded_for": reason}
        known = read_lines(superseded) if superseded.exists() else []
        write_lines(superseded, [*known, *({**line, **about} for line in older)])


def in_blocks(page: Path, taken: set[str]) -> str:
    """A page in which every stretch with figures that name no record stands in a block, a section at most."""
    text = page.read_text(encoding="utf-8")
    lines, title = text.splitlines(keepends=True), "page"
    wanting = {int(line.split(":")[1]) - 1 for line in untraced(page)}
    # Lines that belong to a block or a table already, and headings, end a stretch.
    fixed = {number for number, line in enumerate(lines) if re.match(r"#+ ", line)}
    for covered in (BLOCK, COVERED[2]):
        for found in covered.finditer(text):
            first = text.count("\n", 0, found.start())
            fixed |= set(range(first, first + found[0].count("\n") + 1))
    made, start = [], 0
    for number in [*sorted(fixed), len(lines)]:
        own = [line for line in wanting if start <= line < number]
        if own:
            first, last = min(own), max(own)
            while first > start and lines[first - 1].strip():
                first -= 1
            while last + 1 < number and lines[last + 1].strip():
                last += 1
            slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
            key = next(name for name in key_names(f"{page.stem}-{slug}".lower()) if name not in taken)
            taken.add(key)
            block = [f"<!-- by hand: {key} -->\n", *lines[first : last + 1], "<!-- /by hand -->\n"]
            made += [*lines[start:first], *block, *lines[last + 1 : number]]
        else:
            made += lines[start:number]
        if number < len(lines):
            made.append(lines[number])
            title = lines[number].strip("# \n") if re.match(r"#+ ", lines[number]) else title
        start = number + 1
    return "".join(made)


def key_names(name: str) -> Iterator[str]:
    """The name, then the name with a number."""
    yield name
    yield from (f"{name}-{number}" for number in itertools.count(2))


def write_lines(file: Path, lines: list[dict[str, Any]]) -> None:
    """Records, one a line."""
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


def main() -> None:
    """Fill in all pages, list what names no record, or keep what stands there."""
    if sys.argv[1:2] == ["--list"]:
        sys.stdout.write("".join(f"{line}\n" for path in PAGES for line in untraced(path)))
    elif sys.argv[1:2] == ["--adopt"] and len(sys.argv) > 2:
        adopt(sys.argv[2], [Path(name).resolve() for name in sys.argv[3:]] or PAGES)
    else:
        for path in PAGES:
            path.write_text(fill(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
