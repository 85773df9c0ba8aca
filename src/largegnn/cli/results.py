"""`largegnn evaluate`, `compare`, `explain`, `report` and `export`: the commands that read a finished run."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from largegnn.cli import options
from largegnn.cli.printing import number, print_figures, print_findings, print_reliability, print_table
from largegnn.data.shown import shown
from largegnn.errors import InputError
from largegnn.parts import EXPORTERS

if TYPE_CHECKING:
    from largegnn.review.explain import CandidateExplanation, Explanation

__all__ = ["compare_command", "evaluate_command", "explain_command", "export_command", "report_command"]

_GOLD = ("auto", "full", "partial")
_FORMS = f"{', '.join(EXPORTERS)}, sssom-relations, embeddings-safetensors, embeddings-npy"
_NEIGHBORS = 10
_LONGEST_VALUE = 80
_NOTABLE = 0.01  # a difference of scores worth printing


@click.command("evaluate")
@options.run_argument
@click.option("--test-links", type=options.PATH, help="Links to judge by instead of the run's own. Nothing is written.")
@click.option(
    "--gold",
    help="full: the links are complete, so pairs outside them are wrong. partial: pairs that touch none of them are "
    "not judged. Default: auto, full where every entity of a side has a link.",
)
@click.option("--skip-unknown", is_flag=True, help="Skip test links that name unknown entities.")
@options.json_option
def evaluate_command(run: Path, test_links: Path | None, gold: str | None, skip_unknown: bool, as_json: bool) -> None:
    """Measure a run by test links, in the ideal and the real setting."""
    from largegnn.figures import evaluate_by, evaluated_run
    from largegnn.result import AlignmentResult
    from largegnn.run import Run

    if gold is not None and gold not in _GOLD:
        raise InputError(f"there is no gold {gold[:100]!r}", expected=", ".join(_GOLD))
    if test_links is None and gold is None:
        result = AlignmentResult(evaluated_run(run))
        summary = result.summary
    else:
        result = AlignmentResult(Run.open(run, needs="match"))
        evaluation = evaluate_by(result.run, test_links, gold, skip_unknown=skip_unknown)
        summary = dataclasses.replace(result.summary, evaluation=evaluation)
    if as_json:
        click.echo(json.dumps(summary.to_dict(), indent=1))
        return
    assert summary.evaluation is not None
    assert summary.match is not None
    if summary.evaluation.ideal is None:
        click.echo("The run has no test links to measure it by. Give some with --test-links FILE.")
    print_figures(summary)
    print_reliability("halves of the valid links, each judged by the other", summary.match.reliability)
    print_reliability("test links", summary.evaluation.reliability)
    print_findings(result)


@click.command("compare")
@click.argument("runs", type=options.PATH, nargs=-1, required=True, help="Two or more run folders.")
@options.json_option
def compare_command(runs: tuple[Path, ...], as_json: bool) -> None:
    """Compare runs: the settings that differ, and the figures."""
    from largegnn.figures import compare_runs

    found = compare_runs(list(runs))
    if as_json:
        reports = {name: summary.to_dict() for name, summary in found.summaries.items()}
        click.echo(json.dumps({"settings": found.settings, "figures": found.figures, "reports": reports}, indent=1))
        return
    names = list(found.summaries)
    rows = [(key, *(str(values[name]) for name in names)) for key, values in found.settings.items()]
    print_table("settings that differ", ("setting", *names), rows or [("none", *("" for _ in names))])
    figures = [(label, *(_figure(values[name]) for name in names)) for label, values in found.figures.items()]
    print_table("figures", ("", *names), figures)


def _figure(value: float | int | str | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}" if value <= 1 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else value


@click.command("report")
@options.run_argument
@options.json_option
def report_command(run: Path, as_json: bool) -> None:
    """Write the files of a finished run again: report.html, report.json, pairs and unmatched entities."""
    from largegnn.pipeline import run_pipeline
    from largegnn.run import Run

    found = Run.open(run, needs="match")
    pages = tuple(dict.fromkeys([*found.settings.report.pages, "report.html"]))
    report = found.settings.report.model_copy(update={"pages": pages})
    settings = found.settings.model_copy(update={"report": report})
    written = run_pipeline(run, found.given, settings, force="report").pages
    _print_written({str(run / name): rows for name, rows in written.items()}, as_json)


@click.command("export")
@options.run_argument
@click.option("--form", "forms", multiple=True, required=True, help=f"{_FORMS}. May be repeated.")
@click.option("--out", "-o", type=options.PATH, help="Folder for the files. Default: the run folder.")
@click.option(
    "--all", "all_candidates", is_flag=True, help="tsv and parquet: all candidate pairs, not only the accepted ones."
)
@click.option("--base-iri", help="IRI to put before names that are not valid IRIs, in RDF forms.")
@click.option("--target-base-iri", help="The same for target names. Default: as --base-iri.")
@click.option("--prefix", multiple=True, help="What a prefix of names stands for, as name=IRI. May be repeated.")
@options.json_option
def export_command(
    run: Path,
    forms: tuple[str, ...],
    out: Path | None,
    all_candidates: bool,
    base_iri: str | None,
    target_base_iri: str | None,
    prefix: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write an alignment as TSV, Parquet, RDF or SSSOM, or its embeddings.

    Other forms are for Neo4j and Wikidata.
    """
    from largegnn.api import open_run
    from largegnn.export import file_of_form

    result, folder = open_run(run), out or run
    paths = {form: folder / file_of_form(form) for form in dict.fromkeys(forms)}
    rows = {
        str(path): result.export(
            form,
            path,
            accepted_only=not all_candidates,
            base_iri=base_iri,
            target_base_iri=target_base_iri,
            prefixes=dict(map(_prefix, prefix)),
        )
        for form, path in paths.items()
    }
    _print_written(rows, as_json)


def _prefix(text: str) -> tuple[str, str]:
    name, equals, iri = text.partition("=")
    if not equals or not name or not iri:
        raise InputError(
            "--prefix takes name=IRI", found=text[:100], fix="for example --prefix dbr=http://dbpedia.org/resource/"
        )
    return name, iri


def _print_written(rows: dict[str, int], as_json: bool) -> None:
    """The files that were written, with the rows in each."""
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    else:
        print_table("written", ("file", "rows"), [(path, number(count)) for path, count in rows.items()])


@click.command("explain")
@options.run_argument
@click.argument("entity", help="An entity, written as in its file.")
@click.argument("target", required=False, help="A target entity: explain this pair alone, candidate or not.")
@click.option("--side", help="source or target. Needed where both have the name.")
@options.json_option
def explain_command(run: Path, entity: str, target: str | None, side: str | None, as_json: bool) -> None:
    """Show why an entity is matched or unmatched.

    Its candidates are listed with the evidence for and against each: scores, values, matched neighbours.
    """
    from largegnn.artifacts import to_plain
    from largegnn.result import AlignmentResult

    result = AlignmentResult.open(run)
    found = result.explain(entity, side, target)
    if as_json:
        click.echo(json.dumps(to_plain(found), indent=1))
        return
    click.echo(_state(found))
    if found.path_to_seed:
        path = " ".join(f"-{step.relation}-> {step.entity}" for step in found.path_to_seed)
        click.echo(f"Nearest seed: {path}")
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
    click.echo(f"\n{rank}{pair.source} = {pair.target}   {state if pair.rank else 'no candidate'}")
    if pair.source_names or pair.target_names:
        click.echo(f"   names: {_listed(pair.source_names)} = {_listed(pair.target_names)}")
    if pair.score is not None and pair.margin is not None:
        confidence = f"confidence {pair.confidence:.3f}, " if is_calibrated else ""
        evidence = ", ".join(f"{name} {value:.3f}" for name, value in pair.evidence.items())
        click.echo(f"   {confidence}score {pair.score:.3f}, margin {pair.margin:.3f}; {evidence}")
    if pair.contributions:
        added = ", ".join(f"{name} {value:+.3f}" for name, value in pair.contributions.items() if abs(value) >= 0.0005)
        click.echo(f"   contributions to the score: {added}")
    if pair.matched_elsewhere is not None:
        click.echo(f"   matched elsewhere: {pair.matched_elsewhere}")
    for one in pair.values:
        left, right = shown(one.source_value, _LONGEST_VALUE), shown(one.target_value, _LONGEST_VALUE)
        click.echo(
            f"   values {'agree' if one.agrees else 'differ'} ({one.odds:+.1f}): "
            f"{one.source_predicate} {left!r}, {one.target_predicate} {right!r}"
        )
    for near in pair.matched_neighbors[:_NEIGHBORS]:
        click.echo(
            f"   neighbours matched: {near.source} ({', '.join(near.source_relations)}) = "
            f"{near.target} ({', '.join(near.target_relations)})"
        )
    if len(pair.matched_neighbors) > _NEIGHBORS:
        click.echo(f"   and {len(pair.matched_neighbors) - _NEIGHBORS:,} more")


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
        click.echo(f"\nDifference between the first and {other}: {why}.")


def _listed(names: tuple[str, ...]) -> str:
    return " | ".join(shown(name, _LONGEST_VALUE) for name in names) or "(none)"
