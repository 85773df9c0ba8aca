"""Draw charts as SVG: histograms, lines, reliability, divisions of graphs.

In: numbers. Out: `Plot`s, which a template draws on a small canvas in the report, and `Charts`, several plots as one
picture for a notebook or a file. Charts are not made in the browser: the page stays small, needs no
library, prints, and reads without scripts. Colours are classes of the style sheet; lines also differ in their dashes,
so that a chart reads in black and white.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from largegnn.artifacts import EpochRecord, FloatArray, Mask, PartitionQuality, ReliabilityRow
from largegnn.errors import InputError
from largegnn.machine.atomic import write_text
from largegnn.review.templating import asset, render

__all__ = [
    "Charts",
    "Plot",
    "check_picture_file",
    "division_charts",
    "epoch_plots",
    "histogram_plot",
    "reliability_plot",
    "sizes_plot",
]

WIDTH, HEIGHT = 360, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 20, 38
_LEGEND_ROW, _LETTER = 16, 6  # the height of a row of the legend, the mean width of a letter
_BINS = 50
_PER_ROW, _GAP, _TITLE = 3, 24, 22  # plots in a row of a picture, the space between them, the height of a title
_KINDS = ("first", "second", "third", "fourth", "fifth", "sixth")
_SHARES = {
    "triples_kept": "triples",
    "train_kept": "train links",
    "valid_kept": "valid links",
    "test_kept": "test links",
}
_SUFFIXES = (".svg", ".html")


class Bar(NamedTuple):
    """So many from `low` to `high`, above the `base` others of its stack; a pointer on it shows the title."""

    low: float
    high: float
    base: int
    number: int
    kind: str
    title: str


class Dot(NamedTuple):
    """A point of a line, drawn where it has a radius; a pointer on it shows the title."""

    x: float
    y: float
    radius: float = 0
    title: str = ""


class Line(NamedTuple):
    """A line through points."""

    kind: str
    dots: Sequence[Dot]


@dataclass(frozen=True)
class Scale:
    """Maps a range of values to a range of positions."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def across(cls, low: float, high: float) -> Scale:
        """From left to right."""
        return cls(low, high, _LEFT, WIDTH - _RIGHT)

    @classmethod
    def upward(cls, low: float, high: float) -> Scale:
        """From the bottom to the top."""
        return cls(low, high, HEIGHT - _BOTTOM, _TOP)

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(self.start + min(max(share, 0.0), 1.0) * (self.end - self.start), 1)

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Round values along the range."""
        span = self.high - self.low
        if span <= 0 or not math.isfinite(span):
            return [(self.low, f"{self.low:g}")]
        size = 10 ** math.floor(math.log10(span / most))
        step = next(size * factor for factor in (1, 2, 5, 10) if span / (size * factor) <= most)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(number * step, f"{number * step:,.10g}") for number in range(first, last + 1)]


@dataclass(frozen=True)
class Plot:
    """A chart, which the template draws by its scales; `description` is its text for readers without the picture.

    `legend` has kinds with their names, `marker` is a vertical line at the threshold.
    """

    title: str
    description: str
    labels: tuple[str, str]
    x: Scale
    y: Scale
    bars: Sequence[Bar] = ()
    lines: Sequence[Line] = ()
    legend: Sequence[tuple[str, str]] = ()
    marker: float | None = None
    x_ticks: Sequence[tuple[float, str]] | None = None
    width: ClassVar[int] = WIDTH

    @property
    def legend_places(self) -> list[tuple[int, int, str, str]]:
        """Position, kind and text of each entry of the legend, below the chart."""
        found, x, y = [], _LEFT, HEIGHT + _LEGEND_ROW // 2
        for kind, text in self.legend:
            width = 30 + _LETTER * len(text)
            if x + width > WIDTH and x > _LEFT:
                x, y = _LEFT, y + _LEGEND_ROW
            found.append((x, y, kind, text))
            x += width
        return found

    @property
    def height(self) -> int:
        """The height with the legend."""
        return self.legend_places[-1][1] + _LEGEND_ROW // 2 if self.legend else HEIGHT


@dataclass(frozen=True)
class Charts:
    """Several plots as one picture: a notebook shows it, `save` writes it."""

    title: str
    plots: tuple[Plot, ...]

    def svg(self) -> str:
        """The picture, with rows of three plots."""
        cells, y = [], 0
        for start in range(0, len(self.plots), _PER_ROW):
            row = self.plots[start : start + _PER_ROW]
            cells += [(place * (WIDTH + _GAP), y, plot) for place, plot in enumerate(row)]
            y += _TITLE + max(plot.height for plot in row) + _GAP
        width = min(len(self.plots), _PER_ROW) * (WIDTH + _GAP)
        style = asset("charts.css")
        return render("charts.svg", title=self.title, cells=cells, width=width, height=y, style=style, gap=_TITLE)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture as .svg, or as a page that loads nothing, .html."""
        path = Path(path)
        check_picture_file(path)
        svg = self.svg()
        write_text(path, svg if path.suffix.lower() == ".svg" else render("charts.html", title=self.title, svg=svg))

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"Charts({self.title!r}: {', '.join(plot.title for plot in self.plots)})"


def check_picture_file(path: Path) -> None:
    """Refuse a file that cannot be drawn, before the work is done."""
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError("the picture's format is not known", expected=" or ".join(_SUFFIXES), found=path.name)
    if not path.parent.is_dir():
        raise InputError("there is no folder for the picture", where=str(path.parent))


def histogram_plot(
    title: str, label: str, values: FloatArray, accepted: Mask, marker: float | None = None, unit: bool = False
) -> Plot:
    """The number of pairs (p,) by their value, accepted ones in a colour of their own; `unit`: values from 0 to 1."""
    is_finite = np.isfinite(values)
    finite, is_accepted = values[is_finite].astype(np.float64), accepted[is_finite]
    low, high = (0.0, 1.0) if unit else (float(finite.min(initial=0)), float(finite.max(initial=0)))
    if high <= low:
        high = low + 1.0
    edges = np.linspace(low, high, _BINS + 1).tolist()
    counts = [np.histogram(finite[mask], edges)[0].tolist() for mask in (is_accepted, ~is_accepted)]
    bars, highest = [], 1
    for begin, end, ours, others in zip(edges[:-1], edges[1:], *counts, strict=True):
        span = f"{begin:.3g} to {end:.3g}"
        bars.append(Bar(begin, end, 0, ours, "accepted", f"{span}: {ours:,} accepted"))
        bars.append(Bar(begin, end, ours, others, "other", f"{span}: {others:,} not accepted"))
        highest = max(highest, ours + others)
    return Plot(
        title,
        f"Histogram of {len(finite):,} pairs by {label}, from {low:.3g} to {high:.3g}; {is_accepted.sum():,} accepted.",
        (label, "pairs"),
        Scale.across(low, high),
        Scale.upward(0, highest),
        bars=[bar for bar in bars if bar.number],
        legend=(("accepted", "accepted"), ("other", "not accepted")),
        marker=marker,
    )


def sizes_plot(quality: PartitionQuality, title: str = "Subgraphs", *, by_side: bool = False) -> Plot:
    """The entities of each subgraph, from the largest to the smallest: own and landmarks, or of each side."""
    lower_name, upper_name = ("source", "target") if by_side else ("own entities", "landmarks")
    uppers = np.subtract(quality.sizes, quality.source_sizes).tolist() if by_side else quality.num_landmarks
    rows = sorted(zip(quality.sizes, uppers, strict=True), reverse=True)
    shown = rows[:: max(1, len(rows) // 120)]  # many subgraphs as a sample
    bars = []
    for place, (size, upper) in enumerate(shown):
        text = f"{size:,} entities: {size - upper:,} {lower_name}, {upper:,} {upper_name}"
        bars.append(Bar(place, place + 1, 0, size - upper, "accepted", text))
        bars.append(Bar(place, place + 1, size - upper, upper, "other", text))
    return Plot(
        title,
        f"{len(rows)} subgraphs of {rows[-1][0]:,} to {rows[0][0]:,} entities.",
        (f"{len(rows):,} subgraphs, largest first", "entities"),
        Scale.across(0, len(shown)),
        Scale.upward(0, max(1, rows[0][0])),
        bars=[bar for bar in bars if bar.number],
        legend=(("accepted", lower_name), ("other", upper_name)),
        x_ticks=(),
    )


def reliability_plot(valid: Sequence[ReliabilityRow] | None, test: Sequence[ReliabilityRow] | None) -> Plot | None:
    """The share of right pairs against their mean confidence, by tenths; None where no share is known."""
    lines, legend = [Line("even", (Dot(0, 0), Dot(1, 1)))], []
    for kind, name, rows in (("first", "valid links", valid), ("second", "test links", test)):
        most = max((row.pairs for row in rows or ()), default=0)
        dots = [
            Dot(
                row.confidence,
                row.right,
                round(2 + 4 * math.sqrt(row.pairs / most), 1),
                f"{name}, confidence {row.low:.1f} to {row.high:.1f}: {row.confidence:.3f}, right {row.right:.3f}, "
                f"{row.pairs:,} pairs",
            )
            for row in rows or ()
            if row.confidence is not None and row.right is not None
        ]
        if dots:
            lines.append(Line(kind, dots))
            legend.append((kind, name))
    if not legend:
        return None
    return Plot(
        "Reliability",
        "The share of right pairs against their mean confidence; on the diagonal the two are equal.",
        ("mean confidence", "share right"),
        Scale.across(0, 1),
        Scale.upward(0, 1),
        lines=lines,
        legend=legend,
    )


def epoch_plots(history: Sequence[EpochRecord]) -> tuple[Plot, ...]:
    """The loss by epoch, and the H@1 of the valid links if measured; a line for each member of the ensemble."""
    losses = [(record.member, record.epoch + 1, record.loss) for record in history if math.isfinite(record.loss)]
    hits = [(record.member, record.epoch + 1, record.valid_hits) for record in history if record.valid_hits is not None]
    plots = []
    for title, label, points in (("Loss", "mean loss", losses), ("Valid H@1", "H@1", hits)):
        if not points:
            continue
        low, high = min(value for _, _, value in points), max(value for _, _, value in points)
        pad = 0.05 * (high - low) or 0.5 * abs(high) or 0.5
        lines: dict[int, list[Dot]] = {}
        for member, epoch, value in points:
            lines.setdefault(member, []).append(Dot(epoch, value, 2, f"epoch {epoch}: {value:.4f}"))
        plots.append(
            Plot(
                title,
                f"{title} by epoch: {points[0][2]:.4g} at the start, {points[-1][2]:.4g} at epoch {points[-1][1]}.",
                ("epoch", label),
                Scale.across(1, max(2, 1 + max(record.epoch for record in history))),
                Scale.upward(max(0.0, low - pad) if low >= 0 else low - pad, high + pad),
                lines=[Line("first", dots) for dots in lines.values()],
            )
        )
    return tuple(plots)


def division_charts(divisions: Sequence[tuple[str, PartitionQuality]]) -> Charts:
    """Divisions by their method: shares kept against the number of parts, and sizes of subgraphs (paper, figure 3)."""
    shares = [_share_plot(divisions, key, name) for key, name in _SHARES.items()]
    sizes = [
        sizes_plot(quality, f"{method}, {len(quality.sizes)} parts", by_side=by_side)
        for method, quality in divisions
        for by_side in (True, False)
    ]
    return Charts("Divisions", (*(plot for plot in shares if plot is not None), *sizes))


def _share_plot(divisions: Sequence[tuple[str, PartitionQuality]], key: str, name: str) -> Plot | None:
    """The share of one kind that is kept, against the number of parts; None where it is unknown."""
    found = [(len(quality.sizes), getattr(quality, key), method) for method, quality in divisions]
    known = sorted((parts, share, method) for parts, share, method in found if share is not None)
    if not known:
        return None
    numbers = sorted({parts for parts, _, _ in known})
    low, high = min(share for _, share, _ in known), max(share for _, share, _ in known)
    pad = 0.05 * (high - low) or 0.05
    kinds = dict(zip(dict.fromkeys(method for method, _ in divisions), itertools.cycle(_KINDS), strict=False))
    lines: dict[str, list[Dot]] = {method: [] for method in kinds}
    for parts, share, method in known:
        lines[method].append(Dot(numbers.index(parts), share, 3, f"{method}, {parts} parts: {share:.3f}"))
    return Plot(
        f"{name.capitalize()} kept",
        f"Share of {name} with both ends in one subgraph, by method and number of subgraphs.",
        ("number of subgraphs", "share kept"),
        Scale.across(-0.5, len(numbers) - 0.5),
        Scale.upward(max(0.0, low - pad), min(1.0, high + pad)),
        lines=[Line(kinds[method], dots) for method, dots in lines.items()],
        legend=[(kind, method) for method, kind in kinds.items()],
        x_ticks=[(place, f"{number:,}") for place, number in enumerate(numbers)],
    )
