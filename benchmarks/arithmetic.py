"""What a hundred million entities and a billion would take: `arithmetic.py` writes docs/measurements/cluster.md.

Bytes follow from what is held and sent for each entity and triple, seconds from the largest measured pair (the record
of ten million entities a side in docs/results/growth.jsonl): linear in the entities, the exact search in their square,
training and search shared out among GPUs, the division on one machine. Nothing here was measured at these sizes.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from largegnn.paper.pages import put_table
from largegnn.paper.record_lines import read_lines
from largegnn.paper.tables import markdown_table

DOCS = Path(__file__).parents[1] / "docs"
LARGEST = "growth, 10,000,000 entities a side, NVIDIA H200, 10 cores, up to search"
DIVISION = ("merge", "partition", "landmarks", "subgraphs")
DIM, NEIGHBORS, TRIPLES = 64, 12, 10  # numbers in a row, candidates and triples for each entity
NETWORK = 10e9 / 8  # bytes a second


@dataclass(frozen=True)
class Bytes:
    """What n entities take on M machines; the terms are those of the page's first table."""

    entities: float
    machines: int

    @property
    def table(self) -> float:
        """Rows and optimiser state of all entities."""
        return 8 * self.entities * DIM

    @property
    def network(self) -> float:
        """Sent in an epoch by each machine: rows to visits and back."""
        return 20 * self.entities * DIM / self.machines if self.machines > 1 else 0

    @property
    def network_here(self) -> float:
        """The same for the machine with the command, which also gets a copy of the table."""
        return self.network + self.table if self.machines > 1 else 0

    @property
    def vectors(self) -> float:
        """Six layers of four bytes a number, on disk."""
        return 24 * self.entities * DIM

    @property
    def integrate(self) -> float:
        """The structure of the whole graph."""
        return 120 * TRIPLES * self.entities

    @property
    def match(self) -> float:
        """All candidates, and both graphs."""
        return (60 * NEIGHBORS + 40 * TRIPLES) * self.entities


def memory_table() -> str:
    """Bytes at sizes nobody has measured."""
    head = ("entities", "machines", "table on each", "table here (file)", "network an epoch, each", "here")
    rows = []
    for name, entities, counts in (("100 million", 1e8, (1, 4, 16)), ("a billion", 1e9, (16,))):
        for number in counts:
            need = Bytes(entities, number)
            found = (need.table / number, need.table, need.network, need.network_here)
            rows.append([name, str(number), *map(size_text, (*found, need.vectors, need.integrate, need.match))])
    return markdown_table((*head, "vectors on disk", "`integrate` here", "`match` here"), rows)


def seconds_table() -> str:
    """Seconds at these sizes, from the largest that was measured."""
    (record,) = (line for line in read_lines(DOCS / "results" / "growth.jsonl") if line["key"] == LARGEST)
    stages, measured = record["stage_seconds"], float(record["entities"])
    division = sum(stages[name] for name in DIVISION)
    rows = []
    for name, entities, counts in (
        ("20 million, measured", measured, (1,)),
        ("100 million", 1e8, (1, 4, 16)),
        ("a billion", 1e9, (16,)),
    ):
        times = entities / measured
        for number in counts:
            network = Bytes(entities, number).network_here / NETWORK
            cells = (division * times, record["epoch_seconds"] * times / number, network)
            rows.append([name, str(number), *map(time_text, (*cells, stages["search"] * times**2 / number))])
    return markdown_table(("entities", "GPUs", "division", "an epoch", "its network", "exact search"), rows)


def size_text(value: float) -> str:
    """Gigabytes with two digits, terabytes from a thousand on."""
    if value == 0:
        return "none"
    for unit, name in ((1e12, "TB"), (1e9, "GB")):
        if value >= unit:
            return f"{value / unit:,.{0 if value >= 10 * unit else 1}f} {name}"
    raise ValueError(value)


def time_text(seconds: float) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if seconds == 0:
        return "none"
    for unit, name in ((7200, "h"), (120, "min")):
        if seconds >= unit:
            return f"{seconds / (unit / 2):.0f} {name}"
    return f"{seconds:.0f} s"


def main() -> None:
    """Both tables."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    page = DOCS / "measurements" / "cluster.md"
    put_table(page, "bytes by arithmetic", memory_table())
    put_table(page, "seconds by arithmetic", seconds_table())


if __name__ == "__main__":
    main()
