"""A result in a notebook: its charts, and its first pairs as a table.

In: what a finished run is. Out: HTML that a notebook shows. The charts are those of the report, in a frame of their
own, so that no style of theirs touches the notebook and no style of the notebook touches them; nothing in it can run.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from largegnn.machine.atomic import write_text
from largegnn.review.charts import Plot
from largegnn.review.report_page import report_page
from largegnn.review.templating import asset, render

if TYPE_CHECKING:
    import polars as pl

    from largegnn.stages.report import ReportInputs

__all__ = ["Charts", "charts_of", "pairs_html"]

_PER_ROW = 3
_CHART_HEIGHT, _CHART_WIDTH = 290, 400


@dataclass(frozen=True)
class Charts:
    """Charts of a run; a notebook shows them, `save` writes them as a page."""

    title: str
    plots: tuple[Plot, ...]

    def _repr_html_(self) -> str:
        rows = -(-len(self.plots) // _PER_ROW)
        width, height = min(len(self.plots), _PER_ROW) * _CHART_WIDTH, rows * _CHART_HEIGHT + 60
        return render("frame.html", page=self._page(), title=self.title, width=width, height=height)

    def __repr__(self) -> str:
        return f"Charts({self.title!r}: {', '.join(plot.title for plot in self.plots)})"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the charts as a page that loads nothing."""
        write_text(Path(path), self._page())

    def _page(self) -> str:
        return render("charts.html", title=self.title, plots=self.plots, style=asset("style.css"))


def charts_of(inputs: ReportInputs, title: str) -> Charts:
    """The charts of the report."""
    page = report_page(inputs)
    others = [plot for plot in (page.reliability, *page.epochs, page.sizes) if plot is not None]
    return Charts(title, (*page.histograms, *others))


def pairs_html(said: str, pairs: pl.DataFrame, most: int) -> str:
    """A sentence, and the first pairs as a table."""
    return render("pairs.html", said=said, columns=pairs.columns, rows=pairs.head(most).rows(), total=len(pairs))
