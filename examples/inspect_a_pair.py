"""Generate a small pair of graphs, write it as N-Triples, and inspect it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import largegnn


def main() -> None:
    """Generate and inspect."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "pair"
        largegnn.generate("small", seed=1, folder=folder, form="nt", compression="gzip")
        inspection = largegnn.inspect(
            folder / "source.nt.gz",
            folder / "target.nt.gz",
            folder / "train_links.nt.gz",
        )
    near = inspection.seeds.within_two_hops
    print(f"{inspection.seeds.train_links:,} seeds; {near:.0%} of the entities lie within two hops of one")
    print(f"a sensible number of subgraphs: {inspection.size.num_parts}")


if __name__ == "__main__":
    main()
