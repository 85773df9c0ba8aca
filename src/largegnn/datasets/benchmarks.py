"""Recognise public benchmarks by their counts of entities, relations and triples, to detect wrongly named data sets.

For example, the "en_fr_15k_V1" that circulates with Dual-AMN is SRPRS: the same name, but other triples.
"""

from __future__ import annotations

from largegnn.artifacts import AlignmentTask

__all__ = ["BENCHMARKS", "name_benchmark"]

# name: (entities, relations, triples), every count as (source, target).
BENCHMARKS: dict[str, tuple[tuple[int, int], tuple[int, int], tuple[int, int]]] = {
    "OpenEA EN_FR_15K_V1": ((15_000, 15_000), (267, 210), (47_334, 40_864)),
    "OpenEA EN_DE_15K_V1": ((15_000, 15_000), (215, 131), (47_676, 50_419)),
    "OpenEA EN_FR_100K_V1": ((100_000, 100_000), (400, 300), (309_607, 258_285)),
    "OpenEA EN_DE_100K_V1": ((100_000, 100_000), (381, 196), (335_359, 336_240)),
    "DBpedia1M EN_FR": ((1_211_270, 1_176_869), (595, 400), (8_150_656, 4_268_719)),
    "DBpedia1M EN_DE": ((1_160_306, 849_646), (596, 247), (7_922_555, 3_000_489)),
    "ContEA FR_EN": ((94_451, 142_234), (903, 1_208), (318_115, 465_126)),
    "DEBIAN_FILES_1M": ((1_307_272, 1_728_920), (185, 187), (3_861_364, 4_937_370)),
}
# Data sets whose copies differ in the number of relations are recognised by (entities, triples).
_WITHOUT_RELATIONS = {
    ((15_000, 15_000), (36_508, 33_532)): "SRPRS EN_FR (also passed around as en_fr_15k_V1; it is not OpenEA)",
}


def name_benchmark(task: AlignmentTask) -> str | None:
    """Name the public benchmark with exactly the counts of a task, whichever side is the source; None if unknown."""
    triples = (task.num_source_triples, len(task.triples) - task.num_source_triples)
    entities = (task.num_source_entities, task.num_target_entities)
    relations = (task.num_source_relations, task.num_target_relations)
    for name, counts in BENCHMARKS.items():
        if (entities, relations, triples) == counts:
            return name
        if (entities[::-1], relations[::-1], triples[::-1]) == counts:
            return f"{name}, source and target swapped"
    return _WITHOUT_RELATIONS.get((entities, triples)) or _WITHOUT_RELATIONS.get((entities[::-1], triples[::-1]))
