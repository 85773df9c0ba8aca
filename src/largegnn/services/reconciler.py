"""Answer queries about a run: the entities of one graph that a name, an identifier or values may mean.

In: queries. Out: candidates with a score, a decision, and the evidence as features.
- A query is looked up among the entities of the other side, by name or identifier. The candidates are their pairs:
  score = 100 x confidence (x the similarity of the names, where they differ). `match` is true for pairs that the run
  accepted, if the name is equal.
- Candidates with the name itself follow: score = 100 x similarity, `match` only for their own identifier. They have no
  evidence of the run.
- Properties count half: score x (1 + agreement) / 2. Without a name, they alone select entities.
Cost: see `NameIndex`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from largegnn.artifacts import Alignment, IntArray
from largegnn.review.lookup import Rows
from largegnn.services.catalogue import Catalogue
from largegnn.services.queries import ExtendQuery, Query

__all__ = ["Candidate", "Reconciler"]

_DEFAULT_LIMIT, _MOST_LIMIT = 5, 100
_NAMESAKES = 5
_LEAST_SIMILAR = 0.6


@dataclass(frozen=True)
class Candidate:
    """An entity that a query may mean; `row` is its pair in the alignment, -1 where it was found by its own name."""

    entity: int
    score: float
    is_match: bool
    row: int = -1
    features: dict[str, float] = field(default_factory=dict)


class Reconciler:
    """Answers queries about one run."""

    def __init__(self, catalogue: Catalogue, alignment: Alignment, seeds: IntArray) -> None:
        self.catalogue, self._alignment = catalogue, alignment
        self._own, self._other = catalogue.side, 1 - catalogue.side
        self._rows = Rows(alignment.pairs[:, self._other], catalogue.labels.task.num_entities)
        self._seed_of = dict(zip(seeds[:, self._other].tolist(), seeds[:, self._own].tolist(), strict=True))

    def answer(self, query: Query) -> list[dict[str, Any]]:
        """The candidates of a query in the form of the protocol, best first."""
        limit = int(min(max(query.limit or _DEFAULT_LIMIT, 1), _MOST_LIMIT))
        found = self._by_name(query.query) if query.query else {}
        if not found and query.properties:
            texts = [text for one in query.properties for text in one.texts]
            found = {entity: Candidate(entity, 100.0, False) for entity in self.catalogue.with_value(texts, 500)}
        rated = [self._with_properties(one, query) for one in found.values()]
        rated = [one for one in rated if self._has_type(one.entity, query)]
        rated.sort(key=lambda one: (-one.score, not one.is_match, one.entity))
        return [self._written(one) for one in rated[:limit]]

    def extend(self, query: ExtendQuery) -> dict[str, Any]:
        """Values of properties of entities."""
        rows: dict[str, dict[str, list[dict[str, str]]]] = {}
        for name in query.ids:
            known = self.catalogue.find(name, self._own)
            rows[name] = {
                one.id: self.catalogue.property_values(known[0], one.id)[: one.limit] if known else []
                for one in query.properties
            }
        names = {one["id"]: one["name"] for one in self.catalogue.all_properties}
        meta = [{"id": one.id, "name": names.get(one.id, one.id)} for one in query.properties]
        return {"meta": meta, "rows": rows}

    def _by_name(self, text: str) -> dict[int, Candidate]:
        """Candidates by an identifier or a name."""
        exact = self.catalogue.find(text)
        similar = [(entity, 1.0) for entity in exact]
        if not exact:
            near = self.catalogue.names.search(text, 4 * _NAMESAKES)
            # Where an equal name exists, merely similar names are left out.
            least = 1.0 if near and near[0][1] == 1.0 else _LEAST_SIMILAR
            similar = [(entity, similarity) for entity, similarity in near if similarity >= least]
        found: dict[int, Candidate] = {}
        num_others = 0
        for entity, similarity in similar:
            if self.catalogue.is_candidate(entity):
                candidate = Candidate(entity, 100 * similarity, bool(exact), -1, {"name_similarity": similarity})
                self._update_best(found, candidate)
                continue
            num_others += 1
            if num_others <= _NAMESAKES:
                for candidate in self._counterparts(entity, similarity):
                    self._update_best(found, candidate)
        return found

    def _update_best(self, found: dict[int, Candidate], candidate: Candidate) -> None:
        """Keep the better of two candidates for one entity; evidence of the run precedes a name alone."""
        known = found.get(candidate.entity)
        rank = (candidate.is_match, candidate.row >= 0, candidate.score)
        if known is None or rank > (known.is_match, known.row >= 0, known.score):
            found[candidate.entity] = candidate

    def _counterparts(self, entity: int, similarity: float) -> list[Candidate]:
        """The candidate pairs of an entity of the other side."""
        partner = self._seed_of.get(entity)
        if partner is not None:
            return [Candidate(partner, 100 * similarity, similarity == 1.0, -1, {"seed": 1.0})]
        alignment = self._alignment
        found = []
        for row in self._rows.of(entity).tolist():
            features = {name: float(alignment.column(name)[row]) for name in alignment.columns}
            features |= {"score": float(alignment.scores[row]), "name_similarity": similarity}
            score = 100 * float(alignment.confidence[row]) * similarity
            is_match = bool(alignment.accepted[row]) and similarity == 1.0
            found.append(Candidate(int(alignment.pairs[row, self._own]), score, is_match, row, features))
        return found

    def _with_properties(self, one: Candidate, query: Query) -> Candidate:
        if not query.properties:
            return one
        shares = {prop.pid: self.catalogue.agreement(one.entity, prop.pid, prop.texts) for prop in query.properties}
        mean = sum(shares.values()) / len(shares)
        features = one.features | {f"property:{pid}": share for pid, share in shares.items()}
        return Candidate(one.entity, one.score * (1 + mean) / 2, one.is_match and mean > 0, one.row, features)

    def _has_type(self, entity: int, query: Query) -> bool:
        if not query.types:
            return True
        own = {name for one in self.catalogue.types(entity) for name in one.values()} | {"entity", "Entity"}
        hits = [name in own for name in query.types]
        return all(hits) if query.type_strict == "all" else any(hits)

    def _written(self, one: Candidate) -> dict[str, Any]:
        return {
            **self.catalogue.described(one.entity),
            "score": round(one.score, 4),
            "match": one.is_match,
            "type": self.catalogue.types(one.entity),
            "features": [{"id": name, "value": round(value, 6)} for name, value in one.features.items()],
        }
