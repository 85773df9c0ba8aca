"""Write `report.html`: a run on one page that loads nothing, neither from the network nor from another file.

In: a finished run. Out: the file, and its charts alone for a notebook. Charts are SVG made here; a short script moves
the threshold. Pairs are counted, and shown as samples only, so that the page of a million pairs is no larger than the
page of a thousand. Its content security policy allows its own script alone, by hash.
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
from largegnn.review.charts import Charts, Plot, epoch_plots, histogram_plot, reliability_plot, sizes_plot
from largegnn.review.cuts import Cut, selected_pairs, threshold_cuts
from largegnn.review.pair_view import PairView, PairViewer, audit_sample
from largegnn.review.templating import asset, render
from largegnn.version import __version__

if TYPE_CHECKING:
    from largegnn.review.pages import ReportInputs

__all__ = ["RelationRow", "ReportPage", "charts_of", "report_html", "report_page"]

_MOST_CONFIDENT, _LEAST_CONFIDENT, _AUDIT = 8, 8, 20
_MOST_RELATIONS = 40
_SAMPLED = 100


@dataclass(frozen=True)
class RelationRow:
    """Two aligned relations: the kind of mapping, and the number of matched triples."""

    source: str
    target: str
    mapping: str
    score: float
    count: int


@dataclass(frozen=True)
class ReasonRow:
    """A reason, and the number of entities of either side that have it."""

    reason: str
    source: int
    target: int


@dataclass(frozen=True)
class ReportPage:
    """The values of the report's template, besides the summary of the run."""

    task: AlignmentTask
    cuts: tuple[Cut, ...]
    own: int
    histograms: tuple[Plot, ...]
    reliability: Plot | None
    epochs: tuple[Plot, ...]
    sizes: Plot | None
    reasons: tuple[ReasonRow, ...]
    relations: tuple[RelationRow, ...]
    most_confident: tuple[PairView, ...]
    least_confident: tuple[PairView, ...]
    audit: tuple[PairView, ...]
    num_seeds: int
    num_literals: tuple[int, int]
    spaces: tuple[str, str]
    """The common beginning of the identifiers of either side."""
    has_valid: bool
    """Whether held-out links are known."""
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


def charts_of(inputs: ReportInputs, title: str) -> Charts:
    """The charts of the report."""
    page = report_page(inputs)
    others = [plot for plot in (page.reliability, *page.epochs, page.sizes) if plot is not None]
    return Charts(title, (*page.histograms, *others))


def report_page(inputs: ReportInputs) -> ReportPage:
    """Collect the values of the page."""
    task, alignment, summary = inputs.task, inputs.alignment, inputs.summary
    match, settings = summary.match, summary.settings
    assert match is not None, "only a run with pairs is reported"
    literals = inputs.literals if inputs.literals is not None else Literals.empty()
    selected = selected_pairs(alignment, settings.match.selection, settings.match.k)
    # Held-out anchors are guesses by names, no reference to measure by.
    by_links = match.calibration.basis == "valid links"
    valid = task.held_out(settings.protocol.seeds_from) if by_links else task.valid_links[:0]
    cuts = threshold_cuts(alignment, match, selected, valid)
    samples = (*_most_and_least_confident(inputs), audit_sample(alignment, _AUDIT))
    viewer = PairViewer(task, inputs.names, literals, alignment, summary)
    views = [tuple(viewer.view(row) for row in rows.tolist()) for rows in samples]
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
        most_confident=views[0],
        least_confident=views[1],
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
    """The most frequent beginning of the first identifiers of either side; empty for plain names."""
    split, total = inputs.task.num_source_entities, inputs.task.num_entities
    found = []
    for begin, end in ((0, split), (split, total)):
        names = inputs.names.entities.take(np.arange(begin, min(end, begin + _SAMPLED)))
        spaces = Counter(name.removesuffix(shown.local_part(name)) for name in names if "://" in name)
        found.append(max(spaces, key=lambda space: spaces[space], default=""))
    return found[0], found[1]


def _most_and_least_confident(inputs: ReportInputs) -> tuple[IntArray, IntArray]:
    """Rows of accepted pairs: the most confident in descending order, the least confident in ascending order."""
    found = inputs.alignment
    rows = np.flatnonzero(found.accepted)
    order = rows[np.lexsort((-found.scores[rows], -found.confidence[rows]))]
    return order[:_MOST_CONFIDENT], order[_MOST_CONFIDENT:][::-1][:_LEAST_CONFIDENT]


def _reasons(codes: IntArray, num_sources: int) -> tuple[ReasonRow, ...]:
    sides = [np.bincount(part, minlength=len(REASONS)) for part in (codes[:num_sources], codes[num_sources:])]
    rows = [ReasonRow(name, int(sides[0][code]), int(sides[1][code])) for code, name in enumerate(REASONS)]
    return tuple(row for row in rows if row.source or row.target)


def _relations(inputs: ReportInputs) -> tuple[RelationRow, ...]:
    """The aligned relations of the highest scores; `^` before one whose triples point the other way."""
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
