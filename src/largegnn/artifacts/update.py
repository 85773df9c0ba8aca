"""What an update added to a finished run, how the new entities got their vectors, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["UpdateCost", "UpdatePairs", "UpdateReport"]

Sides = tuple[int, int]


@dataclass(frozen=True)
class UpdateCost:
    """How many of `links` valid links are found with trained rows, and with a row as if one end had come later.

    The ends that are hidden lie on `hidden_sides`; `candidates` links compete.
    """

    hidden_sides: tuple[str, ...]
    candidates: int
    links: int
    found_trained: int
    found_added: int

    @property
    def ratio(self) -> float | None:
        """How often an added entity is found, against a trained one."""
        return self.found_added / self.found_trained if self.found_trained else None


@dataclass(frozen=True)
class UpdatePairs:
    """What became of the new entities: accepted pairs that touch one, and test links that do."""

    pairs: int
    pairs_both_new: int
    test_links: int
    test_links_found: int


@dataclass(frozen=True)
class UpdateReport:
    """What was added to `run`, (source, target); entities training did not see, by how they came to their rows."""

    run: str
    entities: Sides
    relations: Sides
    triples: Sides
    seeds: int
    embedded: Sides
    beside_known: Sides
    not_reached: Sides
    known_neighbors: float
    formerly_isolated: int
    cost: UpdateCost | None
    pairs: UpdatePairs | None = None
