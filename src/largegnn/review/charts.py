"""Charts as places on a small canvas: histograms, lines, reliability. A template draws them as SVG.

In: numbers. Out: a `Plot`. Charts are made here and not in the browser: the page stays small, needs no library, prints,
and reads without scripts. Colours are classes, so that light and dark are the style sheet's affair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from largegnn.artifacts import EpochRecord, FloatArray, Mask, PartitionQuality, ReliabilityRow

__all__ = [
    "Bar",
    "Dot",
    "Line",
    "Plot",
    "epoch_plots",
    "histogram_plot",
    "reliability_plot",
    "sizes_plot",
]

WIDTH, HEIGHT = 360, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 20, 38
_BINS = 50


@dataclass(frozen=True)
class Bar:
    """A rectangle with what it stands for."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str


@dataclass(frozen=True)
class Line:
    """A line through places."""

    points: str
    kind: str


@dataclass(frozen=True)
class Dot:
    """A dot with what it stands for."""

    x: float
    y: float
    radius: float
    kind: str
    title: str


@dataclass(frozen=True)
class Plot:
    """All that a chart shows; `description` says it to those who do not see it."""

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
    """Where a vertical line stands, as the threshold."""
    width: int = WIDTH
    height: int = HEIGHT
    left: int = field(default=_LEFT)
    bottom: int = field(default=HEIGHT - _BOTTOM)
    right: int = field(default=WIDTH - _RIGHT)
    top: int = field(default=_TOP)


@dataclass(frozen=True)
class _Scale:
    """From a range of values to a range of places."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, most: int = 5) -> tuple[tuple[float, str], ...]:
        """Round values along the range, with their places."""
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


def histogram_plot(
    title: str, label: str, values: FloatArray, accepted: Mask, marker: float | None = None, unit: bool = False
) -> Plot:
    """How many pairs (p,) have each value; accepted ones have a colour of their own. `unit`: values from 0 to 1."""
    finite = values[np.isfinite(values)].astype(np.float64)
    taken = accepted[np.isfinite(values)]
    low, high = (0.0, 1.0) if unit else (float(finite.min(initial=0)), float(finite.max(initial=0)))
    if high <= low:
        high = low + 1.0
    edges = np.linspace(low, high, _BINS + 1)
    counts = [np.histogram(finite[mask], edges)[0] for mask in (taken, ~taken)]
    across, upward = _across(low, high), _upward(0, float(max(1, (counts[0] + counts[1]).max())))
    bars = []
    for place in range(_BINS):
        left, right = across(edges[place]), across(edges[place + 1])
        base = 0
        for kind, count in (("accepted", int(counts[0][place])), ("other", int(counts[1][place]))):
            if count:
                top, bottom = upward(base + count), upward(base)
                # One pair among thousands is still to be seen.
                top = min(top, bottom - 1.5)
                span = f"{edges[place]:.3g} to {edges[place + 1]:.3g}"
                said = "accepted" if kind == "accepted" else "not accepted"
                bars.append(
                    Bar(
                        left,
                        top,
                        round(max(right - left - 0.5, 0.5), 1),
                        round(bottom - top, 1),
                        kind,
                        f"{span}: {count:,} {said}",
                    )
                )
                base += count
    return Plot(
        title,
        f"Histogram of {len(finite):,} pairs by {label}, from {low:.3g} to {high:.3g}; {int(taken.sum()):,} accepted.",
        label,
        "pairs",
        across.ticks(),
        upward.ticks(4),
        bars=tuple(bars),
        legend=(("accepted", "accepted"), ("other", "not accepted")),
        marker=None if marker is None else across(min(max(marker, low), high)),
    )


def reliability_plot(valid: Sequence[ReliabilityRow] | None, test: Sequence[ReliabilityRow] | None) -> Plot | None:
    """The share that is right against the mean confidence, by tenths; None where nothing is known."""
    across, upward = _across(0, 1), _upward(0, 1)
    dots, lines, legend = [], [], []
    for kind, name, rows in (("first", "valid links", valid), ("second", "test links", test)):
        known = [row for row in rows or () if row.confidence is not None and row.right is not None]
        if not known:
            continue
        legend.append((kind, name))
        most = max(row.pairs for row in known)
        places = [(across(row.confidence or 0.0), upward(row.right or 0.0), row) for row in known]
        lines.append(Line(" ".join(f"{x},{y}" for x, y, _ in places), kind))
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
    even = Line(f"{across(0)},{upward(0)} {across(1)},{upward(1)}", "even")
    return Plot(
        "Reliability",
        "The share of right pairs against their mean confidence; on the diagonal the confidence keeps what it says.",
        "mean confidence",
        "share right",
        across.ticks(),
        upward.ticks(),
        lines=(even, *lines),
        dots=tuple(dots),
        legend=tuple(legend),
    )


def epoch_plots(history: Sequence[EpochRecord]) -> tuple[Plot, ...]:
    """The loss by epoch, and the H@1 of the valid links where it was measured; a line for each member."""
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
                f"{title} by epoch: {points[0][1]:.4g} at first, {points[-1][1]:.4g} at epoch {points[-1][0]}.",
                "epoch",
                label,
                across.ticks(),
                upward.ticks(),
                lines=tuple(Line(" ".join(f"{across(x)},{upward(y)}" for x, y, _ in own), "first") for own in members),
                dots=tuple(Dot(across(x), upward(y), 2, "first", f"epoch {x}: {y:.4f}") for x, y, _ in points),
            )
        )
    return tuple(plots)


def sizes_plot(quality: PartitionQuality) -> Plot:
    """The entities of each subgraph: its own, and landmarks; many subgraphs from the largest to the smallest."""
    rows = sorted(zip(quality.sizes, quality.num_landmarks, strict=True), reverse=True)
    step = max(1, len(rows) // 120)
    shown = rows[::step]
    across, upward = _across(0, len(shown)), _upward(0, max(1, *(size for size, _ in rows)))
    bars = []
    for place, (size, landmarks) in enumerate(shown):
        left, right = across(place), across(place + 1)
        width = round(max(0.5, right - left - min(2.0, (right - left) / 5)), 1)
        own = upward(size - landmarks)
        title = f"{size:,} entities, {landmarks:,} of them landmarks"
        bars.append(Bar(left, own, width, round(upward(0) - own, 1), "accepted", title))
        if landmarks:
            top = upward(size)
            bars.append(Bar(left, top, width, round(own - top, 1), "other", title))
    return Plot(
        "Subgraphs",
        f"{len(rows)} subgraphs of {rows[-1][0]:,} to {rows[0][0]:,} entities.",
        f"{len(rows):,} subgraphs, largest first",
        "entities",
        (),
        upward.ticks(),
        bars=tuple(bars),
        legend=(("accepted", "own entities"), ("other", "landmarks")),
    )
