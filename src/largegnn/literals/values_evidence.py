"""Align predicates by their values, and turn agreement and contradiction of values into evidence for each pair.

In: candidate edges, the literals of both sides with their kinds, and reference matches. Out: two columns: `agreement`,
the evidence of equal values, and `contradiction`, the evidence of different values, as natural logarithms of odds
(Fellegi and Sunter, 1969); and the duplicates within a side.
The idea: for every two predicates of the same kind, count how often the values of reference matches agree and how often
the values of random pairs agree. Predicates whose values agree about as often by chance give no evidence. Only
predicates with about one value per entity are used.
Cost: the edges times the aligned predicates, at most 30 pairs of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import FloatArray, IntArray, Literals
from largegnn.literals.comparators import COMPARATORS, Comparator, Values
from largegnn.literals.profiles import PredicateProfile
from largegnn.literals.texts import EntityTexts
from largegnn.machine.pieces import map_pieces, pieces

__all__ = [
    "Correspondence",
    "SideValues",
    "find_duplicates",
    "learn_correspondences",
    "value_evidence",
]

_MIN_REFERENCE_PAIRS = 20
_MAX_REFERENCE_PAIRS = 5_000
_MAX_CORRESPONDENCES = 30
_MIN_SIMILARITY = 0.95  # of two values that agree
_MIN_RATIO = 2.0  # of the agreement of reference pairs to the agreement by chance
_MIN_FUNCTIONAL = 0.8  # entities with a value of a predicate, divided by its values
_MAX_LOG_ODDS = 6.0
_PIECE_EDGES = 1 << 17
_MAX_NAMESAKES = 5  # entities of one name that may be duplicates of each other
_WORTH_SENDING = 1 << 19  # edges; fewer take this machine a second or two, and the start of a worker takes as long


@dataclass(frozen=True, eq=False)
class SideValues:
    """The values of one side by predicate.

    `row_of[predicate]` (n,) holds for each entity the row of its value in `literals`, -1 for none; `first` is the id of
    the side's first entity.
    """

    literals: Literals
    row_of: dict[int, IntArray]
    profiles: dict[int, PredicateProfile]
    first: int

    @classmethod
    def of(
        cls,
        literals: Literals,
        rows: slice,
        profiles: dict[int, PredicateProfile],
        first: int,
        count: int,
    ) -> SideValues:
        """Take the first value of each of the `count` entities, for predicates with about one value per entity."""
        entities, predicates = literals.entities[rows], literals.predicates[rows]
        row_of: dict[int, IntArray] = {}
        for predicate, profile in profiles.items():
            if profile.functional < _MIN_FUNCTIONAL:
                continue
            # In reverse, because a later assignment overwrites an earlier one: the first value of an entity stays.
            uses = np.flatnonzero(predicates == predicate)[::-1]
            row_of_entity = np.full(count, -1, dtype=np.int64)
            row_of_entity[entities[uses] - first] = uses + rows.start
            row_of[predicate] = row_of_entity
        return cls(literals, row_of, profiles, first)

    def read(self, predicate: int, comparator: Comparator) -> tuple[Values, IntArray]:
        """All values of a predicate as the comparator reads them, and the index of each entity's value (-1: none)."""
        has_value = self.row_of[predicate] >= 0
        values = comparator.read(self.literals.values.take(self.row_of[predicate][has_value]))
        return values, np.where(has_value, np.cumsum(has_value) - 1, -1)


@dataclass(frozen=True)
class Correspondence:
    """Two aligned predicates, and how often their values agree for `num_sure` reference pairs and by chance."""

    source_predicate: str
    target_predicate: str
    kind: str
    num_sure: int
    agree_right: float
    agree_chance: float

    @property
    def odds_for(self) -> float:
        """The log-odds that equal values add for a pair."""
        return float(np.clip(np.log(self.agree_right / self.agree_chance), 0.0, _MAX_LOG_ODDS))

    @property
    def odds_against(self) -> float:
        """The log-odds that different values add against a pair."""
        return float(np.clip(np.log((1 - self.agree_chance) / (1 - self.agree_right)), 0.0, _MAX_LOG_ODDS))


_ScoredCorrespondence = tuple[float, Correspondence, tuple[int, int]]  # score, correspondence, its predicates


def learn_correspondences(
    source: SideValues, target: SideValues, reference_pairs: IntArray, seed: int = 0
) -> tuple[list[Correspondence], list[tuple[int, int]]]:
    """Align the predicates whose values agree far more often for the reference pairs (s, 2) than for random pairs.

    Returns the most informative correspondences, and for each of them the numbers of its two predicates.
    """
    rng = np.random.default_rng(seed)
    if len(reference_pairs) < _MIN_REFERENCE_PAIRS:
        return [], []
    pairs = reference_pairs
    if len(pairs) > _MAX_REFERENCE_PAIRS:
        pairs = pairs[np.sort(rng.choice(len(pairs), _MAX_REFERENCE_PAIRS, replace=False))]
    random_pairs = np.stack([pairs[:, 0], rng.permutation(pairs[:, 1])], axis=1)
    scored: list[_ScoredCorrespondence] = []
    for left, right, kind in _comparable_predicates(source, target):
        _, agree = _agreements(source, target, left, right, pairs)
        _, agree_by_chance = _agreements(source, target, left, right, random_pairs)
        count = len(agree)
        if count < _MIN_REFERENCE_PAIRS:
            continue
        # Half an agreement and half a disagreement are added, so that no share is 0 or 1.
        agree_right = (float(agree.sum()) + 0.5) / (count + 1)
        agree_chance = (float(agree_by_chance.sum()) + 0.5) / (len(agree_by_chance) + 1)
        if agree_right < _MIN_RATIO * agree_chance:
            continue
        correspondence = Correspondence(
            source.profiles[left].predicate, target.profiles[right].predicate, kind, count, agree_right, agree_chance
        )
        scored.append((count * (correspondence.odds_for * agree_right), correspondence, (left, right)))
    scored.sort(key=lambda entry: (-entry[0], entry[2]))
    best = _one_to_one(scored)[:_MAX_CORRESPONDENCES]
    return [correspondence for _, correspondence, _ in best], [predicates for _, _, predicates in best]


def value_evidence(
    source: SideValues,
    target: SideValues,
    correspondences: list[Correspondence],
    predicate_pairs: list[tuple[int, int]],
    sources: IntArray,
    targets: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Agreement and contradiction of each edge (e,), summed over the correspondences."""
    agreement = np.zeros(len(sources), dtype=np.float32)
    contradiction = np.zeros(len(sources), dtype=np.float32)
    send = len(sources) >= _WORTH_SENDING
    for correspondence, (left, right) in zip(correspondences, predicate_pairs, strict=True):
        comparator = COMPARATORS[correspondence.kind]
        left_values, left_index = source.read(left, comparator)
        right_values, right_index = target.read(right, comparator)
        edge_pieces = (
            (start, left_index[sources[start:end] - source.first], right_index[targets[start:end] - target.first])
            for start, end in pieces(len(sources), _PIECE_EDGES)
        )
        results = map_pieces(compare_piece, edge_pieces, comparator, left_values, right_values, send=send)
        for edges, similarities in results:
            agree = similarities >= _MIN_SIMILARITY
            agreement[edges[agree]] += correspondence.odds_for
            contradiction[edges[~agree]] += correspondence.odds_against
    return agreement, contradiction


def compare_piece(
    start: int, left: IntArray, right: IntArray, comparator: Comparator, left_values: Values, right_values: Values
) -> tuple[IntArray, FloatArray]:
    """Compare the values at the ends of a piece of the edges, which begins with the edge `start`.

    `left` and `right` are the indices of the values, -1 for none. Returns the edges with a value at both ends, and the
    similarity of the two values.
    """
    has_both = np.flatnonzero((left >= 0) & (right >= 0))
    similarities = comparator.compare(left_values[left[has_both]], right_values[right[has_both]])
    return start + has_both, np.asarray(similarities, dtype=np.float32)


def _comparable_predicates(source: SideValues, target: SideValues) -> list[tuple[int, int, str]]:
    """The pairs of predicates of the same kind, and the kind."""
    return [
        (left, right, source.profiles[left].kind)
        for left in source.row_of
        for right in target.row_of
        if source.profiles[left].kind == target.profiles[right].kind
    ]


def _agreements(
    source: SideValues, target: SideValues, left: int, right: int, pairs: IntArray
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """The rows of the pairs whose ends both have a value of these predicates, and whether the two values agree."""
    left_rows = source.row_of[left][pairs[:, 0] - source.first]
    right_rows = target.row_of[right][pairs[:, 1] - target.first]
    has_both = np.flatnonzero((left_rows >= 0) & (right_rows >= 0))
    left_texts = source.literals.values.take(left_rows[has_both])
    right_texts = target.literals.values.take(right_rows[has_both])
    return has_both, COMPARATORS[source.profiles[left].kind](left_texts, right_texts) >= _MIN_SIMILARITY


def _one_to_one(scored: list[_ScoredCorrespondence]) -> list[_ScoredCorrespondence]:
    """Select correspondences, best first, with each predicate in one only: no fact must be counted twice."""
    used_left, used_right = set[int](), set[int]()
    selected = []
    for entry in scored:
        left, right = entry[2]
        if left not in used_left and right not in used_right:
            used_left.add(left)
            used_right.add(right)
            selected.append(entry)
    return selected


def find_duplicates(texts: EntityTexts, values: SideValues) -> IntArray:
    """Find pairs (d, 2) of entities of one side that are probably the same, ascending, the smaller id first.

    The two entities share a name that few entities have, they differ in no value, and a value other than a name or
    their whole texts are equal. Cost: linear in the names; the pairs of equal names times the predicates.
    """
    pairs = _namesakes(texts)
    if not len(pairs):
        return pairs
    agreeing, differing = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs), dtype=np.int64)
    for predicate in values.row_of:
        if values.profiles[predicate].kind == "name":
            continue
        rows, agree = _agreements(values, values, predicate, predicate, pairs)
        agreeing[rows] += agree
        differing[rows] += ~agree
    document_of = dict(zip(texts.entities.tolist(), texts.documents, strict=True))
    has_same_text = np.array([document_of[left] == document_of[right] for left, right in pairs.tolist()])
    duplicates: IntArray = pairs[(differing == 0) & ((agreeing > 0) | has_same_text)]
    return duplicates


def _namesakes(texts: EntityTexts) -> IntArray:
    """The pairs (p, 2) of entities that share a name that few entities have, ascending."""
    owners_of: dict[str, list[int]] = {}
    for owner, name in zip(texts.name_owners.tolist(), texts.names, strict=True):
        owners_of.setdefault(name, []).append(owner)
    pairs = {
        (left, right)
        for owners in owners_of.values()
        if 1 < len(owners) <= _MAX_NAMESAKES
        for index, left in enumerate(owners)
        for right in owners[index + 1 :]
        if left != right
    }
    return np.array(sorted((min(pair), max(pair)) for pair in pairs), dtype=np.int64).reshape(-1, 2)
