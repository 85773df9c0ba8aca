"""How long does each stage take? `speed_page.py`: the table of docs/measurements/training.md.

Its columns are records of docs/results/speed.jsonl and growth.jsonl; one that is not there has no column.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from largegnn.paper.origin import read_lines

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "measurements" / "training.md"
COLUMNS = {
    "15K, two cores": "EN_FR_15K_V1, two cores",
    "ContEA_FR_EN, two cores": "ContEA_FR_EN, two cores",
    "one million": "DEBIAN_FILES_1M, files to pairs, train and valid links as seeds",
    "train links alone": "DEBIAN_FILES_1M, files to pairs, all processors",
    "before": "DEBIAN_FILES_1M, files to pairs, rules by all processors",
    "long before": "DEBIAN_FILES_1M, files to pairs, rules by one processor",
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


def main() -> None:
    """Write the table between its marks."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    before, _, rest = PAGE.read_text(encoding="utf-8").partition("<!-- speed by stage -->")
    after = rest.partition("<!-- /speed by stage -->")[2]
    text = f"{before}<!-- speed by stage -->\n{table()}\n<!-- /speed by stage -->{after}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
