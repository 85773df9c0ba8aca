"""`AlignmentResult`: what an alignment is to a program: pairs by name, neighbours, reasons, explanations, files.

In: a finished `Run`, in memory or in a folder, and the names of its entities. Everything is read when it is asked for.
"""

from __future__ import annotations

import datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largegnn.artifacts import REASONS, Alignment, AlignmentTask, IntArray, Neighbors, TaskNames, are_among
from largegnn.errors import InputError
from largegnn.evaluation.pair_metrics import precision_recall_f1
from largegnn.export import EMBEDDING_FORMS, ExportInfo, alignment_table, export, export_embeddings
from largegnn.stages import Run
from largegnn.version import __version__

if TYPE_CHECKING:
    import polars as pl

__all__ = ["AlignmentResult"]

_Path = str | PathLike[str]


class AlignmentResult:
    """A finished alignment."""

    def __init__(self, run: Run, names: TaskNames, title: str) -> None:
        self.run, self.names, self.title = run, names, title
        self._ids: dict[str, dict[str, int]] = {}

    @property
    def task(self) -> AlignmentTask:
        """The graphs and links as numbers."""
        return self.run.artifact("task", AlignmentTask)

    @property
    def alignment(self) -> Alignment:
        """The candidate pairs as arrays."""
        return self.run.artifact("alignment", Alignment)

    @property
    def pairs(self) -> pl.DataFrame:
        """The pairs put out: source, target, score, cosine, margin, confidence, mutual, rank, accepted."""
        return alignment_table(self.alignment, self.names)

    @property
    def candidates(self) -> pl.DataFrame:
        """All candidate pairs, with the same columns."""
        return alignment_table(self.alignment, self.names, accepted_only=False)

    @property
    def left_out(self) -> pl.DataFrame:
        """The entities without a pair: side, entity, reason."""
        import polars as pl

        reasons = self.alignment.reasons
        out = np.flatnonzero((reasons != REASONS.index("aligned")) & (reasons != REASONS.index("seed")))
        sides = np.where(out < self.task.num_source_entities, "source", "target")
        return pl.DataFrame(
            {
                "side": sides,
                "entity": self.names.entities.take(out),
                "reason": [REASONS[code] for code in reasons[out]],
            },
            schema={"side": pl.String, "entity": pl.String, "reason": pl.String},
        )

    @property
    def report(self) -> dict[str, Any]:
        """Figures with their protocol, what each stage cost, and what to expect of the pairs."""
        return report_of(self.run)

    def neighbors(self, entity: str, side: str | None = None) -> pl.DataFrame:
        """The nearest entities of the other side: entity, cosine, best first."""
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

    def explain(self, entity: str, side: str | None = None) -> list[dict[str, Any]]:
        """The candidates of an entity, best first, each with its evidence and the matched neighbours that back it."""
        from largegnn.matching.support import SupportFinder

        number, found, task = self.entity(entity, side), self.alignment, self.task
        column = 0 if number < task.num_source_entities else 1
        rows = np.flatnonzero(found.pairs[:, column] == number)
        rows = rows[np.argsort((found.source_ranks, found.target_ranks)[column][rows], kind="stable")]
        seeds = task.seeds(self.run.settings.protocol.seeds_from)
        finder = SupportFinder(task, seeds)
        matched = np.concatenate([seeds, found.pairs[found.mutual]])
        return [
            self._evidence(int(row), finder.neighbors(int(found.pairs[row, 0]), int(found.pairs[row, 1]), matched))
            for row in rows
        ]

    def evaluate(self, links: IntArray | pl.DataFrame) -> dict[str, float | None]:
        """Precision, recall and F1 of the pairs by links given as ids (k, 2) or as a frame of two columns of names.

        As in the report, a pair that is a valid link counts neither way, unless the links ask for it.
        """
        ids = self._link_ids(links)
        pairs = self.alignment.pairs[self.alignment.accepted]
        known = are_among(pairs, self.task.valid_links) & ~are_among(pairs, ids)
        return precision_recall_f1(pairs[~known], ids)

    def entity(self, name: str, side: str | None = None) -> int:
        """The id of an entity by its name; `side` is needed where both graphs have one of that name."""
        if side not in (None, "source", "target"):
            raise InputError(f"there is no side {side!r}", expected="source or target")
        found = [(where, self._names_of(where).get(name)) for where in ((side,) if side else ("source", "target"))]
        ids = [(where, number) for where, number in found if number is not None]
        if len(ids) == 1:
            return ids[0][1]
        if not ids:
            raise InputError(
                f"no entity is called {name!r}",
                expected=f"an entity of the {side or 'source or target'} graph, written as in its file",
                fix="look for it in the exported entity list (largegnn export RUN --form embeddings-npy)",
            )
        raise InputError(f"both graphs have an entity {name!r}", fix="say which side: source or target")

    def to_tsv(self, path: _Path) -> int:
        """Write the pairs as TSV; returns the rows written."""
        return self.to("tsv", path)

    def to_parquet(self, path: _Path) -> int:
        """Write the pairs as Parquet."""
        return self.to("parquet", path)

    def to_sameas(self, path: _Path) -> int:
        """Write the pairs as owl:sameAs N-Triples."""
        return self.to("sameas", path)

    def to_sssom(self, path: _Path) -> int:
        """Write the pairs as SSSOM TSV."""
        return self.to("sssom", path)

    def to_alignment_api(self, path: _Path) -> int:
        """Write the pairs as Alignment API RDF/XML."""
        return self.to("alignment-api", path)

    def to_embeddings(self, path: _Path, form: str = "embeddings-safetensors") -> int:
        """Write the vectors, with the list of entities beside them."""
        return self.to(form, path)

    def to(self, form: str, path: _Path, *, accepted_only: bool = True) -> int:
        """Write one of the forms of `largegnn export`."""
        if form in EMBEDDING_FORMS:
            vectors = self.run.final_embeddings()
            return export_embeddings(vectors, self.names, self.task.num_source_entities, Path(path), form)
        table = alignment_table(self.alignment, self.names, accepted_only=accepted_only)
        return export(form, table, Path(path), self._info())

    def _link_ids(self, links: IntArray | pl.DataFrame) -> IntArray:
        """Links (k, 2) as ids, source before target, from either form."""
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

    def _info(self) -> ExportInfo:
        settings = self.run.settings
        support = " with neighbourhood support" if settings.match.support_weight else ""
        return ExportInfo(
            tool_version=__version__,
            title=self.title,
            source_name="source",
            target_name="target",
            protocol=f"seeds from {settings.protocol.seeds_from}, all other entities are candidates",
            decoding=f"{settings.match.scoring}{support}, {settings.match.selection}",
            threshold=self.run.outcome("match").facts["threshold"]["confidence"],
            created=datetime.datetime.now(datetime.UTC).date(),
        )

    def _evidence(self, row: int, speaking: IntArray) -> dict[str, Any]:
        found = self.alignment
        source, target = self.names.entities.take(found.pairs[row])
        return {
            "source": source,
            "target": target,
            "cosine": float(found.cosines[row]),
            "score": float(found.scores[row]),
            "margin": float(found.margins[row]),
            "confidence": float(found.confidence[row]),
            "accepted": bool(found.accepted[row]),
            "matched_neighbors": [tuple(self.names.entities.take(pair)) for pair in speaking],
        }

    def _names_of(self, side: str | None) -> dict[str, int]:
        key = str(side)
        if key not in self._ids:
            split, total = self.task.num_source_entities, self.task.num_entities
            span = range(split) if side == "source" else range(split, total)
            self._ids[key] = dict(zip(self.names.entities.take(span), span, strict=True))
        return self._ids[key]


def report_of(run: Run) -> dict[str, Any]:
    """The report of a run: what it was made from, figures with their protocol, costs, and what to expect."""
    outcomes = {name: run.outcome(name) for name in run.finished()}
    evaluated = outcomes["evaluate"].facts if "evaluate" in outcomes else {}
    matched = outcomes["match"].facts if "match" in outcomes else {}
    stages = {
        name: {"seconds": cost.seconds, "peak_memory_mb": cost.peak_memory_mb, "peak_gpu_mb": cost.peak_gpu_mb}
        for name, cost in outcomes.items()
    }
    return {
        "largegnn": __version__,
        "protocol": evaluated.get("protocol"),
        "ideal": evaluated.get("ideal"),
        "real": evaluated.get("real"),
        "reliability": {"valid": matched.get("reliability"), "test": evaluated.get("reliability")},
        "threshold": matched.get("threshold"),
        "calibrated": matched.get("calibration", {}).get("is_calibrated"),
        "estimated_links": matched.get("calibration", {}).get("num_links"),
        "pairs": matched.get("num_accepted"),
        "reasons": matched.get("reasons"),
        "search": outcomes["search"].facts if "search" in outcomes else None,
        "rounds": outcomes["rounds"].facts["history"] if "rounds" in outcomes else None,
        "stages": stages,
        "partition": evaluated.get("partition") or (outcomes["subgraphs"].facts if "subgraphs" in outcomes else None),
        "settings": run.settings.model_dump(),
    }
