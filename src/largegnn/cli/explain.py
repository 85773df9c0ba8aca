"""`largegnn explain`: why an entity has its pair, or none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from largegnn.cli import options
from largegnn.cli.evaluate import RunArgument

if TYPE_CHECKING:
    from largegnn.review.explain import CandidateExplanation, Explanation

__all__ = ["explain_command"]

_NEIGHBORS = 10


def explain_command(
    run: RunArgument,
    entity: Annotated[str, typer.Argument(help="An entity, written as in its file.")],
    side: Annotated[
        str | None, typer.Option("--side", help="source or target. Needed where both have the name.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show an entity's candidates, the evidence for each, and the matched neighbours that speak for it."""
    from largegnn.api import open_run
    from largegnn.artifacts import to_plain

    result = open_run(run)
    found = result.explain(entity, side)
    if as_json:
        typer.echo(json.dumps(to_plain(found), indent=1))
        return
    typer.echo(_state(found))
    for pair in found.candidates:
        _print_candidate(pair, is_calibrated=result.is_calibrated)


def _state(found: Explanation) -> str:
    """What became of the entity, in a sentence."""
    name = f"{found.entity} ({found.side})"
    if found.seed_partner is not None:
        return f"{name} is a seed: it was given as the counterpart of {found.seed_partner}."
    best = found.candidates[0] if found.candidates else None
    sentences = {
        "aligned": f"{name} is matched.",
        "isolated": f"{name} is unmatched: it has no triple, so nothing is known of it.",
        "not covered": f"{name} is unmatched: it is in no subgraph, so it has no vector.",
        "below threshold": f"{name} is unmatched: its best pair is below the threshold.",
        "not mutual": f"{name} is unmatched: no candidate that it prefers prefers it.",
    }
    text = sentences.get(found.state, f"{name} is {found.state}.")
    if found.state == "not mutual" and best is not None and best.taken_by is not None:
        other = best.target if found.side == "source" else best.source
        text += f" Its best candidate {other} is matched with {best.taken_by}."
    elif best is None and found.state not in ("isolated", "not covered"):
        text += " It has no candidate that has it among its own nearest."
    return text


def _print_candidate(pair: CandidateExplanation, *, is_calibrated: bool) -> None:
    state = "accepted" if pair.accepted else "not accepted"
    typer.echo(f"\n{pair.rank}. {pair.source} = {pair.target}   {state}")
    sure = f"confidence {pair.confidence:.3f}, " if is_calibrated else ""
    evidence = ", ".join(f"{name} {value:.3f}" for name, value in pair.evidence.items())
    typer.echo(f"   {sure}score {pair.score:.3f}, margin {pair.margin:.3f}; {evidence}")
    if pair.taken_by is not None:
        typer.echo(f"   matched instead: {pair.taken_by}")
    for near in pair.matched_neighbors[:_NEIGHBORS]:
        typer.echo(
            f"   neighbours matched: {near.source} ({', '.join(near.source_relations)}) = "
            f"{near.target} ({', '.join(near.target_relations)})"
        )
    if len(pair.matched_neighbors) > _NEIGHBORS:
        typer.echo(f"   and {len(pair.matched_neighbors) - _NEIGHBORS:,} more")
