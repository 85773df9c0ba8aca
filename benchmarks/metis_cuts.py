"""How many cuts should METIS try? By valid links: `metis_cuts.py FOLDER ... [--parts 5] [--page]`.

METIS tries several cuts of a small graph and keeps the lightest; how many was first chosen looking, among other things,
at the test links kept. Here train links are seeds, there are no test links and no landmarks: edge cut, valid links
kept in one part, and seconds, over several random seeds. Finished rows are lines of `docs/results/metis_cuts.jsonl`
and are not repeated. `--page` writes the table of docs/measurements/division.md.

    python benchmarks/metis_cuts.py data/EN_FR_15K_V1 data/EN_DE_15K_V1
    python benchmarks/metis_cuts.py data/ContEA_FR_EN --parts 10
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
from pathlib import Path
from typing import Any
from unittest import mock

from largegnn import api
from largegnn.division import metis, warm_up
from largegnn.paper.origin import origin_of
from largegnn.paper.pages import mean_text, put_table
from largegnn.paper.record_lines import add_line, read_lines
from largegnn.settings import PRESETS, Settings, resolve

DOCS = Path(__file__).parents[1] / "docs"
RECORDS = DOCS / "results" / "metis_cuts.jsonl"
CUTS = (1, 2, 4, 8, 16)


def measure(folder: Path, parts: int, cuts: int, repeats: int) -> dict[str, Any]:
    """What METIS cuts and keeps with this many cuts, one figure for each random seed."""
    loaded = api.load(folder).task
    task = dataclasses.replace(loaded, test_links=loaded.test_links[:0])
    figures: dict[str, Any] = {"set": folder.name, "parts": parts, "cuts": cuts}
    names = ("edge_cut", "valid_kept", "partition_seconds")
    with mock.patch.object(metis, "_CUTS_OF_SMALL_GRAPH", cuts):
        rows = []
        for seed in range(repeats):
            values = {"division.partitioner": "metis", "division.parts": parts, "landmarks.enabled": False}
            division = api.divide(task, {**values, "seed": seed})
            quality = division.quality
            rows.append((quality.edge_cut, quality.valid_kept, division.seconds["partition"]))
    return figures | {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def table(rows: list[dict[str, Any]]) -> str:
    """A row for each number of cuts."""
    lines = ["| set, parts | cuts tried | runs | edge cut | valid links kept | seconds |", "|---" * 6 + "|"]
    for row in rows:
        shares = " | ".join(mean_text(row[name]) for name in ("edge_cut", "valid_kept"))
        seconds = statistics.fmean(row["partition_seconds"])
        about = f"{row['set']}, {row['parts']} | {row['cuts']} | {len(row['edge_cut'])}"
        lines.append(f"| {about} | {shares} | {seconds:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, print what there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--parts", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=10, help="random seeds of each row")
    parser.add_argument("--json", type=Path, default=RECORDS)
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    rows = read_lines(options.json) if options.json.exists() else []
    if options.page:
        put_table(DOCS / "measurements" / "division.md", "cuts that are tried", table(rows))
        return
    warm_up()
    for folder in options.folders:
        for cuts in CUTS:
            key = f"{folder.name}, {cuts}"
            if key not in {row["key"] for row in rows}:
                settings = resolve(
                    Settings, PRESETS, values={"division": {"partitioner": "metis", "parts": options.parts}}
                )
                origin = origin_of(settings, [folder], protocol={"random_seeds": options.repeats})
                rows.append(add_line(options.json, key, origin, measure(folder, options.parts, cuts, options.repeats)))
    print(table(rows))


if __name__ == "__main__":
    main()
