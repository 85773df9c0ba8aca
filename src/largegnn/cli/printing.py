"""Print results for people: tables, the figures of a run with their protocol, and its findings in sentences."""

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
    """A number with separators; small ones with two decimals."""
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def share(value: float | None) -> str:
    """A share of one with three decimals."""
    return "-" if value is None else f"{value:.3f}"


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


def print_costs(title: str, costs: Mapping[str, Cost]) -> None:
    """Seconds and peak memory of each step, and of all."""
    rows = [(name, f"{cost.seconds:.2f}", f"{cost.peak_memory_mb:,.0f}") for name, cost in costs.items()]
    total = sum(cost.seconds for cost in costs.values())
    peak = max((cost.peak_memory_mb for cost in costs.values()), default=0.0)
    print_table(title, ("step", "seconds", "peak MB"), [*rows, ("all", f"{total:.2f}", f"{peak:,.0f}")])


def print_figures(summary: RunSummary) -> None:
    """The ideal and the real setting, where there are test links."""
    evaluation = summary.evaluation
    if evaluation is None or evaluation.ideal is None or evaluation.real is None:
        return
    line = _protocol_line(evaluation.protocol) + _cluster_words(summary)
    measures = list(next(iter(evaluation.ideal.values())).source_to_target)
    rows = [
        (name, *(share(ranks.source_to_target[key]) for key in measures), share(ranks.mean.get(measures[0])))
        for name, ranks in evaluation.ideal.items()
    ]
    columns = ("scoring", *(_label(key) for key in measures), f"{_label(measures[0])} both ways")
    print_table(f"ideal setting: test sources rank all test targets; {line}", columns, rows)
    is_full = evaluation.protocol.gold == "full"
    judged = "every pair outside them counts as wrong" if is_full else "pairs that touch none of them are not judged"
    pairs = [
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
        f"real setting: pairs among all entities that are no seeds, {evaluation.protocol.gold} gold ({judged}); {line}",
        ("selection", "P", "R", "F1", "pairs" if is_full else "judged", *plain),
        pairs,
    )


def print_findings(result: AlignmentResult) -> None:
    """Sentences: the pairs and how many are right, why others have none, examples with evidence, what to do next."""
    match, task, folder = result.summary.match, result.task, result.run.folder
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
    """A few accepted pairs, each with its evidence."""
    pairs = result.pairs
    if not len(pairs):
        return
    by = "confidence" if "confidence" in pairs.columns else "score"
    click.echo(f"\nThe {'most confident pairs' if by == 'confidence' else 'pairs with the highest scores'}:")
    for pair in pairs.sort([by, "score"], descending=True).head(_NUM_EXAMPLES).iter_rows(named=True):
        names = (result.labels([pair[side]], side)[0] for side in ("source", "target"))
        click.echo(f"  {' = '.join(map(shown, names))}   {by} {pair[by]:.3f}")
        found = result.explain(pair["source"], "source", pair["target"]).candidates[0]
        click.echo(f"    {_reason(found, result)}")


def _reason(pair: CandidateExplanation, result: AlignmentResult) -> str:
    """The strongest evidence for a pair, in a few words."""
    reasons = []
    agreeing = [one for one in pair.values if one.agrees and one.kind != "name"]
    if agreeing:
        values = ", ".join(f"{local_part(one.source_predicate)} {shown(one.source_value, 40)}" for one in agreeing[:2])
        reasons.append(f"same {values}")
    if pair.matched_neighbors:
        one = pair.matched_neighbors[0]
        names = result.labels([one.source], "source")[0], result.labels([one.target], "target")[0]
        relations = (
            ", ".join(map(local_part, relations)) for relations in (one.source_relations, one.target_relations)
        )
        joined = " = ".join(f"{name} ({by})" for name, by in zip(names, relations, strict=True))
        reasons.append(f"{len(pair.matched_neighbors)} matched neighbours, for example {joined}")
    if not reasons:
        scores = [f"{name} {pair.evidence[name]:.3f}" for name in ("cosine", "literal") if name in pair.evidence]
        reasons.append(f"{', '.join(scores)}, margin {pair.margin or 0.0:.3f}; no matched neighbours")
    return "; ".join(reasons)


def print_reliability(title: str, rows: Sequence[ReliabilityRow] | None) -> None:
    """How often pairs of each tenth of the confidence are right."""
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
    """A protocol in one line."""
    seeds, ranked = protocol.seed_share, protocol.num_ranked_links
    some = "" if ranked in (None, protocol.num_test_links) else f" ({number(ranked or 0)} of them ranked)"
    given = (
        f"seeds from {protocol.seeds_from} ({number(protocol.num_seeds)}"
        f"{'' if seeds is None else f', {seeds:.0%} of the links'}), fold {protocol.fold}"
        if protocol.num_seeds
        else "no seeds"
    )
    found = f", {number(protocol.num_anchors)} anchors found by names and values" if protocol.num_anchors else ""
    return (
        f"{given}{found}, "
        f"{number(protocol.num_test_links)} test links{some}, channels {'+'.join(protocol.channels)}, "
        f"rounds {protocol.rounds}, random seed {protocol.seed}"
    )


def _cluster_words(summary: RunSummary) -> str:
    """The cluster a run was trained on, if any."""
    use = None if summary.training is None else summary.training.cluster
    return "" if use is None else f", trained by {number(use.num_workers)} workers on {number(use.num_nodes)} nodes"


def _label(measure: str) -> str:
    return measure.upper() if measure == "mrr" else measure.replace("hits@", "H@")
