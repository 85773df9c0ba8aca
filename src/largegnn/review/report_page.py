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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largegnn.artifacts import REASONS, Alignment, IntArray, Mask
from largegnn.artifacts.literals import Literals
from largegnn.data import shown
from largegnn.machine.atomic import write_text
from largegnn.review.charts import Charts, epoch_plots, histogram_plot, reliability_plot, sizes_plot
from largegnn.review.cuts import selected_pairs, threshold_cuts
from largegnn.review.pair_view import PairViewer, audit_sample
from largegnn.review.tables import relations_table
from largegnn.review.templating import asset, render
from largegnn.version import __version__

if TYPE_CHECKING:
    from largegnn.review.pages import ReportInputs

__all__ = ["charts_of", "report_html"]

_MOST_CONFIDENT, _LEAST_CONFIDENT, _AUDIT = 8, 8, 20
_MOST_RELATIONS = 40
_SAMPLED = 100


def report_html(inputs: ReportInputs, path: Path) -> int:
    """The whole run on one page."""
    page = _page(inputs)
    script = asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    text = render(
        "report.html",
        page=page,
        summary=inputs.summary,
        measure="confidence" if inputs.match.calibration.is_calibrated else "score",
        style=asset("style.css"),
        script=script,
        script_hash=f"sha256-{digest}",
        version=__version__,
    )
    write_text(path, text)
    return 1


def charts_of(inputs: ReportInputs, title: str) -> Charts:
    """The charts of the report."""
    plots = _plots(inputs, _selected(inputs))
    others = [plot for plot in (plots["reliability"], *plots["epochs"], plots["sizes"]) if plot is not None]
    return Charts(title, (*plots["histograms"], *others))


def _page(inputs: ReportInputs) -> dict[str, Any]:
    """The values of the report's template, besides the summary of the run."""
    task, alignment, summary = inputs.task, inputs.alignment, inputs.summary
    match, settings = inputs.match, summary.settings
    literals = inputs.literals if inputs.literals is not None else Literals.empty()
    selected = _selected(inputs)
    # Held-out anchors are guesses by names, no reference to measure by.
    by_links = match.calibration.basis == "valid links"
    valid = task.held_out(settings.protocol.seeds_from) if by_links else task.valid_links[:0]
    cuts = threshold_cuts(alignment, match, selected, valid)
    viewer = PairViewer(task, inputs.names, literals, alignment, summary)
    relations = relations_table(inputs.relations, inputs.names)
    return {
        "task": task,
        "cuts": cuts,
        "own": [cut.threshold for cut in cuts].index(match.threshold.threshold),
        **_plots(inputs, selected),
        "reasons": _reasons(alignment.reasons, task.num_source_entities),
        "relations": relations.sort("score", descending=True, maintain_order=True).head(_MOST_RELATIONS).to_dicts(),
        "samples": {title: [viewer.view(row) for row in rows] for title, rows in _samples(alignment).items()},
        "num_seeds": len(task.given_seeds(settings.protocol.seeds_from)),
        "num_literals": literals.num_of_sides(task.num_source_entities),
        "spaces": _spaces(inputs),  # the common beginning of the identifiers of either side
        "has_valid": len(valid) > 0,  # whether held-out links are known
        "columns": alignment.columns,
    }


def _selected(inputs: ReportInputs) -> Mask:
    settings = inputs.summary.settings.match
    return selected_pairs(inputs.alignment, settings.selection, settings.k)


def _plots(inputs: ReportInputs, selected: Mask) -> dict[str, Any]:
    """The charts: `histograms` and `epochs` are several, `reliability` and `sizes` one or None."""
    found, match, summary = inputs.alignment, inputs.match, inputs.summary
    accepted, measure = found.accepted[selected], match.calibration.measure
    rating = histogram_plot(
        f"Pairs by {measure}", measure, found.confidence[selected], accepted, match.threshold.threshold, unit=True
    )
    others = [("raw score", found.scores), ("margin", found.margins)]
    quality, evaluation = summary.quality, summary.evaluation
    return {
        "histograms": [
            rating,
            *(histogram_plot(f"Pairs by {name}", name, values[selected], accepted) for name, values in others),
        ],
        "reliability": reliability_plot(match.reliability, None if evaluation is None else evaluation.reliability),
        "epochs": () if summary.training is None else epoch_plots(summary.training.history),
        "sizes": sizes_plot(quality) if quality is not None and quality.sizes else None,
    }


def _spaces(inputs: ReportInputs) -> list[str]:
    """The most frequent beginning of the first identifiers of either side; empty for plain names."""
    split, total = inputs.task.num_source_entities, inputs.task.num_entities
    found = []
    for begin, end in ((0, split), (split, total)):
        names = inputs.names.entities.take(np.arange(begin, min(end, begin + _SAMPLED)))
        spaces = Counter(name.removesuffix(shown.local_part(name)) for name in names if "://" in name)
        found.append(max(spaces, key=lambda space: spaces[space], default=""))
    return found


def _samples(alignment: Alignment) -> dict[str, list[int]]:
    """Rows of accepted pairs by title."""
    rows = np.flatnonzero(alignment.accepted)
    order = rows[np.lexsort((-alignment.scores[rows], -alignment.confidence[rows]))]
    return {
        "Most confident": order[:_MOST_CONFIDENT].tolist(),
        "Accepted with the lowest confidence": order[_MOST_CONFIDENT:][::-1][:_LEAST_CONFIDENT].tolist(),
        "Random sample of the accepted pairs": audit_sample(alignment, _AUDIT).tolist(),
    }


def _reasons(codes: IntArray, num_sources: int) -> list[tuple[str, int, int]]:
    """The reasons that entities have, with the number of entities of either side."""
    sides = [np.bincount(part, minlength=len(REASONS)).tolist() for part in (codes[:num_sources], codes[num_sources:])]
    return [row for row in zip(REASONS, *sides, strict=True) if row[1] or row[2]]
