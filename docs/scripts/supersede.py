"""Records that are replaced: `supersede.py FILE KEY REASON` moves them to `docs/results/superseded`; none is deleted.

FILE is a file of lines in `docs/results` without its ending, KEY the key of a record (`*` stands for anything), REASON
why they are replaced. Their benchmark then makes them anew. Records of whole systems: `largegnn reproduce --supersede`.

    python docs/scripts/supersede.py few_seeds 'EN_FR_15K_V1*' 'made again with version 0.2.0'
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from largegnn.paper.record_lines import supersede_lines

RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    """Move what fits, and say how many."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("key")
    parser.add_argument("reason")
    arguments = parser.parse_args()
    moved = supersede_lines(RESULTS / f"{arguments.file}.jsonl", arguments.key, arguments.reason)
    sys.stdout.write(f"{moved} records moved to {RESULTS.name}/superseded\n")


if __name__ == "__main__":
    main()
