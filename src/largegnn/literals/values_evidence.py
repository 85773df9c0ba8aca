"""Weigh agreement and contradiction of values by aligned predicates, which are learnt, not configured.

In: candidate edges, the literals of both sides with their kinds, and reference matches. Out: two columns: `agreement`,
the evidence of equal values, and `contradiction`, that of different values, in natural logarithms of odds (Fellegi and
Sunter, 1969); and the duplicates within a side.
The idea: for every pair of predicates of the same kind, count how often the values of reference matches agree and how
often those of random pairs do. A predicate pair that agrees no more often than by chance is no evidence. Rare values
seldom agree by chance, so they count more. Only predicates with about one value per entity can contradict.
Each value is read once and compared often (see `comparators`).
Cost: the edges times the aligned predicate pairs, of which the most informative are kept.
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

_FEWEST_SURE = 20
_MOST_SURE = 5_000
_MOST_CORRESPONDENCES = 30
_AGREES = 0.95  # similarity from which two values are the same
_LEAST_RATIO = 2.0  # how much more often than by chance values must agree to be evidence
_FUNCTIONAL = 0.8
_MOST_ODDS = 6.0
_EDGES = 1 << 17  # of a piece
_MOST_NAMESAKES = 5  # entities of one name of which any two may be the same
_WORTH_SENDING = 1 << 19  # edges; fewer are compared here in a second or two, and the start of a worker takes as long


@dataclass(frozen=True, eq=False)
class SideValues:
    """The values of one side by predicate: for each predicate, one row per entity (-1 for none) into the literals."""

    literals: Literals
    row_of: dict[int, IntArray]
    profiles: dict[int, PredicateProfile]
    first: int

    @classmethod
    def of(
        cls,
        literals: Literals,
        inside: slice,
        profiles: dict[int, PredicateProfile],
        first: int,
        count: int,
    ) -> SideValues:
        """The first value of each entity, for the predicates that have about one value per entity."""
        entities, predicates = literals.entities[inside], literals.predicates[inside]
        rows: dict[int, IntArray] = {}
        for predicate, profile in profiles.items():
            if profile.functional < _FUNCTIONAL:
                continue
            here = np.flatnonzero(predicates == predicate)
            table = np.full(count, -1, dtype=np.int64)
            table[entities[here[::-1]] - first] = here[::-1] + inside.start
            rows[predicate] = table
        return cls(literals, rows, profiles, first)

    def read(self, predicate: int, comparator: Comparator) -> tuple[Values, IntArray]:
        """All values of a predicate as a comparator reads them, and the place of each entity's, -1 for none."""
        has_value = self.row_of[predicate] >= 0
        read = comparator.read(self.literals.values.take(self.row_of[predicate][has_value]))
        return read, np.where(has_value, np.cumsum(has_value) - 1, -1)


@dataclass(frozen=True)
class Correspondence:
    """Two aligned predicates: how often their values agree for right pairs, and by chance."""

    source_predicate: str
    target_predicate: str
    kind: str
    num_sure: int
    agree_right: float
    agree_chance: float

    @property
    def odds_for(self) -> float:
        """The evidence of equal values for a pair, as a logarithm."""
        return float(np.clip(np.log(self.agree_right / self.agree_chance), 0.0, _MOST_ODDS))

    @property
    def odds_against(self) -> float:
        """The evidence of different values against a pair, as a logarithm."""
        return float(np.clip(np.log((1 - self.agree_chance) / (1 - self.agree_right)), 0.0, _MOST_ODDS))


def learn_correspondences(
    source: SideValues, target: SideValues, sure: IntArray, seed: int = 0
) -> tuple[list[Correspondence], list[tuple[int, int]]]:
    """The predicate pairs whose values agree far more often for the `sure` pairs (s, 2) than by chance."""
    rng = np.random.default_rng(seed)
    if len(sure) < _FEWEST_SURE:
        return [], []
    chosen = sure if len(sure) <= _MOST_SURE else sure[np.sort(rng.choice(len(sure), _MOST_SURE, replace=False))]
    shuffled = np.stack([chosen[:, 0], rng.permutation(chosen[:, 1])], axis=1)
    found: list[tuple[float, Correspondence, tuple[int, int]]] = []
    for left, right, kind in _possible(source, target):
        together = [_agreements(source, target, left, right, pairs)[1] for pairs in (chosen, shuffled)]
        count = len(together[0])
        if count < _FEWEST_SURE:
            continue
        # Half an agreement and half a disagreement more: nothing is certain.
        agree_right = (float(together[0].sum()) + 0.5) / (count + 1)
        agree_chance = (float(together[1].sum()) + 0.5) / (len(together[1]) + 1)
        if agree_right < _LEAST_RATIO * agree_chance:
            continue
        names = source.profiles[left].predicate, target.profiles[right].predicate
        one = Correspondence(*names, kind, count, agree_right, agree_chance)
        found.append((count * (one.odds_for * agree_right), one, (left, right)))
    found.sort(key=lambda entry: (-entry[0], entry[2]))
    best = _one_each(found)[:_MOST_CORRESPONDENCES]
    return [one for _, one, _ in best], [numbers for _, _, numbers in best]


def value_evidence(
    source: SideValues,
    target: SideValues,
    correspondences: list[Correspondence],
    numbers: list[tuple[int, int]],
    sources: IntArray,
    targets: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Agreement and contradiction of each edge (e,)."""
    agreement, contradiction = (np.zeros(len(sources), dtype=np.float32) for _ in range(2))
    for one, (left, right) in zip(correspondences, numbers, strict=True):
        chosen = COMPARATORS[one.kind]
        left_values, left_place = source.read(left, chosen)
        right_values, right_place = target.read(right, chosen)
        some = (
            (start, left_place[sources[start:end] - source.first], right_place[targets[start:end] - target.first])
            for start, end in pieces(len(sources), _EDGES)
        )
        send = len(sources) >= _WORTH_SENDING
        for both, similar in map_pieces(compare_piece, some, chosen, left_values, right_values, send=send):
            agree = similar >= _AGREES
            agreement[both[agree]] += one.odds_for
            contradiction[both[~agree]] += one.odds_against
    return agreement, contradiction


def compare_piece(
    start: int, left: IntArray, right: IntArray, chosen: Comparator, left_values: Values, right_values: Values
) -> tuple[IntArray, FloatArray]:
    """The edges of a piece, counted from `start`, of which both ends have a value (-1: none), and its similarity."""
    both = np.flatnonzero((left >= 0) & (right >= 0))
    similar = chosen.compare(left_values[left[both]], right_values[right[both]])
    return start + both, np.asarray(similar, dtype=np.float32)


def _possible(source: SideValues, target: SideValues) -> list[tuple[int, int, str]]:
    """Pairs of predicates of the same kind."""
    return [
        (left, right, source.profiles[left].kind)
        for left in source.row_of
        for right in target.row_of
        if source.profiles[left].kind == target.profiles[right].kind
    ]


def _agreements(
    source: SideValues, target: SideValues, left: int, right: int, pairs: IntArray
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """The rows of the pairs of which both have a value of these predicates, and whether the values agree."""
    rows = source.row_of[left][pairs[:, 0] - source.first], target.row_of[right][pairs[:, 1] - target.first]
    both = np.flatnonzero((rows[0] >= 0) & (rows[1] >= 0))
    texts = source.literals.values.take(rows[0][both]), target.literals.values.take(rows[1][both])
    return both, COMPARATORS[source.profiles[left].kind](*texts) >= _AGREES


def _one_each(
    found: list[tuple[float, Correspondence, tuple[int, int]]],
) -> list[tuple[float, Correspondence, tuple[int, int]]]:
    """The best partner of each predicate, each used once: the same fact must not be counted twice."""
    used: tuple[set[int], set[int]] = (set(), set())
    chosen = []
    for entry in found:
        left, right = entry[2]
        if left not in used[0] and right not in used[1]:
            used[0].add(left)
            used[1].add(right)
            chosen.append(entry)
    return chosen


def find_duplicates(texts: EntityTexts, values: SideValues) -> IntArray:
    """Pairs (d, 2) of entities of one side that are probably the same, ascending, the smaller id first.

    They have the same name, which few others have, and differ in no value; pairs without a common predicate count if
    their texts are equal. Cost: linear in the names; the pairs of equal names times the predicates.
    """
    pairs = _namesakes(texts)
    if not len(pairs):
        return pairs
    agreeing, differing = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs), dtype=np.int64)
    for predicate in values.row_of:
        if values.profiles[predicate].kind == "name":
            continue
        both, is_same = _agreements(values, values, predicate, predicate, pairs)
        agreeing[both] += is_same
        differing[both] += ~is_same
    document_of = dict(zip(texts.entities.tolist(), texts.documents, strict=True))
    has_same_text = np.array([document_of[left] == document_of[right] for left, right in pairs.tolist()])
    found: IntArray = pairs[(differing == 0) & ((agreeing > 0) | has_same_text)]
    return found


def _namesakes(texts: EntityTexts) -> IntArray:
    """Pairs (p, 2) of entities that share a name which few others have, ascending."""
    owners_of: dict[str, list[int]] = {}
    for owner, name in zip(texts.name_owners.tolist(), texts.names, strict=True):
        owners_of.setdefault(name, []).append(owner)
    pairs = {
        (left, right)
        for owners in owners_of.values()
        if 1 < len(owners) <= _MOST_NAMESAKES
        for place, left in enumerate(owners)
        for right in owners[place + 1 :]
        if left != right
    }
    return np.array(sorted((min(pair), max(pair)) for pair in pairs), dtype=np.int64).reshape(-1, 2)
