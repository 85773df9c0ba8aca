"""Answer reconciliation queries: find the entities of a graph that a name, an identifier or values may mean.

In: queries. Out: candidates with a score, a decision, and the evidence as features.
- The query is looked up, by name or identifier, among the entities of both sides. An entity of the other side gives
  its candidate pairs: score = 100 x confidence x the similarity of the names. `match` is true for pairs that the run
  accepted, if the name is equal.
- An entity of the candidates' own side is a candidate itself: score = 100 x similarity, and `match` is true only if the
  query is its identifier. It has no evidence of the run.
- Properties count half: score x (1 + agreement) / 2. Where no name is given or found, properties select the entities.
Cost: see `NameIndex`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from largegnn.artifacts import Alignment, IntArray
from largegnn.review.lookup import Rows
from largegnn.services.catalogue import ANY_TYPE, Catalogue
from largegnn.services.queries import ExtendQuery, Query

__all__ = ["Candidate", "Reconciler"]

_DEFAULT_LIMIT, _MAX_LIMIT = 5, 100
_MAX_NAMESAKES = 5  # entities of the other side whose pairs are candidates
_MAX_BY_VALUES = 500
_MIN_SIMILARITY = 0.6


@dataclass(frozen=True)
class Candidate:
    """An entity that a query may mean; `row` is its pair in the alignment, -1 where no pair led to it."""

    entity: int
    score: float
    is_match: bool
    row: int = -1
    features: dict[str, float] = field(default_factory=dict)


class Reconciler:
    """An answerer of queries about a run."""

    def __init__(self, catalogue: Catalogue, alignment: Alignment, seeds: IntArray) -> None:
        self.catalogue, self._alignment = catalogue, alignment
        self._side = catalogue.side
        other_side = 1 - self._side
        self._rows = Rows(alignment.pairs[:, other_side], catalogue.labels.task.num_entities)
        self._seed_of = dict(zip(seeds[:, other_side].tolist(), seeds[:, self._side].tolist(), strict=True))

    def answer(self, query: Query) -> list[dict[str, Any]]:
        """The candidates of a query in the form of the protocol, best first."""
        limit = int(min(max(query.limit or _DEFAULT_LIMIT, 1), _MAX_LIMIT))
        candidates = self._by_name(query.query) if query.query else {}
        if not candidates and query.properties:
            texts = [text for wanted in query.properties for text in wanted.texts]
            entities = self.catalogue.with_value(texts, _MAX_BY_VALUES)
            candidates = {entity: Candidate(entity, 100.0, False) for entity in entities}
        ranked = [self._with_properties(candidate, query) for candidate in candidates.values()]
        ranked = [candidate for candidate in ranked if self._has_type(candidate.entity, query)]
        ranked.sort(key=lambda candidate: (-candidate.score, not candidate.is_match, candidate.entity))
        return [self._written(candidate) for candidate in ranked[:limit]]

    def extend(self, query: ExtendQuery) -> dict[str, Any]:
        """Fetch the values of properties of entities, in the form of the protocol."""
        rows: dict[str, dict[str, list[dict[str, str]]]] = {}
        for name in query.ids:
            entities = self.catalogue.find(name, self._side)
            rows[name] = {
                wanted.id: self.catalogue.property_values(entities[0], wanted.id)[: wanted.limit] if entities else []
                for wanted in query.properties
            }
        names = {known["id"]: known["name"] for known in self.catalogue.all_properties}
        meta = [{"id": wanted.id, "name": names.get(wanted.id, wanted.id)} for wanted in query.properties]
        return {"meta": meta, "rows": rows}

    def _by_name(self, text: str) -> dict[int, Candidate]:
        """Find candidates by an identifier, or else by a name."""
        exact = self.catalogue.find(text)
        similar = [(entity, 1.0) for entity in exact]
        if not exact:
            named = self.catalogue.names.search(text, 4 * _MAX_NAMESAKES)
            # Where an equal name exists, names that are only similar are dropped.
            threshold = 1.0 if named and named[0][1] == 1.0 else _MIN_SIMILARITY
            similar = [(entity, similarity) for entity, similarity in named if similarity >= threshold]
        best: dict[int, Candidate] = {}
        num_others = 0
        for entity, similarity in similar:
            if self.catalogue.is_candidate(entity):
                candidate = Candidate(entity, 100 * similarity, bool(exact), -1, {"name_similarity": similarity})
                self._update_best(best, candidate)
                continue
            num_others += 1
            if num_others <= _MAX_NAMESAKES:
                for candidate in self._paired_candidates(entity, similarity):
                    self._update_best(best, candidate)
        return best

    def _update_best(self, best: dict[int, Candidate], candidate: Candidate) -> None:
        """Keep the better of two candidates for an entity; evidence of the run precedes a name alone."""
        known = best.get(candidate.entity)
        rank = (candidate.is_match, candidate.row >= 0, candidate.score)
        if known is None or rank > (known.is_match, known.row >= 0, known.score):
            best[candidate.entity] = candidate

    def _paired_candidates(self, entity: int, similarity: float) -> list[Candidate]:
        """The candidates that are paired with an entity of the other side."""
        partner = self._seed_of.get(entity)
        if partner is not None:
            return [Candidate(partner, 100 * similarity, similarity == 1.0, -1, {"seed": 1.0})]
        alignment = self._alignment
        candidates = []
        for row in self._rows.of(entity).tolist():
            features = {name: float(alignment.column(name)[row]) for name in alignment.columns}
            features |= {"score": float(alignment.scores[row]), "name_similarity": similarity}
            score = 100 * float(alignment.confidence[row]) * similarity
            is_match = bool(alignment.accepted[row]) and similarity == 1.0
            candidates.append(Candidate(int(alignment.pairs[row, self._side]), score, is_match, row, features))
        return candidates

    def _with_properties(self, candidate: Candidate, query: Query) -> Candidate:
        """The candidate, with its score reduced where its values differ from the wanted values."""
        if not query.properties:
            return candidate
        entity, agreement = candidate.entity, self.catalogue.agreement
        agreements = {wanted.pid: agreement(entity, wanted.pid, wanted.texts) for wanted in query.properties}
        mean = sum(agreements.values()) / len(agreements)
        score, is_match = candidate.score * (1 + mean) / 2, candidate.is_match and mean > 0
        features = candidate.features | {f"property:{pid}": value for pid, value in agreements.items()}
        return replace(candidate, score=score, is_match=is_match, features=features)

    def _has_type(self, entity: int, query: Query) -> bool:
        if not query.types:
            return True
        names = {text for known in self.catalogue.types(entity) for text in known.values()} | set(ANY_TYPE.values())
        is_among = [name in names for name in query.types]
        return all(is_among) if query.type_strict == "all" else any(is_among)

    def _written(self, candidate: Candidate) -> dict[str, Any]:
        """The candidate in the form of the protocol."""
        return {
            **self.catalogue.described(candidate.entity),
            "score": round(candidate.score, 4),
            "match": candidate.is_match,
            "type": self.catalogue.types(candidate.entity),
            "features": [{"id": name, "value": round(value, 6)} for name, value in candidate.features.items()],
        }
