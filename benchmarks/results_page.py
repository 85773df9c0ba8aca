"""The tables of `docs/measurements/results.md` from the records in `docs/results`: `results_page.py [--check]`.

What stands between `<!-- table:NAME -->` and `<!-- /table -->` is made anew; the text around it is written by hand.
With `--check` nothing is written, and the exit status says whether page and records agree.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from largegnn.paper.claims import claims_section
from largegnn.paper.departures import departures_section
from largegnn.paper.records import read_results
from largegnn.paper.scorings import scoring_section
from largegnn.paper.subgraph_records import read_subgraphs, subgraph_section
from largegnn.paper.systems import read_systems
from largegnn.paper.tables import fill_page, page_sections

ROOT = Path(__file__).parents[1]


def render(page: Path, results: Path, configs: Path) -> str:
    """The page as it has to be."""
    records = read_results(results)
    systems = read_systems(configs)
    sections = page_sections(systems, records)
    sections["claims"] = claims_section(systems, records)
    sections["departures"] = departures_section(systems, records)
    sections["scorings"] = scoring_section(records)
    sections["subgraphs"] = subgraph_section(read_subgraphs(results / "subgraphs.jsonl"))
    return fill_page(page.read_text(encoding="utf-8"), sections)


def main() -> None:
    """Write the page, or say whether it is right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    page = ROOT / "docs" / "measurements" / "results.md"
    text = render(page, ROOT / "docs" / "results", ROOT / "configs" / "paper")
    if not arguments.check:
        page.write_text(text, encoding="utf-8")
    elif text != page.read_text(encoding="utf-8"):
        sys.exit("docs/measurements/results.md and docs/results differ: run `make docs`")


if __name__ == "__main__":
    main()
