"""Make a small alignment of the toy graphs by hand, with literals and a summary of the run."""

from __future__ import annotations

import dataclasses

import numpy as np

from largegnn.artifacts import (
    REASONS,
    Alignment,
    Cost,
    EpochRecord,
    PartitionQuality,
    ReliabilityRow,
    StringTable,
)
from largegnn.artifacts.literals import Literals
from largegnn.embedding.train import TrainOutcome
from largegnn.matching.confidence.calibration import uncalibrated
from largegnn.matching.confidence.thresholds import Threshold
from largegnn.matching.match import MatchOutcome
from largegnn.run import RunSummary
from largegnn.settings import Settings

# Ids of the toy: a..e are 0..4, A..F are 5..10; a = A and c = C are seeds.
B, D, E = 1, 3, 4
B2, D2, E2, F2 = 6, 8, 9, 10


def toy_alignment() -> Alignment:
    """Candidates with cosines: b: B (.9), D (.3); d: D (.8), E (.4); e: D (.6), E (.5).

    D ranks d, then e, then b; E ranks e, then d. So (b, B) and (d, D) are mutual and accepted; (e, E) is not, because e
    ranks D first. F has no candidate, and its state is `isolated`.
    """
    rows = [
        # source, target, cosine, support, source rank, target rank, accepted
        (B, B2, 0.9, 2.0, 1, 1, True),
        (B, D2, 0.3, 0.0, 2, 3, False),
        (D, D2, 0.8, 1.0, 1, 1, True),
        (D, E2, 0.4, 0.5, 2, 2, False),
        (E, D2, 0.6, 0.0, 1, 2, False),
        (E, E2, 0.5, 0.0, 2, 1, False),
    ]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    reasons = np.full(11, REASONS.index("aligned"))
    reasons[[0, 2, 5, 7]] = REASONS.index("seed")
    reasons[[E, E2]] = REASONS.index("not mutual")
    reasons[F2] = REASONS.index("isolated")
    return Alignment(
        pairs=np.stack(columns[:2], axis=1),
        columns=("cosine", "support"),
        evidence=np.stack(columns[2:4]),
        scores=2 * columns[2],
        margins=np.array([1.2, -1.2, 0.4, -0.8, -0.4, -0.2]),
        source_ranks=columns[4],
        target_ranks=columns[5],
        confidence=np.array([0.99, 0.01, 0.8, 0.1, 0.3, 0.2]),
        accepted=columns[6],
        reasons=reasons,
    )


def no_candidates(reason: str) -> Alignment:
    """Make an alignment without candidates, in which every entity has the state `reason`."""
    none = np.empty(0, dtype=np.float32)
    reasons = np.full(11, REASONS.index(reason))
    pairs = np.empty((0, 2), dtype=np.int32)
    return Alignment(pairs, (), none, none, none, none, none, none, np.empty(0, dtype=bool), reasons)


def toy_literals() -> Literals:
    """b has the names "das b"@de and "the\\n b"@en, height 3 and a note; B has a name, height 3 and a colour."""
    predicates = ["http://w3.org/rdfs#label", "http://x.org/colour", "http://x.org/height", "http://x.org/note"]
    rows = [
        (B, 0, "das b", 1),
        (B, 0, "the\n b", 2),
        (B, 2, "3", 0),
        (B, 3, "<script>alert(1)</script>", 0),
        (B2, 0, "B of the target", 2),
        (B2, 1, "red", 0),
        (B2, 2, "3", 0),
    ]
    entities, numbers, texts, languages = zip(*rows, strict=True)
    return Literals(
        np.array(entities),
        np.array(numbers),
        StringTable.from_strings(texts),
        np.zeros(len(rows)),
        np.array(languages),
        StringTable.from_strings(predicates),
        StringTable.from_strings([""]),
        StringTable.from_strings(["", "de", "en"]),
    )


def toy_summary(**changes: object) -> RunSummary:
    """Make the summary of a run with the toy alignment: threshold .5, two pairs, expected precision .895."""
    rows = tuple(ReliabilityRow(low / 10, low / 10 + 0.1, 3, low / 10 + 0.05, low / 10, 2) for low in range(10))
    calibration = dataclasses.replace(uncalibrated((1.0,), 0.0, 4.0), is_calibrated=True)
    threshold = Threshold(0.5, 2, 0.895, 0.7, 0.95, 0.45, 0.6)
    match = MatchOutcome(6, 2, ("cosine", "support"), threshold, calibration, rows, {"aligned": 4})
    epochs = TrainOutcome((EpochRecord(0, 9.5, None, 1.0), EpochRecord(1, 4.5, 0.25, 1.0)))
    quality = PartitionQuality((5, 7), (2, 3), (1, 0), 0, 0.1, 0.9, 1.0, None, None)
    costs = {"train": Cost(30.0, 500.0), "match": Cost(1.5, 700.0)}
    values = {"training": epochs, "quality": quality, "match": match, **changes}
    return RunSummary(Settings(), costs, **values)  # type: ignore[arg-type]
