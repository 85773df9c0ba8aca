"""Draw charts as SVG: histograms, lines, reliability diagrams, divisions of graphs.

In: numbers. Out: `Plot`s, which a template draws at a small fixed size in the report, and `Charts`, several plots as
one picture for a notebook or a file. Charts are drawn here and not in the browser, so the page stays small, needs no
library, and can be printed and read without scripts. Colours are classes of the style sheet; lines also differ in
their dashes, so that a chart can be read in black and white.
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
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 20, 38  # the margins
_LEGEND_ROW_HEIGHT = 16
_LETTER_WIDTH = 6  # on average
_BINS = 50
_PLOTS_PER_ROW = 3
_GAP = 24  # between plots
_TITLE_HEIGHT = 22
_MAX_SUBGRAPHS = 120  # drawn in one plot
_KINDS = ("first", "second", "third", "fourth", "fifth", "sixth")
_SHARES = {
    "triples_kept": "triples",
    "train_kept": "train links",
    "valid_kept": "valid links",
    "test_kept": "test links",
}
_SUFFIXES = (".svg", ".html")


class Bar(NamedTuple):
    """A bar of height `number` from `low` to `high`, on top of `base`; the pointer shows the title."""

    low: float
    high: float
    base: int
    number: int
    kind: str
    title: str


class Dot(NamedTuple):
    """A point of a line, drawn as a circle if it has a radius; the pointer shows the title."""

    x: float
    y: float
    radius: float = 0
    title: str = ""


class Line(NamedTuple):
    """A line through points; `kind` is its class in the style sheet."""

    kind: str
    dots: Sequence[Dot]


@dataclass(frozen=True)
class Scale:
    """A linear map from a range of values to a range of positions."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def across(cls, low: float, high: float) -> Scale:
        """A horizontal scale, from left to right."""
        return cls(low, high, _LEFT, WIDTH - _RIGHT)

    @classmethod
    def upward(cls, low: float, high: float) -> Scale:
        """A vertical scale, from the bottom to the top."""
        return cls(low, high, HEIGHT - _BOTTOM, _TOP)

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(self.start + min(max(share, 0.0), 1.0) * (self.end - self.start), 1)

    def ticks(self, maximum: int = 5) -> list[tuple[float, str]]:
        """Round values along the range with their texts, about `maximum` of them."""
        span = self.high - self.low
        if span <= 0 or not math.isfinite(span):
            return [(self.low, f"{self.low:g}")]
        size = 10 ** math.floor(math.log10(span / maximum))
        step = next(size * factor for factor in (1, 2, 5, 10) if span / (size * factor) <= maximum)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(number * step, f"{number * step:,.10g}") for number in range(first, last + 1)]


@dataclass(frozen=True)
class Plot:
    """A chart, which the template draws by its scales; `description` is for readers who do not see the picture.

    `legend` has the kinds of bars or lines with their names, `marker` is the value of a vertical line.
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
        places = []
        x, y = _LEFT, HEIGHT + _LEGEND_ROW_HEIGHT // 2
        for kind, text in self.legend:
            width = 30 + _LETTER_WIDTH * len(text)
            if x + width > WIDTH and x > _LEFT:
                x, y = _LEFT, y + _LEGEND_ROW_HEIGHT
            places.append((x, y, kind, text))
            x += width
        return places

    @property
    def height(self) -> int:
        """The height, including the legend."""
        return self.legend_places[-1][1] + _LEGEND_ROW_HEIGHT // 2 if self.legend else HEIGHT


@dataclass(frozen=True)
class Charts:
    """Several plots as one picture, which a notebook shows and `save` writes."""

    title: str
    plots: tuple[Plot, ...]

    def svg(self) -> str:
        """The picture, with rows of three plots."""
        cells = []
        y = 0
        for start in range(0, len(self.plots), _PLOTS_PER_ROW):
            row = self.plots[start : start + _PLOTS_PER_ROW]
            cells += [(column * (WIDTH + _GAP), y, plot) for column, plot in enumerate(row)]
            y += _TITLE_HEIGHT + max(plot.height for plot in row) + _GAP
        width = min(len(self.plots), _PLOTS_PER_ROW) * (WIDTH + _GAP)
        style = asset("charts.css")
        return render(
            "charts.svg", title=self.title, cells=cells, width=width, height=y, style=style, gap=_TITLE_HEIGHT
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture as an .svg file, or as an .html page that loads no other file."""
        path = Path(path)
        check_picture_file(path)
        svg = self.svg()
        write_text(path, svg if path.suffix.lower() == ".svg" else render("charts.html", title=self.title, svg=svg))

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"Charts({self.title!r}: {', '.join(plot.title for plot in self.plots)})"


def check_picture_file(path: Path) -> None:
    """Raise an error for a picture that could not be written, before the work is done."""
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError("the format of the picture is not known", expected=" or ".join(_SUFFIXES), found=path.name)
    if not path.parent.is_dir():
        raise InputError("the folder of the picture does not exist", where=str(path.parent))


def histogram_plot(
    title: str, label: str, values: FloatArray, accepted: Mask, marker: float | None = None, unit: bool = False
) -> Plot:
    """Draw the number of pairs by their values (p,), with accepted pairs in their own colour; `unit`: from 0 to 1."""
    is_finite = np.isfinite(values)
    finite, is_accepted = values[is_finite].astype(np.float64), accepted[is_finite]
    low, high = (0.0, 1.0) if unit else (float(finite.min(initial=0)), float(finite.max(initial=0)))
    if high <= low:
        high = low + 1.0
    edges = np.linspace(low, high, _BINS + 1).tolist()
    counts = [np.histogram(finite[mask], edges)[0].tolist() for mask in (is_accepted, ~is_accepted)]
    bars, highest = [], 1
    for begin, end, num_accepted, num_others in zip(edges[:-1], edges[1:], *counts, strict=True):
        span = f"{begin:.3g} to {end:.3g}"
        bars.append(Bar(begin, end, 0, num_accepted, "accepted", f"{span}: {num_accepted:,} accepted"))
        bars.append(Bar(begin, end, num_accepted, num_others, "other", f"{span}: {num_others:,} not accepted"))
        highest = max(highest, num_accepted + num_others)
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
    """Draw the sizes of the subgraphs, largest first: own entities and landmarks, or source and target entities."""
    lower_name, upper_name = ("source", "target") if by_side else ("own entities", "landmarks")
    uppers = np.subtract(quality.sizes, quality.source_sizes).tolist() if by_side else quality.num_landmarks
    rows = sorted(zip(quality.sizes, uppers, strict=True), reverse=True)
    shown = rows[:: max(1, len(rows) // _MAX_SUBGRAPHS)]  # of very many subgraphs, a sample
    bars = []
    for position, (size, upper) in enumerate(shown):
        text = f"{size:,} entities: {size - upper:,} {lower_name}, {upper:,} {upper_name}"
        bars.append(Bar(position, position + 1, 0, size - upper, "accepted", text))
        bars.append(Bar(position, position + 1, size - upper, upper, "other", text))
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
    """Draw the share of right pairs against their mean confidence, by tenths; None where no share is known."""
    lines = [Line("even", (Dot(0, 0), Dot(1, 1)))]
    legend = []
    for kind, name, rows in (("first", "valid links", valid), ("second", "test links", test)):
        max_pairs = max((row.pairs for row in rows or ()), default=0)
        dots = [
            Dot(
                row.confidence,
                row.right,
                round(2 + 4 * math.sqrt(row.pairs / max_pairs), 1),
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
    """Draw the loss by epoch, and the H@1 of the valid links if measured; a line for each member of the ensemble."""
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
    """Compare divisions: the shares kept against the number of subgraphs, and the sizes (figure 3 of the paper)."""
    shares = [_share_plot(divisions, key, name) for key, name in _SHARES.items()]
    sizes = [
        sizes_plot(quality, f"{method}, {len(quality.sizes)} parts", by_side=by_side)
        for method, quality in divisions
        for by_side in (True, False)
    ]
    return Charts("Divisions", (*(plot for plot in shares if plot is not None), *sizes))


def _share_plot(divisions: Sequence[tuple[str, PartitionQuality]], key: str, name: str) -> Plot | None:
    """Draw the share in `key` against the number of subgraphs, a line for each method; None where it is unknown."""
    values = [(len(quality.sizes), getattr(quality, key), method) for method, quality in divisions]
    known = sorted((parts, share, method) for parts, share, method in values if share is not None)
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
        x_ticks=[(position, f"{number:,}") for position, number in enumerate(numbers)],
    )
