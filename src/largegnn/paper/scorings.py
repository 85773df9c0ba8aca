"""What each scoring finds, with rules and without: a table of the results page.

In: the records of whole systems, which hold every scoring that evaluation has. Out: Markdown, a row for the plain and
the best setting of each data set that has records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from largegnn.paper.records import ResultRecord, summarise_records
from largegnn.paper.systems import BEST, DATASETS, PLAIN
from largegnn.paper.tables import markdown_table, summary_text

__all__ = ["SCORINGS", "scoring_section"]

SCORINGS = ("cosine", "csls", "transport", "csls+rules", "transport+rules")


def scoring_section(records: Sequence[ResultRecord]) -> str:
    """H@1 of the test links by each scoring."""
    rows = []
    for dataset in DATASETS:
        for system in (PLAIN, BEST):
            own = [record for record in records if (record.dataset, record.system) == (dataset, system)]
            if own:
                cells = [summary_text(summarise_records(own, _hits_by(name))) for name in SCORINGS]
                rows.append([dataset, system, *cells, str(len(own))])
    titles = [name.replace("+", ", ").replace("csls", "CSLS") for name in SCORINGS]
    return markdown_table(["data set", "system", *titles, "runs"], rows)


def _hits_by(scoring: str) -> Callable[[ResultRecord], float | None]:
    def hits(record: ResultRecord) -> float | None:
        figures = record.ideal.get(scoring)
        return None if figures is None else figures["hits@1"]

    return hits
