"""Agreement and contradiction of values: which predicate answers to which is learnt, not configured.

In: candidate edges, the literals of both sides with their kinds, and pairs that are surely right. Out: two columns:
`agreement`, how much the values that two entities share speak for them, and `contradiction`, how much those in which
they differ speak against them, both in natural logarithms of odds (Fellegi and Sunter, 1969).
The idea: for every pair of predicates of the same kind, count how often the values of surely right pairs agree and how
often those of pairs drawn at random do. A predicate pair that agrees no more often than by chance says nothing. Rare
values agree seldom by chance, so they count more. Only predicates with about one value per entity can contradict.
Each value is read once and compared often (see `comparators`).
Cost: the edges times the predicate pairs that answer to each other, of which the most telling are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import FloatArray, IntArray, Literals
from largegnn.literals.comparators import ReadingComparator
from largegnn.literals.profiles import PredicateProfile
from largegnn.literals.value_pieces import compared_in_pieces
from largegnn.machine.worker_pool import processor_pool
from largegnn.seams.tables import COMPARATORS

__all__ = ["Correspondence", "SideValues", "compare_values", "learn_correspondences", "value_evidence"]

_COMPARED = ("number", "date", "code", "coordinate", "truth_value", "name", "text")
_FEWEST_SURE = 20
_MOST_SURE = 5_000
_MOST_CORRESPONDENCES = 30
_AGREES = 0.95  # similarity from which two values are the same
_LEAST_RATIO = 2.0  # how much more often than by chance values must agree to say anything
_FUNCTIONAL = 0.8
_MOST_ODDS = 6.0
_PIECE = 1 << 17
_WORTH_SENDING = 1 << 19  # edges; fewer are compared here in a second or two, and the start of a worker takes as long


@dataclass(frozen=True, eq=False)
class SideValues:
    """The values of one side by predicate: for each predicate, one row per entity (-1 for none) into the literals."""

    literals: Literals
    row_of: dict[int, IntArray]
    profiles: dict[int, PredicateProfile]
    first: int
    comparators: Mapping[str, str]

    @classmethod
    def of(
        cls,
        literals: Literals,
        inside: slice,
        profiles: dict[int, PredicateProfile],
        first: int,
        count: int,
        comparators: Mapping[str, str],
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
        return cls(literals, rows, profiles, first, comparators)

    def values(self, predicate: int, entities: IntArray) -> IntArray:
        """The row of each entity's value (m,), -1 where it has none."""
        rows: IntArray = self.row_of[predicate][entities - self.first]
        return rows


@dataclass(frozen=True)
class Correspondence:
    """Two predicates that answer to each other: how often values agree for right pairs, and by chance."""

    source_predicate: str
    target_predicate: str
    kind: str
    num_sure: int
    agree_right: float
    agree_chance: float

    @property
    def odds_for(self) -> float:
        """What agreement speaks for a pair, as a logarithm."""
        return float(np.clip(np.log(self.agree_right / self.agree_chance), 0.0, _MOST_ODDS))

    @property
    def odds_against(self) -> float:
        """What disagreement speaks against a pair, as a logarithm."""
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
        together = [_agreements(source, target, left, right, kind, pairs) for pairs in (chosen, shuffled)]
        count = len(together[0])
        if count < _FEWEST_SURE:
            continue
        # One more agreement and one more disagreement each: nothing is certain.
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
        for both, similar in _compared(source, target, left, right, one.kind, sources, targets):
            agree = similar >= _AGREES
            agreement[both[agree]] += one.odds_for
            contradiction[both[~agree]] += one.odds_against
    return agreement, contradiction


def _compared(
    source: SideValues, target: SideValues, left: int, right: int, kind: str, sources: IntArray, targets: IntArray
) -> Iterator[tuple[IntArray, FloatArray]]:
    """The edges of which both ends have a value, some at a time, and how alike the values are."""
    pool = processor_pool()
    if pool is not None and len(sources) >= _WORTH_SENDING:
        comparator = COMPARATORS[source.comparators[kind]]
        values = (source.literals.values, target.literals.values)

        def rows_of(edges: slice) -> tuple[IntArray, IntArray]:
            return source.values(left, sources[edges]), target.values(right, targets[edges])

        yield from compared_in_pieces(comparator, values, rows_of, len(sources), pool)
        return
    compare = _comparison(source, target, left, right, kind)
    for start in range(0, len(sources), _PIECE):
        both, similar = compare(sources[start : start + _PIECE], targets[start : start + _PIECE])
        yield start + both, similar


def _possible(source: SideValues, target: SideValues) -> list[tuple[int, int, str]]:
    """Pairs of predicates of the same kind."""
    return [
        (left, right, source.profiles[left].kind)
        for left in source.row_of
        for right in target.row_of
        if source.profiles[left].kind == target.profiles[right].kind and source.profiles[left].kind in _COMPARED
    ]


def _agreements(
    source: SideValues, target: SideValues, left: int, right: int, kind: str, pairs: IntArray
) -> npt.NDArray[np.bool_]:
    """Whether the values agree, for the pairs that have both."""
    rows = source.values(left, pairs[:, 0]), target.values(right, pairs[:, 1])
    both = (rows[0] >= 0) & (rows[1] >= 0)
    return compare_values(source, target, kind, rows[0][both], rows[1][both]) >= _AGREES


def _comparison(
    source: SideValues, target: SideValues, left: int, right: int, kind: str
) -> Callable[[IntArray, IntArray], tuple[IntArray, FloatArray]]:
    """What tells of pairs of entities (p,) which have both values, and how alike these are; a value is read once."""
    comparator = COMPARATORS[source.comparators[kind]]

    def compare(sources: IntArray, targets: IntArray) -> tuple[IntArray, FloatArray]:
        rows = source.values(left, sources), target.values(right, targets)
        both = np.flatnonzero((rows[0] >= 0) & (rows[1] >= 0))
        if not isinstance(comparator, ReadingComparator):
            return both, compare_values(source, target, kind, rows[0][both], rows[1][both])
        ends = (sources[both] - source.first, targets[both] - target.first)
        similar = [values[place[end]] for values, place, end in zip(read, places, ends, strict=True)]
        return both, np.asarray(comparator.compare(*similar), dtype=np.float32)

    read, places = [], []
    if isinstance(comparator, ReadingComparator):
        for side, predicate in ((source, left), (target, right)):
            has_value = side.row_of[predicate] >= 0
            read.append(comparator.read(side.literals.values.take(side.row_of[predicate][has_value])))
            places.append(np.cumsum(has_value) - 1)  # where the value of each entity stands among those read
    return compare


def compare_values(source: SideValues, target: SideValues, kind: str, left: IntArray, right: IntArray) -> FloatArray:
    """The similarity of values at these rows, by the comparator of their kind; equal pairs are compared once."""
    if not len(left):
        return np.empty(0, dtype=np.float32)
    keys, of = np.unique(left << 32 | right, return_inverse=True)
    texts = source.literals.values.take(keys >> 32), target.literals.values.take(keys & 0xFFFFFFFF)
    similar: FloatArray = np.asarray(COMPARATORS[source.comparators[kind]](*texts), dtype=np.float32)
    return similar[of]


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
