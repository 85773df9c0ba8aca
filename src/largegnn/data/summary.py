"""Count what loading read, changed and dropped, and log it."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable
from dataclasses import dataclass

from largegnn.artifacts import AlignmentTask

__all__ = ["LoadSummary", "ReadCounts", "log_summary"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReadCounts:
    """Counts of what was dropped from a file or changed in it.

    `triple_terms` are statements about triples; `other_statements` are statements of a link file that are not links;
    `cut_values` were too long; `broken_languages` are invalid language tags; `dropped_literals` had no entity, no
    predicate or no value.
    """

    byte_order_marks: int = 0
    blank_lines: int = 0
    comment_lines: int = 0
    header_rows: int = 0
    graph_names: int = 0
    triple_terms: int = 0
    other_statements: int = 0
    cut_values: int = 0
    broken_languages: int = 0
    dropped_literals: int = 0

    @classmethod
    def total(cls, counts: Iterable[ReadCounts]) -> ReadCounts:
        """Add up several counts, field by field."""
        rows = [dataclasses.astuple(part) for part in counts]
        return cls(*map(sum, zip(*rows, strict=True)))


@dataclass(frozen=True)
class LoadSummary:
    """Counts of what loading read, changed and dropped; pairs are (source, target), `read` is by graph.

    Attribute triples are the statements of the files whose object is a literal; `num_literals` of them are distinct
    and kept. Entities that have attributes but are in no triple and no link are in the task only if literals are kept.
    """

    layout: str
    num_triples_read: tuple[int, int]
    read: tuple[ReadCounts, ReadCounts] = (ReadCounts(), ReadCounts())
    num_duplicate_triples: tuple[int, int] = (0, 0)
    num_attribute_triples: tuple[int, int] = (0, 0)
    num_attribute_only_entities: tuple[int, int] = (0, 0)
    num_isolated_entities: tuple[int, int] = (0, 0)
    num_literals: tuple[int, int] = (0, 0)
    num_predicates: tuple[int, int] = (0, 0)
    num_unknown_names: tuple[int, int] = (0, 0)
    num_repeated_keys: tuple[int, int] = (0, 0)
    num_other_link_statements: int = 0
    num_repeated_links: int = 0
    num_skipped_links: int = 0
    num_many_to_one_links: int = 0
    num_held_out_links: int = 0
    num_accepted_decisions: int = 0
    num_rejected_decisions: int = 0

    @classmethod
    def of_task(cls, task: AlignmentTask) -> LoadSummary:
        """Return the summary of a task that was not read from files: nothing was dropped."""
        sides = (task.num_source_triples, len(task.triples) - task.num_source_triples)
        return cls("in memory", sides)


_MESSAGE_OF_COUNT = {
    "graph_names": "graph names of quads dropped",
    "triple_terms": "statements about triples dropped",
    "blank_lines": "blank lines skipped",
    "comment_lines": "comment lines skipped",
    "header_rows": "header rows skipped",
    "byte_order_marks": "byte-order marks skipped",
    "cut_values": "values cut at 10,000 characters",
    "broken_languages": "invalid language tags, dropped",
    "dropped_literals": "literals without an entity, a predicate or a value, dropped",
}


def log_summary(summary: LoadSummary, keep_literals: bool) -> None:
    """Log the counts that are not 0, which users may not expect."""
    fate = "kept as isolated" if keep_literals else "dropped"
    pairs = (
        ("duplicate triples removed", summary.num_duplicate_triples),
        ("attribute triples counted and kept out of the structure", summary.num_attribute_triples),
        (f"entities with attributes alone, in no triple and no link, {fate}", summary.num_attribute_only_entities),
        ("entities in no triple, kept as isolated", summary.num_isolated_entities),
        ("literals kept", summary.num_literals),
        ("rows of a table that repeat the key of another row, joined with it", summary.num_repeated_keys),
        *((text, tuple(getattr(side, name) for side in summary.read)) for name, text in _MESSAGE_OF_COUNT.items()),
    )
    for text, (source, target) in pairs:
        if source or target:
            _log.info("%s: %s in the source, %s in the target", text, f"{source:,}", f"{target:,}")
    counts = (
        ("statements of the link files that are not links, dropped", summary.num_other_link_statements),
        ("links that repeat another line, dropped", summary.num_repeated_links),
        ("links to unknown entities, skipped", summary.num_skipped_links),
        ("seeds held out as valid links (data.valid_share)", summary.num_held_out_links),
        ("pairs that reviewers accepted, now seeds", summary.num_accepted_decisions),
        ("pairs that reviewers rejected, now forbidden", summary.num_rejected_decisions),
    )
    for text, count in counts:
        if count:
            _log.info("%s: %s", text, f"{count:,}")
    if any(summary.num_unknown_names):
        source, target = summary.num_unknown_names
        _log.warning(
            "entities in the name files that the graphs do not mention, dropped: %s in the source, %s in the target",
            f"{source:,}",
            f"{target:,}",
        )
    if summary.num_many_to_one_links:
        _log.warning(
            "%s train and valid links are not one-to-one: each connected group becomes one node when merged",
            f"{summary.num_many_to_one_links:,}",
        )
