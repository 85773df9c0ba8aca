"""Write `report.html`: a run on one page that loads nothing from the network or from other files.

In: a finished run. Out: the file, or only its charts for a notebook. Charts are SVG in the page; a short script shows
the outcome of other thresholds. Pairs are counted, and only samples are shown, so the page of a million pairs is no
larger than the page of a thousand. The content security policy of the page allows only its own script, by its hash.
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

_NUM_MOST_CONFIDENT, _NUM_LEAST_CONFIDENT, _NUM_RANDOM = 8, 8, 20  # example pairs
_MAX_RELATIONS = 40
_NUM_SAMPLED_NAMES = 100


def report_html(inputs: ReportInputs, path: Path) -> int:
    """Write the whole run on one page; returns 1, the number of files."""
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
    """Draw the charts of the report as one picture."""
    plots = _plots(inputs, _selected(inputs))
    optional_plots = (plots["reliability"], *plots["epochs"], plots["sizes"])
    return Charts(title, (*plots["histograms"], *(plot for plot in optional_plots if plot is not None)))


def _page(inputs: ReportInputs) -> dict[str, Any]:
    """Collect the values of the template, besides the summary of the run."""
    task, alignment, summary = inputs.task, inputs.alignment, inputs.summary
    match, settings = inputs.match, summary.settings
    literals = inputs.literals if inputs.literals is not None else Literals.empty()
    selected = _selected(inputs)
    # Held-out anchors are guesses by names, so precision and recall are not measured on them.
    by_links = match.calibration.basis == "valid links"
    valid = task.held_out(settings.protocol.seeds_from) if by_links else task.valid_links[:0]
    cuts = threshold_cuts(alignment, match, selected, valid)
    viewer = PairViewer(task, inputs.names, literals, alignment, summary)
    relations = relations_table(inputs.relations, inputs.names)
    return {
        "task": task,
        "cuts": cuts,
        "run_cut": [cut.threshold for cut in cuts].index(match.threshold.threshold),
        **_plots(inputs, selected),
        "reasons": _reasons(alignment.reasons, task.num_source_entities),
        "relations": relations.sort("score", descending=True, maintain_order=True).head(_MAX_RELATIONS).to_dicts(),
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
    """Draw the charts: `histograms` and `epochs` are several plots, `reliability` and `sizes` one plot or None."""
    alignment, match, summary = inputs.alignment, inputs.match, inputs.summary
    accepted, measure = alignment.accepted[selected], match.calibration.measure
    by_confidence = histogram_plot(
        f"Pairs by {measure}", measure, alignment.confidence[selected], accepted, match.threshold.threshold, unit=True
    )
    others = [("raw score", alignment.scores), ("margin", alignment.margins)]
    quality, evaluation = summary.quality, summary.evaluation
    return {
        "histograms": [
            by_confidence,
            *(histogram_plot(f"Pairs by {name}", name, values[selected], accepted) for name, values in others),
        ],
        "reliability": reliability_plot(match.reliability, None if evaluation is None else evaluation.reliability),
        "epochs": () if summary.training is None else epoch_plots(summary.training.history),
        "sizes": sizes_plot(quality) if quality is not None and quality.sizes else None,
    }


def _spaces(inputs: ReportInputs) -> list[str]:
    """The most frequent namespace among the first identifiers of either side; empty for plain names."""
    split, total = inputs.task.num_source_entities, inputs.task.num_entities
    namespaces = []
    for begin, end in ((0, split), (split, total)):
        names = inputs.names.entities.take(np.arange(begin, min(end, begin + _NUM_SAMPLED_NAMES)))
        spaces = Counter(name.removesuffix(shown.local_part(name)) for name in names if "://" in name)
        namespaces.append(max(spaces, key=lambda space: spaces[space], default=""))
    return namespaces


def _samples(alignment: Alignment) -> dict[str, list[int]]:
    """Choose accepted pairs to show; returns rows by title."""
    rows = np.flatnonzero(alignment.accepted)
    order = rows[np.lexsort((-alignment.scores[rows], -alignment.confidence[rows]))]
    return {
        "Most confident": order[:_NUM_MOST_CONFIDENT].tolist(),
        "Accepted with the lowest confidence": order[_NUM_MOST_CONFIDENT:][::-1][:_NUM_LEAST_CONFIDENT].tolist(),
        "Random sample of the accepted pairs": audit_sample(alignment, _NUM_RANDOM).tolist(),
    }


def _reasons(codes: IntArray, num_sources: int) -> list[tuple[str, int, int]]:
    """Count the entities of either side by the reason of their state; reasons without entities are omitted."""
    sides = [np.bincount(part, minlength=len(REASONS)).tolist() for part in (codes[:num_sources], codes[num_sources:])]
    return [row for row in zip(REASONS, *sides, strict=True) if row[1] or row[2]]
