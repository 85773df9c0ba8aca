"""Give programs a finished alignment: pairs by name, unmatched entities, explanations, files (`AlignmentResult`).

In: a finished `Run`. Everything is read when it is asked for.
"""

from __future__ import annotations

import html
import shutil
import weakref
from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largegnn.artifacts import (
    REASONS,
    Alignment,
    AlignmentTask,
    IntArray,
    Neighbors,
    PairFigures,
    RelationAlignment,
    TaskNames,
    are_among,
    to_plain,
)
from largegnn.artifacts.literals import Literals
from largegnn.data.names import EntityNames
from largegnn.errors import InputError
from largegnn.literals.compare import LiteralsOutcome
from largegnn.matching.match import MatchOutcome
from largegnn.review.pages import ReportInputs
from largegnn.run import Run, RunSummary

if TYPE_CHECKING:
    import polars as pl

    from largegnn.export import Exporter
    from largegnn.export.info import ExportInfo
    from largegnn.review.charts import Charts
    from largegnn.review.explain import Explainer, Explanation
    from largegnn.review.labels import Labels
    from largegnn.review.session import ReviewSession
    from largegnn.review.values import PairValues
    from largegnn.services.reconciler import Reconciler

__all__ = ["AlignmentResult"]

AnyPath = str | PathLike[str]
_SHOWN = 10


class AlignmentResult:
    """A finished alignment in its run folder."""

    def __init__(self, run: Run, *, temporary: bool = False) -> None:
        """The folder of a `temporary` run is removed with the object."""
        self.run, self._is_temporary = run, temporary
        if temporary:
            weakref.finalize(run, shutil.rmtree, run.folder, ignore_errors=True)

    @classmethod
    def open(cls, folder: AnyPath) -> AlignmentResult:
        """Open the alignment in a run folder."""
        return cls(Run.open(Path(folder), needs="match"))

    def __repr__(self) -> str:
        summary = self.summary
        match, graphs = summary.match, self.task
        if match is None:
            return f"AlignmentResult({self.title!r}, not matched yet)"
        expected = match.threshold.expected_precision
        sure = "not calibrated" if expected is None else f"expected precision {expected:.3f}"
        return (
            f"AlignmentResult({self.title!r}: {match.num_accepted:,} pairs of {graphs.num_source_entities:,} source "
            f"and {graphs.num_target_entities:,} target entities, {sure})"
        )

    def __str__(self) -> str:
        return f"{self!r}\n{self.pairs}" if self.summary.match is not None else repr(self)

    def _repr_html_(self) -> str:
        """The first pairs as a table, for notebooks."""
        from largegnn.review.templating import pairs_html

        if self.summary.match is None:
            return f"<p>{html.escape(repr(self))}</p>"
        return pairs_html(repr(self), self.pairs, _SHOWN)

    def plot(self) -> Charts:
        """The charts of the report: pairs by confidence, score and margin, reliability, training, division."""
        from largegnn.review.report_page import charts_of

        literals = self.run.artifact("literals", Literals)
        task = self.run.task.without_test_links()
        return charts_of(ReportInputs(task, self.names, self.alignment, self.summary, literals=literals), self.title)

    @property
    def title(self) -> str:
        """The name of the run."""
        return "temporary run" if self._is_temporary else self.run.folder.resolve().name

    @property
    def names(self) -> TaskNames:
        """The names of the ids in the input files."""
        return self.run.artifact("names", TaskNames)

    @property
    def task(self) -> AlignmentTask:
        """The graphs and links as numbers."""
        return self.run.artifact("task", AlignmentTask)

    @property
    def alignment(self) -> Alignment:
        """The candidate pairs as arrays."""
        return self.run.artifact("alignment", Alignment)

    @cached_property
    def summary(self) -> RunSummary:
        """Figures with their protocol, the cost of each step, and the expected precision of the pairs."""
        return self.run.summary

    @property
    def is_calibrated(self) -> bool:
        """Whether the confidence of a pair is a probability; if not, a pair has a score only."""
        return "match" in self.run.finished and self.run.outcome("match", MatchOutcome).calibration.is_calibrated

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """The accepted pairs: source, target, score, margin, a column for each evidence, confidence, and more."""
        return self._table(accepted_only=True)

    @property
    def candidates(self) -> pl.DataFrame:
        """All candidate pairs, with the same columns."""
        return self._table(accepted_only=False)

    @property
    def relations(self) -> pl.DataFrame:
        """The aligned relations: source, target, inverse, mapping, score, shares, count, examples."""
        from largegnn.review.tables import relations_table

        return relations_table(self.run.artifact("relations", RelationAlignment), self.names)

    @property
    def unmatched(self) -> pl.DataFrame:
        """The entities without a pair: side, entity, reason, best candidate, and the match of that candidate."""
        from largegnn.review.tables import unmatched_table

        return unmatched_table(self.task, self.names, self.alignment)

    def nearest(self, entity: str, side: str | None = None) -> pl.DataFrame:
        """The nearest entities of the other side by the vectors alone: entity, cosine, best first."""
        import polars as pl

        number = self.entity(entity, side)
        is_source = number < self.task.num_source_entities
        found = self.run.artifact("source_neighbors" if is_source else "target_neighbors", Neighbors)
        row = int(found.row_of(np.array([number]))[0])
        if row < 0:
            reason = REASONS[int(self.alignment.reasons[number])]
            raise InputError(f"{entity} was not searched for", found=f"it is {reason}")
        there = found.ids[row] >= 0
        names = self.names.entities.take(found.ids[row][there])
        return pl.DataFrame({"entity": names, "cosine": found.scores[row][there]})

    def explain(self, entity: str, side: str | None = None, target: str | None = None) -> Explanation:
        """Explain the match of an entity: its candidates, best first, with the evidence for each.

        With a `target` that one pair alone is explained, also where it is no candidate; the entity is then a source.
        """
        if target is not None:
            if side == "target":
                raise InputError("the target of a target is asked for", fix="name the source entity first")
            return self._explainer.explain_pair(self.entity(entity, "source"), self.entity(target, "target"))
        return self._explainer.explain(self.entity(entity, side))

    def labels(self, entities: Sequence[str], side: str) -> list[str]:
        """The labels of entities of a side: a name from their literals, or else the last part of their IRIs."""
        return [self._labels.label(self.entity(entity, side)) for entity in entities]

    def evaluate(self, links: IntArray | pl.DataFrame) -> PairFigures:
        """Precision, recall and F1 of the pairs by links given as ids (k, 2) or as a frame of two columns of names.

        A pair that is a valid link counts neither way, unless the links ask for it. `partial_precision` is the one to
        look at where the links are only some of those there are.
        """
        from largegnn.evaluation.pair_metrics import precision_recall_f1

        ids = self._link_ids(links)
        pairs = self.alignment.pairs[self.alignment.accepted]
        known = are_among(pairs, self.task.valid_links) & ~are_among(pairs, ids)
        return precision_recall_f1(pairs[~known], ids)

    def entity(self, name: str, side: str | None = None) -> int:
        """The id of an entity by its name; `side` is needed where both graphs have one of that name."""
        return self._entity_names.find(name, side)

    def save(self, folder: AnyPath) -> Path:
        """Copy the run to a new folder."""
        path = Path(folder)
        if path.exists():
            raise InputError("the folder is there already", where=str(path), fix="name another one")
        shutil.copytree(self.run.folder, path, ignore=shutil.ignore_patterns(".lock"))
        return path

    def export(
        self,
        form: str | Exporter,
        path: AnyPath,
        *,
        accepted_only: bool = True,
        base_iri: str | None = None,
        target_base_iri: str | None = None,
        prefixes: dict[str, str] | None = None,
    ) -> int:
        """Write one of the forms of `largegnn export`, or an exporter of your own; returns the rows written."""
        from largegnn.export import EMBEDDING_FORMS, RELATION_FORMS, export, export_embeddings, export_relations

        if isinstance(form, str) and form in EMBEDDING_FORMS:
            vectors = self.run.embeddings
            return export_embeddings(vectors, self.names, self.task.num_source_entities, Path(path), form)
        info = self.export_info(base_iri=base_iri, target_base_iri=target_base_iri, prefixes=prefixes)
        if isinstance(form, str) and form in RELATION_FORMS:
            return export_relations(self.relations, Path(path), info)
        return export(form, self._table(accepted_only=accepted_only), Path(path), info)

    def review(self, decisions: AnyPath) -> ReviewSession:
        """Start a review of the run; decisions are read from a file and appended to it."""
        from largegnn.review.session import ReviewSession

        literals = self.run.artifact("literals", Literals)
        return ReviewSession(self.run.task, self.names, literals, self.alignment, self.summary, Path(decisions))

    def reconciler(self, side: str = "target") -> Reconciler:
        """Make a service for queries about entities of one side, as `largegnn serve` does, with all its indexes."""
        from largegnn.review.neighbors import NeighborIndex
        from largegnn.services.catalogue import Catalogue
        from largegnn.services.reconciler import Reconciler

        task = self.run.task
        catalogue = Catalogue(self._labels, NeighborIndex(task), ("source", "target").index(side))
        catalogue.prepare()
        return Reconciler(catalogue, self.alignment, task.given_seeds(self.run.settings.protocol.seeds_from))

    def prepare(self) -> None:
        """Build the indexes for explanations now instead of with the first explanation."""
        self._entity_names.prepare()
        self._explainer.prepare()

    def answer(self, entity: str, side: str | None = None) -> dict[str, Any]:
        """The counterpart of an entity with its confidence and explanation, as plain values."""
        found = self.explain(entity, side)
        best = next((one for one in found.candidates if one.accepted), None)
        counterpart = None if best is None else best.target if found.side == "source" else best.source
        return {
            "entity": found.entity,
            "side": found.side,
            "state": found.state,
            "counterpart": counterpart or found.seed_partner,
            "confidence": None if best is None or not self.is_calibrated else best.confidence,
            "explanation": to_plain(found),
        }

    def export_info(
        self,
        *,
        base_iri: str | None = None,
        target_base_iri: str | None = None,
        prefixes: dict[str, str] | None = None,
    ) -> ExportInfo:
        """The origin of the alignment, for the head of exported files."""
        from largegnn.review.pages import export_info

        return export_info(
            self.summary, self.title, base_iri=base_iri, target_base_iri=target_base_iri, prefixes=prefixes
        )

    def _table(self, *, accepted_only: bool) -> pl.DataFrame:
        from largegnn.export.table import alignment_table

        return alignment_table(self.alignment, self.names, accepted_only=accepted_only, calibrated=self.is_calibrated)

    def _link_ids(self, links: IntArray | pl.DataFrame) -> IntArray:
        """Convert links from either form to ids (k, 2), source before target."""
        import polars as pl

        if isinstance(links, pl.DataFrame) and links.width >= 2:
            sides = zip(("source", "target"), links.iter_columns(), strict=False)
            ids = [[self.entity(str(name), side) for name in names] for side, names in sides]
            return np.array(ids, dtype=np.int32).T.reshape(-1, 2)
        split, total = self.task.num_source_entities, self.task.num_entities
        if isinstance(links, np.ndarray) and links.ndim == 2 and links.shape[1] == 2 and links.dtype.kind in "iu":
            below = np.array([split, total])
            if not len(links) or bool(((links >= (0, split)) & (links < below)).all()):
                return links
        raise InputError(
            "these links cannot be read",
            expected=f"a frame of two columns of names, or ids (k, 2), sources below {split}, targets below {total}",
            found=f"{type(links).__name__} {getattr(links, 'shape', '')}".strip(),
        )

    @cached_property
    def _entity_names(self) -> EntityNames:
        return EntityNames(self.names.entities, self.task.num_source_entities)

    @cached_property
    def _explainer(self) -> Explainer:
        from largegnn.matching.evidence import Weighing
        from largegnn.review.explain import Explainer

        settings, match = self.run.settings, self.run.outcome("match", MatchOutcome)
        views, seeds_from = self._literals_outcome.weights or {}, settings.protocol.seeds_from
        ours, odds = settings.match, settings.compare.odds_weight
        weighing = Weighing(ours.scoring, ours.weights, match.similarity_weights or {}, views, odds)
        relations = self.run.artifact("relations", RelationAlignment)
        return Explainer(self.task, self.names, self.alignment, relations, seeds_from, weighing, self._pair_values)

    @property
    def _literals_outcome(self) -> LiteralsOutcome:
        return self.run.outcome("literals", LiteralsOutcome) if "literals" in self.run.finished else LiteralsOutcome()

    @cached_property
    def _labels(self) -> Labels:
        from largegnn.review.labels import Labels, name_predicates

        found, literals = self._literals_outcome, self.run.artifact("literals", Literals)
        profiles = (*found.source_profiles, *found.target_profiles)
        return Labels(self.run.task, self.names, literals, name_predicates(literals, profiles))

    @cached_property
    def _pair_values(self) -> PairValues | None:
        from largegnn.review.values import PairValues

        outcome = self._literals_outcome
        if "literals" not in self.run.channels:
            return None
        literals = self.run.artifact("literals", Literals)
        return PairValues(literals, self._labels.name_predicates, outcome.correspondences)
