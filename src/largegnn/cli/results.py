"""Define `largegnn evaluate`, `compare`, `explain`, `report` and `export`, the commands that read a finished run."""

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
_MAX_NEIGHBORS = 10
_MAX_VALUE_CHARS = 80
_MIN_DIFFERENCE = 0.01  # smaller differences of scores are not printed


@click.command("evaluate")
@options.run_argument
@click.option(
    "--test-links", type=options.PATH, help="Links to use instead of the test links of the run. Nothing is written."
)
@click.option(
    "--gold",
    help="full: the links are complete, so pairs outside them are wrong. partial: pairs that touch no test link are "
    "not judged. Default: auto, which is full if every entity of a side has a link.",
)
@click.option("--skip-unknown", is_flag=True, help="Skip test links that name unknown entities.")
@options.json_option
def evaluate_command(run: Path, test_links: Path | None, gold: str | None, skip_unknown: bool, as_json: bool) -> None:
    """Measure a run by test links, in the ideal and the real setting."""
    from largegnn.figures import evaluate_by, evaluated_run
    from largegnn.result import AlignmentResult
    from largegnn.run import Run

    if gold is not None and gold not in _GOLD:
        raise InputError(f"unknown gold {gold[:100]!r}", expected=", ".join(_GOLD))
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
        click.echo("The run has no test links. Name a file of links with --test-links FILE.")
    print_figures(summary)
    print_reliability("valid links, each half calibrated on the other half", summary.match.reliability)
    print_reliability("test links", summary.evaluation.reliability)
    print_findings(result)


@click.command("compare")
@click.argument("runs", type=options.PATH, nargs=-1, required=True, help="Two or more run folders.")
@options.json_option
def compare_command(runs: tuple[Path, ...], as_json: bool) -> None:
    """Compare runs: the settings that differ, and the figures."""
    from largegnn.figures import compare_runs

    comparison = compare_runs(list(runs))
    if as_json:
        reports = {name: summary.to_dict() for name, summary in comparison.summaries.items()}
        click.echo(
            json.dumps({"settings": comparison.settings, "figures": comparison.figures, "reports": reports}, indent=1)
        )
        return
    names = list(comparison.summaries)
    rows = [(key, *(str(values[name]) for name in names)) for key, values in comparison.settings.items()]
    print_table("settings that differ", ("setting", *names), rows or [("none", *("" for _ in names))])
    figures = [(label, *(_figure(values[name]) for name in names)) for label, values in comparison.figures.items()]
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

    opened = Run.open(run, needs="match")
    pages = tuple(dict.fromkeys([*opened.settings.report.pages, "report.html"]))
    report = opened.settings.report.model_copy(update={"pages": pages})
    settings = opened.settings.model_copy(update={"report": report})
    written = run_pipeline(run, opened.given, settings, force="report").pages
    _print_written({str(run / name): rows for name, rows in written.items()}, as_json)


@click.command("export")
@options.run_argument
@click.option("--form", "forms", multiple=True, required=True, help=f"{_FORMS}. May be repeated.")
@click.option("--out", "-o", type=options.PATH, help="Folder for the files. Default: the run folder.")
@click.option(
    "--all", "all_candidates", is_flag=True, help="tsv and parquet: all candidate pairs, not only the accepted ones."
)
@click.option("--base-iri", help="In RDF forms, the IRI to put before names that are not valid IRIs.")
@click.option("--target-base-iri", help="The base IRI of target names. Default: the value of --base-iri.")
@click.option("--prefix", multiple=True, help="The IRI of a prefix used in names, as name=IRI. May be repeated.")
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

    There are also forms for Neo4j and Wikidata.
    """
    from largegnn.api import open_run
    from largegnn.export import file_of_form

    result = open_run(run)
    folder = out or run
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
    """Print the files that were written, with the number of rows in each."""
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    else:
        print_table("written", ("file", "rows"), [(path, number(count)) for path, count in rows.items()])


@click.command("explain")
@options.run_argument
@click.argument("entity", help="An entity, written as in its file.")
@click.argument(
    "target", required=False, help="A target entity: explain only this pair, even if it is not a candidate."
)
@click.option("--side", help="source or target. Needed if both graphs have an entity of this name.")
@options.json_option
def explain_command(run: Path, entity: str, target: str | None, side: str | None, as_json: bool) -> None:
    """Show why an entity is matched or unmatched.

    Its candidates are listed with the evidence for and against each: scores, values, matched neighbours.
    """
    from largegnn.artifacts import to_plain
    from largegnn.result import AlignmentResult

    result = AlignmentResult.open(run)
    explanation = result.explain(entity, side, target)
    if as_json:
        click.echo(json.dumps(to_plain(explanation), indent=1))
        return
    click.echo(_state(explanation))
    if explanation.path_to_seed:
        path = " ".join(f"-{step.relation}-> {step.entity}" for step in explanation.path_to_seed)
        click.echo(f"Nearest seed: {path}")
    for pair in explanation.candidates:
        _print_candidate(pair, is_calibrated=result.is_calibrated)
    _print_difference(explanation)


def _state(explanation: Explanation) -> str:
    """Describe the state of the entity in a sentence."""
    name = f"{explanation.entity} ({explanation.side})"
    if explanation.seed_partner is not None:
        return f"{name} is a seed: its given counterpart is {explanation.seed_partner}."
    best = explanation.candidates[0] if explanation.candidates else None
    sentences = {
        "aligned": f"{name} is matched.",
        "isolated": f"{name} is unmatched: it has no triple.",
        "not covered": f"{name} is unmatched: it is in no subgraph, so it has no vector.",
        "below threshold": f"{name} is unmatched: its best pair is below the threshold.",
        "not mutual": f"{name} is unmatched: no candidate ranks it first.",
    }
    text = sentences.get(explanation.state, f"{name} is {explanation.state}.")
    if explanation.state == "not mutual" and best is not None and best.matched_elsewhere is not None:
        candidate = best.target if explanation.side == "source" else best.source
        text += f" Its best candidate {candidate} is matched with {best.matched_elsewhere}."
    elif best is None and explanation.state not in ("isolated", "not covered"):
        text += " It has no candidate: it is not among the nearest entities of any entity near it in the other graph."
    return text


def _print_candidate(pair: CandidateExplanation, *, is_calibrated: bool) -> None:
    state = "accepted" if pair.accepted else "not accepted"
    rank = "" if pair.rank is None else f"{pair.rank}. "
    click.echo(f"\n{rank}{pair.source} = {pair.target}   {state if pair.rank else 'not a candidate'}")
    if pair.source_names or pair.target_names:
        click.echo(f"   names: {_joined(pair.source_names)} = {_joined(pair.target_names)}")
    if pair.score is not None and pair.margin is not None:
        confidence = f"confidence {pair.confidence:.3f}, " if is_calibrated else ""
        evidence = ", ".join(f"{name} {value:.3f}" for name, value in pair.evidence.items())
        click.echo(f"   {confidence}score {pair.score:.3f}, margin {pair.margin:.3f}; {evidence}")
    if pair.contributions:
        added = ", ".join(f"{name} {value:+.3f}" for name, value in pair.contributions.items() if abs(value) >= 0.0005)
        click.echo(f"   contributions to the score: {added}")
    if pair.matched_elsewhere is not None:
        click.echo(f"   matched elsewhere: {pair.matched_elsewhere}")
    for value in pair.values:
        source_value = shown(value.source_value, _MAX_VALUE_CHARS)
        target_value = shown(value.target_value, _MAX_VALUE_CHARS)
        click.echo(
            f"   values {'agree' if value.agrees else 'differ'} ({value.odds:+.1f}): "
            f"{value.source_predicate} {source_value!r}, {value.target_predicate} {target_value!r}"
        )
    for neighbor in pair.matched_neighbors[:_MAX_NEIGHBORS]:
        click.echo(
            f"   matched neighbours: {neighbor.source} ({', '.join(neighbor.source_relations)}) = "
            f"{neighbor.target} ({', '.join(neighbor.target_relations)})"
        )
    if len(pair.matched_neighbors) > _MAX_NEIGHBORS:
        click.echo(f"   and {len(pair.matched_neighbors) - _MAX_NEIGHBORS:,} more")


def _print_difference(explanation: Explanation) -> None:
    """Print the evidence that separates the best candidate from the next one."""
    if len(explanation.candidates) < 2:
        return
    first, second = explanation.candidates[:2]
    differences = {
        name: first.contributions.get(name, 0.0) - second.contributions.get(name, 0.0)
        for name in {**first.contributions, **second.contributions}
    }
    large = {name: difference for name, difference in differences.items() if abs(difference) >= _MIN_DIFFERENCE}
    if large:
        entity = second.target if explanation.side == "source" else second.source
        largest = sorted(large, key=lambda name: -abs(large[name]))[:3]
        evidence = ", ".join(f"{name} {large[name]:+.3f}" for name in largest)
        click.echo(f"\nDifference between the first and {entity}: {evidence}.")


def _joined(names: tuple[str, ...]) -> str:
    return " | ".join(shown(name, _MAX_VALUE_CHARS) for name in names) or "(none)"
