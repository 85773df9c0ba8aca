"""Tables for people: two or more columns, numbers to the right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from largegnn.artifacts import Cost

__all__ = ["cost_rows", "number", "print_table", "share"]


def number(value: float) -> str:
    """A number with separators; small ones with two decimals."""
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def share(value: float | None) -> str:
    """A share of one with three decimals."""
    return "-" if value is None else f"{value:.3f}"


def cost_rows(costs: Mapping[str, Cost]) -> list[tuple[str, str, str]]:
    """Seconds and peak memory of each stage, and of all."""
    rows = [(name, f"{cost.seconds:.2f}", f"{cost.peak_memory_mb:,.0f}") for name, cost in costs.items()]
    total = sum(cost.seconds for cost in costs.values())
    peak = max((cost.peak_memory_mb for cost in costs.values()), default=0.0)
    return [*rows, ("all", f"{total:.2f}", f"{peak:,.0f}")]


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on standard output; the first column is text, the others are aligned right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.print(title, style="bold", markup=False, highlight=False, soft_wrap=True)
    console.print(table)
