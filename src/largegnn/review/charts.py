"""Draw charts as SVG: histograms, lines, reliability, divisions of graphs.

In: numbers. Out: `Plot`s with positions on a small canvas, which a template draws in the report, and `Charts`, several
plots as one picture for a notebook or a file. Charts are not made in the browser: the page stays small, needs no
library, prints, and reads without scripts. Colours are classes of the style sheet; lines also differ in their dashes,
so that a chart reads in black and white.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import ClassVar

import numpy as np

from largegnn.artifacts import EpochRecord, FloatArray, Mask, PartitionQuality, ReliabilityRow
from largegnn.errors import InputError
from largegnn.machine.atomic import write_text
from largegnn.review.templating import asset, render

__all__ = [
    "Bar",
    "Charts",
    "Dot",
    "Line",
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


@dataclass(frozen=True)
class Bar:
    """A rectangle; a pointer on it shows the title."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str


@dataclass(frozen=True)
class Line:
    """A line through points."""

    points: str
    kind: str


@dataclass(frozen=True)
class Dot:
    """A dot; a pointer on it shows the title."""

    x: float
    y: float
    radius: float
    kind: str
    title: str


@dataclass(frozen=True)
class Plot:
    """A chart; `description` is its text for readers without the picture, `marker` a vertical line at the threshold."""

    title: str
    description: str
    x_label: str
    y_label: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    bars: tuple[Bar, ...] = ()
    lines: tuple[Line, ...] = ()
    dots: tuple[Dot, ...] = ()
    legend: tuple[tuple[str, str], ...] = ()
    marker: float | None = None
    width: ClassVar[int] = WIDTH
    left: ClassVar[int] = _LEFT
    right: ClassVar[int] = WIDTH - _RIGHT
    top: ClassVar[int] = _TOP
    bottom: ClassVar[int] = HEIGHT - _BOTTOM

    @property
    def legend_places(self) -> tuple[tuple[int, int, str, str], ...]:
        """Position, kind and text of each entry of the legend, below the chart."""
        found, x, y = [], _LEFT, HEIGHT + _LEGEND_ROW // 2
        for kind, text in self.legend:
            width = 30 + _LETTER * len(text)
            if x + width > WIDTH and x > _LEFT:
                x, y = _LEFT, y + _LEGEND_ROW
            found.append((x, y, kind, text))
            x += width
        return tuple(found)

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


@dataclass(frozen=True)
class _Scale:
    """Maps a range of values to a range of positions."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, most: int = 5) -> tuple[tuple[float, str], ...]:
        """Round values along the range, with their positions."""
        span = self.high - self.low
        if span <= 0 or not math.isfinite(span):
            return ((self(self.low), f"{self.low:g}"),)
        size = 10 ** math.floor(math.log10(span / most))
        step = next(size * factor for factor in (1, 2, 5, 10) if span / (size * factor) <= most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return tuple((self(number * step), f"{number * step:,.10g}") for number in range(first, last + 1))


def _across(low: float, high: float) -> _Scale:
    return _Scale(low, high, _LEFT, WIDTH - _RIGHT)


def _upward(low: float, high: float) -> _Scale:
    return _Scale(low, high, HEIGHT - _BOTTOM, _TOP)


def _stacked_bars(
    across: _Scale, upward: _Scale, stacks: Iterable[tuple[float, float, Sequence[tuple[str, float, str]]]]
) -> tuple[Bar, ...]:
    """Bars above each other: for each stack where it begins and ends, and kind, height and title of its parts."""
    bars = []
    for low, high, parts in stacks:
        left, right = across(low), across(high)
        width = round(max(0.5, right - left - min(2.0, (right - left) / 5)), 1)
        base = 0.0
        for kind, count, title in parts:
            if count:
                bottom = upward(base)
                # One pair among thousands is still visible.
                top = min(upward(base + count), bottom - 1.5)
                bars.append(Bar(left, top, width, round(bottom - top, 1), kind, title))
                base += count
    return tuple(bars)


def _polyline(points: Iterable[tuple[float, float]], kind: str) -> Line:
    return Line(" ".join(f"{x},{y}" for x, y in points), kind)


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
    across, upward = _across(low, high), _upward(0, float(max(1, *map(sum, zip(*counts, strict=True)))))
    stacks = []
    for begin, end, num_accepted, num_others in zip(edges[:-1], edges[1:], *counts, strict=True):
        span = f"{begin:.3g} to {end:.3g}"
        accepted_part = ("accepted", num_accepted, f"{span}: {num_accepted:,} accepted")
        stacks.append((begin, end, (accepted_part, ("other", num_others, f"{span}: {num_others:,} not accepted"))))
    return Plot(
        title,
        f"Histogram of {len(finite):,} pairs by {label}, from {low:.3g} to {high:.3g}; {is_accepted.sum():,} accepted.",
        label,
        "pairs",
        across.ticks(),
        upward.ticks(4),
        bars=_stacked_bars(across, upward, stacks),
        legend=(("accepted", "accepted"), ("other", "not accepted")),
        marker=None if marker is None else across(min(max(marker, low), high)),
    )


def reliability_plot(valid: Sequence[ReliabilityRow] | None, test: Sequence[ReliabilityRow] | None) -> Plot | None:
    """The share of right pairs against their mean confidence, by tenths; None where no share is known."""
    across, upward = _across(0, 1), _upward(0, 1)
    dots, lines, legend = [], [], []
    for kind, name, rows in (("first", "valid links", valid), ("second", "test links", test)):
        known = [row for row in rows or () if row.confidence is not None and row.right is not None]
        if not known:
            continue
        legend.append((kind, name))
        most = max(row.pairs for row in known)
        places = [(across(row.confidence or 0.0), upward(row.right or 0.0), row) for row in known]
        lines.append(_polyline([(x, y) for x, y, _ in places], kind))
        dots += [
            Dot(
                x,
                y,
                round(2 + 4 * math.sqrt(row.pairs / most), 1),
                kind,
                f"{name}, confidence {row.low:.1f} to {row.high:.1f}: {row.confidence:.3f}, right {row.right:.3f}, "
                f"{row.pairs:,} pairs",
            )
            for x, y, row in places
        ]
    if not legend:
        return None
    diagonal = _polyline([(across(0), upward(0)), (across(1), upward(1))], "even")
    return Plot(
        "Reliability",
        "The share of right pairs against their mean confidence; on the diagonal the two are equal.",
        "mean confidence",
        "share right",
        across.ticks(),
        upward.ticks(),
        lines=(diagonal, *lines),
        dots=tuple(dots),
        legend=tuple(legend),
    )


def epoch_plots(history: Sequence[EpochRecord]) -> tuple[Plot, ...]:
    """The loss by epoch, and the H@1 of the valid links if measured; a line for each member of the ensemble."""
    losses = [(record.epoch + 1, record.loss, record.member) for record in history if math.isfinite(record.loss)]
    hits = [(record.epoch + 1, record.valid_hits, record.member) for record in history if record.valid_hits is not None]
    plots = []
    for title, label, points in (("Loss", "mean loss", losses), ("Valid H@1", "H@1", hits)):
        if not points:
            continue
        low, high = min(value for _, value, _ in points), max(value for _, value, _ in points)
        pad = 0.05 * (high - low) or 0.5 * abs(high) or 0.5
        across = _across(1, max(2, 1 + max(record.epoch for record in history)))
        members = [
            [point for point in points if point[2] == member] for member in sorted({point[2] for point in points})
        ]
        upward = _upward(max(0.0, low - pad) if low >= 0 else low - pad, high + pad)
        plots.append(
            Plot(
                title,
                f"{title} by epoch: {points[0][1]:.4g} at the start, {points[-1][1]:.4g} at epoch {points[-1][0]}.",
                "epoch",
                label,
                across.ticks(),
                upward.ticks(),
                lines=tuple(_polyline([(across(x), upward(y)) for x, y, _ in own], "first") for own in members),
                dots=tuple(Dot(across(x), upward(y), 2, "first", f"epoch {x}: {y:.4f}") for x, y, _ in points),
            )
        )
    return tuple(plots)


def sizes_plot(quality: PartitionQuality, title: str = "Subgraphs", *, by_side: bool = False) -> Plot:
    """The entities of each subgraph, from the largest to the smallest: own and landmarks, or of each side."""
    lower_name, upper_name = ("source", "target") if by_side else ("own entities", "landmarks")
    uppers = np.subtract(quality.sizes, quality.source_sizes).tolist() if by_side else quality.num_landmarks
    rows = sorted(zip(quality.sizes, uppers, strict=True), reverse=True)
    shown = rows[:: max(1, len(rows) // 120)]  # many subgraphs as a sample
    across, upward = _across(0, len(shown)), _upward(0, max(1, rows[0][0]))
    stacks = []
    for place, (size, upper) in enumerate(shown):
        name = f"{size:,} entities: {size - upper:,} {lower_name}, {upper:,} {upper_name}"
        stacks.append((place, place + 1, (("accepted", size - upper, name), ("other", upper, name))))
    return Plot(
        title,
        f"{len(rows)} subgraphs of {rows[-1][0]:,} to {rows[0][0]:,} entities.",
        f"{len(rows):,} subgraphs, largest first",
        "entities",
        (),
        upward.ticks(),
        bars=_stacked_bars(across, upward, stacks),
        legend=(("accepted", lower_name), ("other", upper_name)),
    )


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
    known = [
        (method, len(quality.sizes), float(getattr(quality, key)))
        for method, quality in divisions
        if getattr(quality, key) is not None
    ]
    if not known:
        return None
    numbers, methods = sorted({parts for _, parts, _ in known}), dict.fromkeys(method for method, _ in divisions)
    shares = [share for _, _, share in known]
    pad = 0.05 * (max(shares) - min(shares)) or 0.05
    across = _across(-0.5, len(numbers) - 0.5)
    upward = _upward(max(0.0, min(shares) - pad), min(1.0, max(shares) + pad))
    lines, dots, legend = [], [], []
    for kind, method in zip(itertools.cycle(_KINDS), methods, strict=False):
        own = [(across(numbers.index(parts)), upward(share), parts, share) for m, parts, share in known if m == method]
        own.sort()
        lines.append(_polyline([(x, y) for x, y, _, _ in own], kind))
        dots += [Dot(x, y, 3, kind, f"{method}, {parts} parts: {share:.3f}") for x, y, parts, share in own]
        legend.append((kind, method))
    return Plot(
        f"{name.capitalize()} kept",
        f"Share of {name} with both ends in one subgraph, by method and number of subgraphs.",
        "number of subgraphs",
        "share kept",
        tuple((across(place), f"{number:,}") for place, number in enumerate(numbers)),
        upward.ticks(),
        lines=tuple(lines),
        dots=tuple(dots),
        legend=tuple(legend),
    )
