"""Make two small graphs with names and types, and their alignment, by hand."""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import REASONS, Alignment, AlignmentTask, StringTable, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.review.labels import Labels, name_predicates
from largegnn.review.neighbors import NeighborIndex
from largegnn.services.catalogue import Catalogue
from largegnn.services.reconciler import Reconciler

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
LABEL, BORN = "http://www.w3.org/2000/01/rdf-schema#label", "http://x.org/born"
ENTITIES = (
    "http://s.org/Q1", "http://s.org/Q2", "http://s.org/Q3", "http://s.org/Person",
    "http://t.org/ada", "http://t.org/babbage", "http://t.org/crater", "http://t.org/engine",
    "http://t.org/Human", "http://t.org/Place",
)  # fmt: skip
NAMES = {0: "Ada Lovelace", 1: "Charles Babbage", 2: "Grace Hopper", 4: "Augusta Ada King", 5: "C. Babbage"}
NAMES |= {6: "Ada Lovelace", 7: "Analytical <Engine>", 8: "human", 9: "place"}


def people() -> tuple[AlignmentTask, TaskNames, Literals, Alignment]:
    """Pairs: Q1 = ada (.9, accepted) or crater (.2); Q2 = babbage (.4, not accepted); Q3 = engine is a seed.

    The crater on the Moon has the name of Q1. Ada, Babbage and the crater have types; ada was born in 1815.
    """
    triples = [(0, 0, 3), (1, 0, 3), (4, 1, 8), (5, 1, 8), (6, 1, 9), (4, 2, 7), (5, 2, 7)]
    task = AlignmentTask(
        4, 6, 1, 2, np.array(triples), np.array([(2, 7)]), np.empty((0, 2)), np.empty((0, 2))
    )  # fmt: skip
    names = TaskNames(
        StringTable.from_strings(ENTITIES), StringTable.from_strings([TYPE, TYPE, "http://t.org/designed"])
    )
    rows = sorted([(entity, 1, text) for entity, text in NAMES.items()] + [(4, 0, "1815-12-10"), (5, 0, "1791-12-26")])
    owners, predicates, texts = zip(*rows, strict=True)
    literals = Literals(
        np.array(owners), np.array(predicates), StringTable.from_strings(texts), np.zeros(len(rows)),
        np.zeros(len(rows)), StringTable.from_strings([BORN, LABEL]), StringTable.from_strings([""]),
        StringTable.from_strings([""]),
    )  # fmt: skip
    confidence = np.array([0.9, 0.2, 0.4])
    accepted = np.array([True, False, False])
    reasons = np.full(10, REASONS.index("aligned"))
    alignment = Alignment(
        np.array([(0, 4), (0, 6), (1, 5)]), ("cosine",), confidence[None].astype(np.float32),
        confidence.astype(np.float32), confidence.astype(np.float32), np.array([1, 2, 1]), np.array([1, 1, 1]),
        confidence.astype(np.float32), accepted, reasons,
    )  # fmt: skip
    return task, names, literals, alignment


def reconciler(side: int = 1) -> Reconciler:
    task, names, literals, alignment = people()
    labels = Labels(task, names, literals, name_predicates(literals))
    return Reconciler(Catalogue(labels, NeighborIndex(task), side), alignment, task.train_links)
