"""`largegnn explain`: why an entity is matched or unmatched."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from largegnn.cli import options
from largegnn.cli.evaluate import RunArgument
from largegnn.data.shown import shown

if TYPE_CHECKING:
    from largegnn.review.explain import CandidateExplanation, Explanation

__all__ = ["explain_command"]

_NEIGHBORS = 10
_LONGEST_VALUE = 80
_NOTABLE = 0.01  # a difference of scores worth printing


def explain_command(
    run: RunArgument,
    entity: Annotated[str, typer.Argument(help="An entity, written as in its file.")],
    target: Annotated[
        str | None, typer.Argument(help="A target entity: explain this pair alone, candidate or not.")
    ] = None,
    side: Annotated[
        str | None, typer.Option("--side", help="source or target. Needed where both have the name.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show an entity's candidates with the evidence for and against each: scores, values, matched neighbours."""
    from largegnn.artifacts import to_plain
    from largegnn.result import AlignmentResult

    result = AlignmentResult.open(run)
    found = result.explain(entity, side, target)
    if as_json:
        typer.echo(json.dumps(to_plain(found), indent=1))
        return
    typer.echo(_state(found))
    if found.path_to_seed:
        path = " ".join(f"-{step.relation}-> {step.entity}" for step in found.path_to_seed)
        typer.echo(f"Nearest seed: {path}")
    for pair in found.candidates:
        _print_candidate(pair, is_calibrated=result.is_calibrated)
    _print_difference(found)


def _state(found: Explanation) -> str:
    """The state of the entity, in a sentence."""
    name = f"{found.entity} ({found.side})"
    if found.seed_partner is not None:
        return f"{name} is a seed: its given counterpart is {found.seed_partner}."
    best = found.candidates[0] if found.candidates else None
    sentences = {
        "aligned": f"{name} is matched.",
        "isolated": f"{name} is unmatched: it has no triple.",
        "not covered": f"{name} is unmatched: it is in no subgraph, so it has no vector.",
        "below threshold": f"{name} is unmatched: its best pair is below the threshold.",
        "not mutual": f"{name} is unmatched: no candidate ranks it first.",
    }
    text = sentences.get(found.state, f"{name} is {found.state}.")
    if found.state == "not mutual" and best is not None and best.matched_elsewhere is not None:
        other = best.target if found.side == "source" else best.source
        text += f" Its best candidate {other} is matched with {best.matched_elsewhere}."
    elif best is None and found.state not in ("isolated", "not covered"):
        text += " It has no candidate: no near entity of the other graph has it among its own nearest."
    return text


def _print_candidate(pair: CandidateExplanation, *, is_calibrated: bool) -> None:
    state = "accepted" if pair.accepted else "not accepted"
    rank = "" if pair.rank is None else f"{pair.rank}. "
    typer.echo(f"\n{rank}{pair.source} = {pair.target}   {state if pair.rank else 'no candidate'}")
    if pair.source_names or pair.target_names:
        typer.echo(f"   names: {_listed(pair.source_names)} = {_listed(pair.target_names)}")
    if pair.score is not None and pair.margin is not None:
        sure = f"confidence {pair.confidence:.3f}, " if is_calibrated else ""
        evidence = ", ".join(f"{name} {value:.3f}" for name, value in pair.evidence.items())
        typer.echo(f"   {sure}score {pair.score:.3f}, margin {pair.margin:.3f}; {evidence}")
    if pair.contributions:
        added = ", ".join(f"{name} {value:+.3f}" for name, value in pair.contributions.items() if abs(value) >= 0.0005)
        typer.echo(f"   contributions to the score: {added}")
    if pair.matched_elsewhere is not None:
        typer.echo(f"   matched elsewhere: {pair.matched_elsewhere}")
    for one in pair.values:
        left, right = shown(one.source_value, _LONGEST_VALUE), shown(one.target_value, _LONGEST_VALUE)
        typer.echo(
            f"   values {'agree' if one.agrees else 'differ'} ({one.odds:+.1f}): "
            f"{one.source_predicate} {left!r}, {one.target_predicate} {right!r}"
        )
    for near in pair.matched_neighbors[:_NEIGHBORS]:
        typer.echo(
            f"   neighbours matched: {near.source} ({', '.join(near.source_relations)}) = "
            f"{near.target} ({', '.join(near.target_relations)})"
        )
    if len(pair.matched_neighbors) > _NEIGHBORS:
        typer.echo(f"   and {len(pair.matched_neighbors) - _NEIGHBORS:,} more")


def _print_difference(found: Explanation) -> None:
    """The evidence that separates the best candidate from the next one."""
    if len(found.candidates) < 2:
        return
    first, second = found.candidates[:2]
    apart = {
        name: first.contributions.get(name, 0.0) - second.contributions.get(name, 0.0)
        for name in {**first.contributions, **second.contributions}
    }
    notable = sorted((name for name in apart if abs(apart[name]) >= _NOTABLE), key=lambda name: -abs(apart[name]))
    if notable:
        other = second.target if found.side == "source" else second.source
        why = ", ".join(f"{name} {apart[name]:+.3f}" for name in notable[:3])
        typer.echo(f"\nDifference between the first and {other}: {why}.")


def _listed(names: tuple[str, ...]) -> str:
    return " | ".join(shown(name, _LONGEST_VALUE) for name in names) or "(none)"
