"""`report.html`: all of a run on one page that needs nothing else: no network, no library, no other file.

In: what a finished run is. Out: the file. Charts are SVG made here; a few lines of script move the threshold. Pairs are
counted, and shown as samples only, so that the page of a million pairs is no larger than that of a thousand. The page
forbids itself everything but its own script, by the hash of that script.
Cost: a few passes over pairs and triples.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from largegnn.artifacts import MAPPINGS, REASONS, AlignmentTask, IntArray, Mask
from largegnn.artifacts.literals import Literals
from largegnn.data import shown
from largegnn.machine.atomic import write_text
from largegnn.review.charts import Plot, epoch_plots, histogram_plot, reliability_plot, sizes_plot
from largegnn.review.cuts import Cut, selected_pairs, threshold_cuts
from largegnn.review.pair_view import PairView, PairViewer, audit_sample
from largegnn.review.templating import asset, render
from largegnn.version import __version__

if TYPE_CHECKING:
    from largegnn.stages.report import ReportInputs

__all__ = ["RelationRow", "ReportPage", "report_html", "report_page"]

_SUREST, _LEAST_SURE, _AUDIT = 8, 8, 20
_MOST_RELATIONS = 40
_SAMPLED = 100


@dataclass(frozen=True)
class RelationRow:
    """Two relations that answer to each other: what the one is to the other, and by how many matched triples."""

    source: str
    target: str
    mapping: str
    score: float
    count: int


@dataclass(frozen=True)
class ReasonRow:
    """Why entities have no pair: how many of either side, and the share of the most frequent reason."""

    reason: str
    source: int
    target: int


@dataclass(frozen=True)
class ReportPage:
    """What the template of the report is filled in with, besides the summary of the run."""

    task: AlignmentTask
    cuts: tuple[Cut, ...]
    own: int
    histograms: tuple[Plot, ...]
    reliability: Plot | None
    epochs: tuple[Plot, ...]
    sizes: Plot | None
    reasons: tuple[ReasonRow, ...]
    relations: tuple[RelationRow, ...]
    surest: tuple[PairView, ...]
    least_sure: tuple[PairView, ...]
    audit: tuple[PairView, ...]
    num_seeds: int
    num_literals: tuple[int, int]
    spaces: tuple[str, str]
    """What the identifiers of either side begin with."""
    has_valid: bool
    """Whether there are held-out links to judge by."""
    columns: tuple[str, ...]


def report_html(inputs: ReportInputs, path: Path) -> int:
    """The whole run on one page."""
    page = report_page(inputs)
    script = asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    text = render(
        "report.html",
        page=page,
        summary=inputs.summary,
        measure="confidence" if _is_calibrated(inputs) else "score",
        style=asset("style.css"),
        script=script,
        script_hash=f"sha256-{digest}",
        version=__version__,
    )
    write_text(path, text)
    return 1


def report_page(inputs: ReportInputs) -> ReportPage:
    """What there is to show."""
    task, alignment, summary = inputs.task, inputs.alignment, inputs.summary
    match, settings = summary.match, summary.settings
    assert match is not None, "only a run with pairs is reported"
    literals = inputs.literals if inputs.literals is not None else Literals.empty()
    selected = selected_pairs(alignment, settings.match.selection, settings.match.k)
    # Held-out anchors are guesses by names, and no truth to judge by.
    by_links = match.calibration.basis == "valid links"
    valid = task.held_out(settings.protocol.seeds_from) if by_links else task.valid_links[:0]
    cuts = threshold_cuts(alignment, match, selected, valid)
    chosen, audit = (
        _surest_and_least(alignment.confidence, alignment.scores, alignment.accepted),
        audit_sample(alignment, _AUDIT),
    )
    viewer = PairViewer(task, inputs.names, literals, alignment, summary, np.concatenate([*chosen, audit]))
    views = [tuple(viewer.view(int(row)) for row in rows) for rows in (*chosen, audit)]
    training, evaluation = summary.training, summary.evaluation
    return ReportPage(
        task=task,
        cuts=cuts,
        own=next(place for place, cut in enumerate(cuts) if cut.threshold == match.threshold.threshold),
        histograms=_histograms(inputs, selected),
        reliability=reliability_plot(match.reliability, None if evaluation is None else evaluation.reliability),
        epochs=() if training is None else epoch_plots(training.history),
        sizes=sizes_plot(summary.quality) if summary.quality is not None and summary.quality.sizes else None,
        reasons=_reasons(alignment.reasons, task.num_source_entities),
        relations=_relations(inputs),
        surest=views[0],
        least_sure=views[1],
        audit=views[2],
        num_seeds=len(task.given_seeds(settings.protocol.seeds_from)),
        num_literals=literals.num_of_sides(task.num_source_entities),
        spaces=_spaces(inputs),
        has_valid=len(valid) > 0,
        columns=alignment.columns,
    )


def _is_calibrated(inputs: ReportInputs) -> bool:
    return inputs.summary.match is not None and inputs.summary.match.calibration.is_calibrated


def _histograms(inputs: ReportInputs, selected: Mask) -> tuple[Plot, ...]:
    found, match = inputs.alignment, inputs.summary.match
    assert match is not None
    accepted, measure = found.accepted[selected], match.calibration.measure
    rating = histogram_plot(
        f"Pairs by {measure}", measure, found.confidence[selected], accepted, match.threshold.threshold, unit=True
    )
    others = [("raw score", found.scores), ("margin", found.margins)]
    return (rating, *(histogram_plot(f"Pairs by {name}", name, values[selected], accepted) for name, values in others))


def _spaces(inputs: ReportInputs) -> tuple[str, str]:
    """What most of the first identifiers of either side begin with, up to their last part; nothing for plain names."""
    split, total = inputs.task.num_source_entities, inputs.task.num_entities
    found = []
    for begin, end in ((0, split), (split, total)):
        names = inputs.names.entities.take(np.arange(begin, min(end, begin + _SAMPLED)))
        spaces = Counter(name.removesuffix(shown.local_part(name)) for name in names if "://" in name)
        found.append(max(spaces, key=lambda space: spaces[space], default=""))
    return found[0], found[1]


def _surest_and_least(rating: IntArray, scores: IntArray, accepted: Mask) -> tuple[IntArray, IntArray]:
    """Rows of accepted pairs: the surest, surest first, and the least sure, least sure first."""
    rows = np.flatnonzero(accepted)
    order = rows[np.lexsort((-scores[rows], -rating[rows]))]
    least = order[_SUREST:][::-1][:_LEAST_SURE]
    return order[:_SUREST], least


def _reasons(codes: IntArray, num_sources: int) -> tuple[ReasonRow, ...]:
    sides = [np.bincount(part, minlength=len(REASONS)) for part in (codes[:num_sources], codes[num_sources:])]
    rows = [ReasonRow(name, int(sides[0][code]), int(sides[1][code])) for code, name in enumerate(REASONS)]
    return tuple(row for row in rows if row.source or row.target)


def _relations(inputs: ReportInputs) -> tuple[RelationRow, ...]:
    """The relations that most surely answer to each other; `^` before one whose triples point the other way."""
    found = inputs.relations
    order = np.argsort(-found.scores, kind="stable")[:_MOST_RELATIONS]
    mappings, names = found.mappings(), inputs.names.relations
    return tuple(
        RelationRow(
            names[int(found.pairs[row, 0])],
            ("^" if found.is_inverse[row] else "") + names[int(found.pairs[row, 1])],
            MAPPINGS[int(mappings[row])],
            float(found.scores[row]),
            int(found.counts[row]),
        )
        for row in order.tolist()
    )
