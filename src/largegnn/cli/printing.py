"""Print results on the terminal: tables, the figures of a run with their protocol, and its findings in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from largegnn.data.shown import local_part, shown

if TYPE_CHECKING:
    from largegnn.artifacts import Cost, Protocol, ReliabilityRow
    from largegnn.result import AlignmentResult
    from largegnn.review.explain import CandidateExplanation
    from largegnn.run import RunSummary

__all__ = ["number", "print_costs", "print_figures", "print_findings", "print_reliability", "print_table", "share"]

_NUM_EXAMPLES = 5


def number(value: float) -> str:
    """Format a number with thousands separators; a float gets two decimals."""
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def share(value: float | None) -> str:
    """Format a share, from 0 to 1, with three decimals; None becomes a dash."""
    return "-" if value is None else f"{value:.3f}"


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on standard output; the first column is aligned left, the others right."""
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


def print_costs(title: str, costs: Mapping[str, Cost]) -> None:
    """Print the seconds and peak memory of each step, and of all steps together."""
    rows = [(name, f"{cost.seconds:.2f}", f"{cost.peak_memory_mb:,.0f}") for name, cost in costs.items()]
    total = sum(cost.seconds for cost in costs.values())
    peak = max((cost.peak_memory_mb for cost in costs.values()), default=0.0)
    print_table(title, ("step", "seconds", "peak MB"), [*rows, ("all", f"{total:.2f}", f"{peak:,.0f}")])


def print_figures(summary: RunSummary) -> None:
    """Print the figures in the ideal and the real setting, if there are test links."""
    evaluation = summary.evaluation
    if evaluation is None or evaluation.ideal is None or evaluation.real is None:
        return
    line = _protocol_line(evaluation.protocol) + _cluster_note(summary)
    measures = list(next(iter(evaluation.ideal.values())).source_to_target)
    rows = [
        (name, *(share(ranks.source_to_target[key]) for key in measures), share(ranks.mean.get(measures[0])))
        for name, ranks in evaluation.ideal.items()
    ]
    columns = ("scoring", *(_label(key) for key in measures), f"{_label(measures[0])} both ways")
    print_table(f"ideal setting: test sources rank all test targets; {line}", columns, rows)
    is_full = evaluation.protocol.gold == "full"
    judged = (
        "every pair outside the test links counts as wrong"
        if is_full
        else "pairs that touch no test link are not judged"
    )
    rows_of_pairs = [
        (
            name,
            share(figures.precision if is_full else figures.partial_precision),
            share(figures.recall),
            share(figures.f1 if is_full else figures.partial_f1),
            number(figures.pairs if is_full else figures.judged),
            *(() if is_full else (share(figures.precision), share(figures.f1), number(figures.pairs))),
        )
        for name, figures in evaluation.real.items()
    ]
    plain = () if is_full else ("plain P", "plain F1", "pairs")
    print_table(
        f"real setting: pairs among all entities except seeds, {evaluation.protocol.gold} gold ({judged}); {line}",
        ("selection", "P", "R", "F1", "pairs" if is_full else "judged", *plain),
        rows_of_pairs,
    )


def print_findings(result: AlignmentResult) -> None:
    """Print the findings in sentences: pairs, expected precision, reasons, examples with evidence, next commands."""
    match, task = result.summary.match, result.task
    folder = result.run.folder
    assert match is not None, "a result has pairs"
    click.echo(
        f"{match.num_accepted:,} pairs accepted between {task.num_source_entities:,} source and "
        f"{task.num_target_entities:,} target entities."
    )
    if match.num_anchors:
        click.echo(
            f"Training started from {match.num_anchors:,} anchors, pairs that names and values make almost certain; "
            f"{match.num_given_up:,} were rejected in the end."
        )
    click.echo(match.sentence())
    click.echo(f"Threshold: {match.calibration.measure} {match.threshold.threshold:.3f}.")
    reasons = ", ".join(
        f"{count:,} {name}" for name, count in match.reasons.items() if count and name not in ("aligned", "seed")
    )
    if reasons:
        click.echo(f"Unmatched entities: {reasons}.")
    _print_examples(result)
    click.echo(f"\nPairs: {folder / 'alignment.tsv'}. Unmatched: {folder / 'unmatched.tsv'}.")
    if (folder / "report.html").exists():
        click.echo(f"Report: {folder / 'report.html'}. To check pairs: largegnn review {folder}.")
    click.echo(f"Next: largegnn explain {folder} ENTITY; largegnn export {folder} --form sssom.")


def _print_examples(result: AlignmentResult) -> None:
    """Print a few accepted pairs, each with its evidence."""
    pairs = result.pairs
    if not len(pairs):
        return
    column = "confidence" if "confidence" in pairs.columns else "score"
    click.echo(f"\nThe {'most confident pairs' if column == 'confidence' else 'pairs with the highest scores'}:")
    for pair in pairs.sort([column, "score"], descending=True).head(_NUM_EXAMPLES).iter_rows(named=True):
        names = (result.labels([pair[side]], side)[0] for side in ("source", "target"))
        click.echo(f"  {' = '.join(map(shown, names))}   {column} {pair[column]:.3f}")
        explanation = result.explain(pair["source"], "source", pair["target"])
        click.echo(f"    {_reason(explanation.candidates[0], result)}")


def _reason(pair: CandidateExplanation, result: AlignmentResult) -> str:
    """Describe the strongest evidence for a pair in a few words."""
    reasons = []
    agreeing = [value for value in pair.values if value.agrees and value.kind != "name"]
    if agreeing:
        values = ", ".join(
            f"{local_part(value.source_predicate)} {shown(value.source_value, 40)}" for value in agreeing[:2]
        )
        reasons.append(f"same {values}")
    if pair.matched_neighbors:
        neighbor = pair.matched_neighbors[0]
        names = result.labels([neighbor.source], "source")[0], result.labels([neighbor.target], "target")[0]
        relations = (
            ", ".join(map(local_part, relations))
            for relations in (neighbor.source_relations, neighbor.target_relations)
        )
        joined = " = ".join(f"{name} ({relation})" for name, relation in zip(names, relations, strict=True))
        reasons.append(f"{len(pair.matched_neighbors)} matched neighbours, for example {joined}")
    if not reasons:
        scores = [f"{name} {pair.evidence[name]:.3f}" for name in ("cosine", "literal") if name in pair.evidence]
        reasons.append(f"{', '.join(scores)}, margin {pair.margin or 0.0:.3f}; no matched neighbours")
    return "; ".join(reasons)


def print_reliability(title: str, rows: Sequence[ReliabilityRow] | None) -> None:
    """Print how often the pairs in each tenth of the confidence are right."""
    if rows:
        print_table(
            f"reliability by {title}",
            ("confidence", "pairs", "mean", "right"),
            [
                (f"{row.low:.1f} to {row.high:.1f}", f"{row.pairs:,}", share(row.confidence), share(row.right))
                for row in rows
                if row.pairs
            ],
        )


def _protocol_line(protocol: Protocol) -> str:
    """Describe a protocol in one line."""
    seed_share = protocol.seed_share
    ranked = protocol.num_ranked_links
    ranked_note = "" if ranked in (None, protocol.num_test_links) else f" ({number(ranked or 0)} of them ranked)"
    seeds = (
        f"seeds from {protocol.seeds_from} ({number(protocol.num_seeds)}"
        f"{'' if seed_share is None else f', {seed_share:.0%} of the links'}), fold {protocol.fold}"
        if protocol.num_seeds
        else "no seeds"
    )
    anchors = f", {number(protocol.num_anchors)} anchors found by names and values" if protocol.num_anchors else ""
    return (
        f"{seeds}{anchors}, "
        f"{number(protocol.num_test_links)} test links{ranked_note}, channels {'+'.join(protocol.channels)}, "
        f"rounds {protocol.rounds}, random seed {protocol.seed}"
    )


def _cluster_note(summary: RunSummary) -> str:
    """Describe the cluster that a run was trained on, if any."""
    use = None if summary.training is None else summary.training.cluster
    return "" if use is None else f", trained by {number(use.num_workers)} workers on {number(use.num_nodes)} nodes"


def _label(measure: str) -> str:
    return measure.upper() if measure == "mrr" else measure.replace("hits@", "H@")
