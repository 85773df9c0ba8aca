"""Compare systems claim by claim on every data set: a table of the results page.

In: the records of whole systems, and the paper's figures. Out: Markdown, a row for each claim (that one system, or one
way to choose pairs, is better than another) and a column for each data set. A cell has the difference, its deviation
(from the sample deviations of both systems) and a verdict: a claim holds or is refuted only if the difference exceeds
that deviation. A single run has no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.records import ResultRecord, Summary, summarise_records
from lab.systems import BEST, DATASETS, PLAIN, PRINTED, STEADY, WIDE, PaperSystem
from lab.tables import markdown_table
from lab.text import difference_text

__all__ = ["CLAIMS", "Claim", "claims_section", "verdict"]

PAPER = "the paper"
Figure = Callable[[ResultRecord], float | None]


def _hits(scoring: str) -> Figure:
    return lambda record: (record.ideal.get(scoring) or {}).get("hits@1")


def _f1(selection: str) -> Figure:
    def read(record: ResultRecord) -> float | None:
        return record.real[selection].f1 if record.real and selection in record.real else None

    return read


@dataclass(frozen=True)
class Claim:
    """The claim that `system` is better than `other` by a figure; `other_figure` if the two need different figures."""

    text: str
    measure: str
    system: str
    other: str
    figure: Figure
    other_figure: Figure | None = None


def _claims() -> list[Claim]:
    cosine, csls = ("H@1, cosine", _hits("cosine")), ("H@1, CSLS", _hits("csls"))
    compared = (
        ("plain LargeGNN above the paper's", PLAIN, PAPER, (cosine,)),
        ("our best setting above the paper's", BEST, PAPER, (cosine,)),
        ("our best setting above the plain one", BEST, PLAIN, (cosine, csls)),
        ("the paper's dimension above a smaller one", WIDE, PLAIN, (cosine, csls)),
        ("a learning rate that falls above one that stays", PLAIN, STEADY, (cosine, csls)),
        ("CSG above SBP", PLAIN, "LargeGNN (SBP)", (cosine, csls)),
        ("SBP above CPS", "LargeGNN (SBP)", "LargeGNN (CPS)", (cosine, csls)),
        ("landmarks help", PLAIN, "LargeGNN w/o CLG", (cosine, csls)),
        ("one space above blocks: CPS, LargeEA", "LargeGNN (CPS)", "LargeEA", (cosine,)),
        ("one space above blocks: SBP, LIME", "LargeGNN (SBP)", "LIME", (cosine,)),
        ("ER helps", PLAIN, "LargeGNN w/o ER", (cosine, csls)),
        ("CNS helps", PLAIN, "LargeGNN w/o CNS", (cosine, csls)),
        ("CNS as printed helps", PRINTED, "LargeGNN w/o CNS", (cosine, csls)),
        ("ER and CNS together help", PLAIN, "LargeGNN w/o both", (cosine, csls)),
    )
    claims = [
        Claim(text, name, system, other, figure)
        for text, system, other, measures in compared
        for name, figure in measures
    ]
    first = "mutual first choices by CSLS above mutual 5-NN"
    claims.append(Claim(first, "F1", PLAIN, PLAIN, _f1("csls_mutual_top1"), _f1("mutual_5nn")))
    return claims


CLAIMS = tuple(_claims())


def claims_section(systems: Sequence[PaperSystem], records: Sequence[ResultRecord]) -> str:
    """Write a table of every claim on every data set that has records."""
    datasets = [name for name in DATASETS if any(record.dataset == name for record in records)]
    rows = []
    for claim in CLAIMS:
        cells = [_cell(claim, dataset, systems, records) for dataset in datasets]
        rows.append([claim.text, claim.measure, *cells])
    return markdown_table(["claim", "by", *datasets], rows)


def verdict(ours: Summary, other: Summary | float) -> str:
    """Return the difference with its deviation, and whether it is significant."""
    summaries = [ours, other] if isinstance(other, Summary) else [ours]
    gain = ours.mean - (other.mean if isinstance(other, Summary) else other)
    deviation = math.hypot(*(summary.deviation for summary in summaries))
    text = difference_text(gain, deviation)
    if min(summary.runs for summary in summaries) < 2:
        return f"{text.partition(' ±')[0]}, one run"
    word = "no difference" if abs(gain) <= deviation else "holds" if gain > 0 else "**against**"
    return f"{text}, {word}"


def _cell(claim: Claim, dataset: str, systems: Sequence[PaperSystem], records: Sequence[ResultRecord]) -> str:
    ours = _summary(claim.system, dataset, records, claim.figure)
    other: Summary | float | None
    if claim.other == PAPER:
        # The paper has figures of its own system only, and none for a data set that replaces another.
        theirs = [
            entry for entry in systems if (entry.dataset, entry.name) == (dataset, PLAIN) and not entry.stands_in_for
        ]
        other = theirs[0].paper.get("hits@1") if theirs else None
    else:
        other = _summary(claim.other, dataset, records, claim.other_figure or claim.figure)
    return "" if ours is None or other is None else verdict(ours, other)


def _summary(system: str, dataset: str, records: Sequence[ResultRecord], figure: Figure) -> Summary | None:
    matching = [record for record in records if (record.system, record.dataset) == (system, dataset)]
    return summarise_records(matching, figure)
