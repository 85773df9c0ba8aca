"""How much memory each stage of a run will take on this machine, to the order of magnitude.

In: a task and settings. Out: the expected peak of each stage in MB. Each is what the process holds at that point, from
the sizes of its arrays, and what the stage makes beside it; the constants are those that were seen: EN_FR_15K_V1 and
ContEA_FR_EN on two CPU cores (training 0.8 and 1.3 GB, search 1.1 and 1.5 GB, evaluation 1.3 and 4.7 GB).
Arrays mapped from files count, as they do in what the system reports; it takes them back where memory is scarce.
"""

from __future__ import annotations

from largegnn.artifacts import AlignmentTask, DivisionPlan
from largegnn.machine.devices import choose_device
from largegnn.matching.transport import fits_dense
from largegnn.settings import Settings

__all__ = ["estimate_memory_mb"]

_MB = 1024 * 1024
_PROGRAM_MB, _WITH_TORCH_MB = 260, 620
_LOAD_PER_TRIPLE, _DIVIDE_PER_TRIPLE, _TRAIN_PER_TRIPLE, _INTEGRATE_PER_TRIPLE = 120, 150, 500, 250
_PER_LITERAL = 400  # 6.8 million literals of 2.4 million entities took 2.4 GB
_OUTPUT_PER_DIM = 6
_SEARCH_CHUNK_MB, _SCORE_BYTES = 370, 4
# For each pair a search found; rules propose more, and transports keep 12 bytes of each. Seen on two cores: 42 bytes
# with 10 million entities a side, 29 with DEBIAN_FILES_1M; each thread of more adds some. Vectors are given back as
# they are read.
_MATCH_PER_EDGE, _MATCH_PER_TRIPLE, _MATCH_MAPPED_MB = 60, 40, 1024
_CUDA_MB = 2500  # libraries and pinned memory of a process that has used a GPU


def estimate_memory_mb(
    task: AlignmentTask, settings: Settings, plan: DivisionPlan, num_literals: int = 0
) -> dict[str, float]:
    """The expected peak of the stages, in MB; `num_literals` are those to compare."""
    triples, entities, dim, members = len(task.triples), task.num_entities, settings.train.dim, settings.train.members
    width = _OUTPUT_PER_DIM * dim * members
    one, vectors = 4 * entities * _OUTPUT_PER_DIM * dim / _MB, 4 * entities * width / _MB
    # Of one member its rows and the state of their optimiser, of the others the rows.
    tables = (1 + members) * 4 * entities * dim / _MB
    graph = _TRAIN_PER_TRIPLE * min(triples, 4 * settings.train.max_memory_gb * 1e6) / _MB
    resident = _WITH_TORCH_MB + tables + vectors + graph / 4
    num_links = len(task.test_links)
    device = choose_device(settings.device)
    # On a GPU the scores lie in its own memory.
    max_bytes = int(1e9 * settings.search.max_memory_gb)
    is_small = fits_dense((num_links, num_links), device, max_bytes)
    dense = 4 * num_links**2 / _MB if is_small and device.type == "cpu" else 0.0
    # Ranked chunk by chunk, the vectors of both ends are copied, on a processor twice.
    copies = 0.0 if is_small else (4 if device.type == "cpu" else 2) * 4 * num_links * width / _MB
    allowed = 1024 * settings.train.max_memory_gb
    edges = settings.search.k * entities
    most = min(_SEARCH_CHUNK_MB, 1000 * settings.search.max_memory_gb)
    chunk = min(most, _SCORE_BYTES * task.num_source_entities * task.num_target_entities / _MB)
    return {
        "load": _PROGRAM_MB + _LOAD_PER_TRIPLE * triples / _MB,
        **(
            {"literals": _PROGRAM_MB + (_LOAD_PER_TRIPLE * triples + _PER_LITERAL * num_literals) / _MB}
            if num_literals
            else {}
        ),
        "divide": _PROGRAM_MB + _DIVIDE_PER_TRIPLE * triples / _MB,
        "train": _WITH_TORCH_MB + tables + one + graph,
        "integrate": _WITH_TORCH_MB
        + tables / 2
        + min(vectors, allowed / 2)
        + min(2 * vectors, allowed / 16)
        + _INTEGRATE_PER_TRIPLE * triples / _MB,
        "search": resident + chunk,
        "match": _WITH_TORCH_MB
        + (_CUDA_MB if device.type == "cuda" else 0)
        + min(vectors, _MATCH_MAPPED_MB)
        + (_MATCH_PER_EDGE * edges + _MATCH_PER_TRIPLE * triples) / _MB,
        "evaluate": resident + dense + copies + min(_SEARCH_CHUNK_MB, _SCORE_BYTES * num_links**2 / _MB),
    }
