"""How long does each stage take, and what do settings do at a million? `speed_page.py`: docs/measurements/training.md.

The columns of the first table are records of docs/results/speed.jsonl and growth.jsonl; one that is not there has no
column. The rows of the second are those of million_choices.jsonl, of the third those of step.jsonl made on a GPU.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from largegnn.paper.pages import put_table, share_text
from largegnn.paper.record_lines import read_lines

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "measurements" / "training.md"
COLUMNS = {
    "15K, two cores": "EN_FR_15K_V1, two cores",
    "ContEA_FR_EN, two cores": "ContEA_FR_EN, two cores",
    "one million": "DEBIAN_FILES_1M, files to pairs, warm caches",
    "empty caches": "DEBIAN_FILES_1M, files to pairs, 25 epochs",
    "ten epochs, empty caches": "DEBIAN_FILES_1M, files to pairs, train and valid links as seeds",
    "ten epochs, train links alone": "DEBIAN_FILES_1M, files to pairs, all processors",
    "before": "DEBIAN_FILES_1M, files to pairs, rules by all processors",
    "ten million a side, two cores": "generated, 10,000,000 entities a side, two cores",
    "ten million a side": "growth, 10,000,000 entities a side, NVIDIA H200, 10 cores, up to search",
}
STAGES = ("load", "literals", "merge", "partition", "landmarks", "subgraphs", "train", "integrate", "search", "match")


def table() -> str:
    """A row for each stage, a column for each record there is."""
    lines = [line for name in ("speed", "growth") for line in read_lines(DOCS / "results" / f"{name}.jsonl")]
    known = {line["key"]: line for line in lines}
    shown = {title: known[key] for title, key in COLUMNS.items() if key in known}
    rows = [f"| stage | {' | '.join(shown)} |", "|---" * (len(shown) + 1) + "|"]
    for stage in (*STAGES, "evaluate"):
        cells = [_seconds(line["stage_seconds"].get(stage, line.get(f"{stage}_seconds"))) for line in shown.values()]
        rows.append(f"| {stage} | {' | '.join(cells)} |")
    rows.append(f"| GB of memory, at most | {' | '.join(_peak(line) for line in shown.values())} |")
    return "\n".join(rows)


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}" if value < 10 else f"{value:,.0f}"


def _peak(line: dict[str, object]) -> str:
    peaks = line.get("stage_peak_mb")
    peak = max(peaks.values()) if isinstance(peaks, dict) else line["peak_mb"]
    assert isinstance(peak, int | float)
    return f"{peak / 1000:.1f}"


def choices() -> str:
    """A row for each setting that was tried at a million entities, by the valid links."""
    lines = read_lines(DOCS / "results" / "million_choices.jsonl")
    rows = ["| setting | cosine H@1 | CSLS H@1 |", "|---|---|---|"]
    for line in lines:
        changed = ", ".join(f"`{part}`" for part in line["key"].split(", ")[1:])
        found = line["valid_hits@1"]
        rows.append(f"| {changed} | {share_text(found['cosine'])} | {share_text(found['csls'])} |")
    return "\n".join(rows)


def steps() -> str:
    """A row for each kind of training step on a GPU."""
    rows = ["| step | ms | ms, first epoch | GPU MB |", "|---|---|---|---|"]
    for line in read_lines(DOCS / "results" / "step.jsonl"):
        if line["key"].startswith("drawn, "):
            name = line["key"].removeprefix("drawn, ")
            rows.append(f"| {name} | {line['ms']:.1f} | {line['first_ms']:.1f} | {line['gpu_mb']:,.0f} |")
    return "\n".join(rows)


def main() -> None:
    """Write the tables between their marks."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    put_table(PAGE, "speed by stage", table())
    put_table(PAGE, "choices at a million", choices())
    put_table(PAGE, "steps at a million", steps())


if __name__ == "__main__":
    main()
