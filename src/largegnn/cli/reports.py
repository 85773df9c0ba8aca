"""What the commands print about an alignment: figures with their protocol, what was found, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from largegnn.artifacts import Protocol, ReliabilityRow
from largegnn.cli.tables import number, print_table, share

if TYPE_CHECKING:
    from largegnn.result import AlignmentResult
    from largegnn.stages.report import RunSummary

__all__ = ["print_figures", "print_findings", "print_reliability", "protocol_line"]

_SUREST = 5


def print_figures(summary: RunSummary) -> None:
    """The ideal and the real setting, where there are test links."""
    evaluation = summary.evaluation
    if evaluation is None or evaluation.ideal is None or evaluation.real is None:
        return
    line = protocol_line(evaluation.protocol)
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
    """Sentences: how many pairs, how sure, why others have none, the surest with their evidence, where it all is."""
    summary = result.summary
    match = summary.match
    if match is None:
        return
    threshold, folder = match.threshold, result.run.folder
    task = result.task
    typer.echo(
        f"{match.num_accepted:,} pairs accepted between {task.num_source_entities:,} source and "
        f"{task.num_target_entities:,} target entities."
    )
    typer.echo(match.sentence())
    typer.echo(f"Threshold: {match.calibration.measure} {threshold.threshold:.3f}.")
    reasons = ", ".join(
        f"{count:,} {name}" for name, count in match.reasons.items() if count and name not in ("aligned", "seed")
    )
    if reasons:
        typer.echo(f"Unmatched entities: {reasons}.")
    _print_surest(result)
    typer.echo(f"\nPairs: {folder / 'alignment.tsv'}. Unmatched: {folder / 'unmatched.tsv'}.")
    typer.echo(f"Next: largegnn explain {folder} ENTITY; largegnn export {folder} --form sssom.")


def _print_surest(result: AlignmentResult) -> None:
    pairs = result.pairs
    if not len(pairs):
        return
    by = "confidence" if "confidence" in pairs.columns else "score"
    typer.echo("\nThe surest pairs:")
    for pair in pairs.sort([by, "score"], descending=True).head(_SUREST).iter_rows(named=True):
        typer.echo(f"  {_local(pair['source'])} = {_local(pair['target'])}   {by} {pair[by]:.3f}")
        best = result.explain(pair["source"], "source").candidates
        found = next((candidate for candidate in best if candidate.target == pair["target"]), None)
        near = () if found is None else found.matched_neighbors
        if near:
            one = near[0]
            typer.echo(
                f"    {len(near)} matched neighbours, for example {_local(one.source)} "
                f"({', '.join(map(_local, one.source_relations))}) = {_local(one.target)} "
                f"({', '.join(map(_local, one.target_relations))})"
            )
        else:
            typer.echo(f"    cosine {pair['cosine']:.3f}, margin {pair['margin']:.3f}; no matched neighbours")


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


def protocol_line(protocol: Protocol) -> str:
    """A protocol in one line."""
    seeds, ranked = protocol.seed_share, protocol.num_ranked_links
    some = "" if ranked in (None, protocol.num_test_links) else f" ({number(ranked or 0)} of them ranked)"
    return (
        f"seeds from {protocol.seeds_from} ({number(protocol.num_seeds)}"
        f"{'' if seeds is None else f', {seeds:.0%} of the links'}), fold {protocol.fold}, "
        f"{number(protocol.num_test_links)} test links{some}, channels {'+'.join(protocol.channels)}, "
        f"rounds {protocol.rounds}, random seed {protocol.seed}"
    )


def _local(name: str) -> str:
    """The last part of an IRI, which is what people read; a mark of direction before it stays."""
    mark = "^" if name.startswith("^") else ""
    last = name.rstrip("/").rsplit("/", 1)[-1].rsplit("#", 1)[-1] if "://" in name else name.removeprefix("^")
    return mark + (last or name.removeprefix("^"))


def _label(measure: str) -> str:
    return measure.upper() if measure == "mrr" else measure.replace("hits@", "H@")
