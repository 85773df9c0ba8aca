"""Prepare the literals of one graph for comparison: profiles of its predicates, and texts and values of its entities.

In: the task, the names, the literals, the settings. Out: a `LiteralSide`, and, with a text encoder, one vector for the
text of each entity of both sides.
Cost: linear in the literals and the triples.
"""

from __future__ import annotations

from largegnn.artifacts import AlignmentTask, FloatArray, Literals, TaskNames
from largegnn.literals.profiles import PredicateProfile, profile_predicates
from largegnn.literals.text_encoders import encode_texts
from largegnn.literals.texts import identifier_names, texts_of_side, written_texts
from largegnn.literals.values_evidence import SideValues
from largegnn.settings import CompareSettings

__all__ = ["LiteralSide", "encode_sides"]


class LiteralSide:
    """The names and values of one graph: `side` 0 is the source, 1 the target."""

    def __init__(
        self, task: AlignmentTask, names: TaskNames, literals: Literals, side: int, compare: CompareSettings, seed: int
    ) -> None:
        if side == 0:
            first, count, triples = 0, task.num_source_entities, task.triples[: task.num_source_triples]
        else:
            first, count = task.num_source_entities, task.num_target_entities
            triples = task.triples[task.num_source_triples :]
        self._literals = literals
        self._rows = literals.rows_of_sides(task.num_source_entities)[side]
        self._profiles = profile_predicates(literals, self._rows, count, seed)
        self._identifiers: dict[int, str] = {}
        if compare.identifiers != "off":
            self._identifiers = identifier_names(names.entities, first, count, seed)
        self.texts = texts_of_side(literals, self._rows, self._profiles, self._identifiers, triples)
        self.values = SideValues.of(literals, self._rows, self._profiles, first, count)

    @property
    def has_identifiers(self) -> bool:
        """Whether names were taken from the IRIs of this side."""
        return bool(self._identifiers)

    @property
    def profiles(self) -> tuple[PredicateProfile, ...]:
        """The profile of each predicate of this side."""
        return tuple(self._profiles.values())

    def written(self) -> list[str]:
        """For each entity that has a text, all its values as they were written."""
        return written_texts(self._literals, self._rows, self._profiles, self._identifiers, self.texts.entities)


def encode_sides(
    source: LiteralSide, target: LiteralSide, compare: CompareSettings
) -> tuple[FloatArray, FloatArray] | None:
    """One vector for the text of each entity of either side; None without a text encoder."""
    if compare.text_encoder == "off":
        return None
    written = [source.written(), target.written()]
    # Both sides are encoded in one call: an encoder may take long to load, or need all texts.
    vectors = encode_texts(compare.text_encoder, written[0] + written[1], compare.text_model)
    return vectors[: len(written[0])], vectors[len(written[0]) :]
