"""What a run would be like, before it starts: sizes, seconds and memory of each stage, and what to be warned of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from largegnn.artifacts import AlignmentTask, to_plain
from largegnn.data.inputs import DataInput
from largegnn.data.load import load_pair
from largegnn.machine.metering import available_memory_mb
from largegnn.planning.division_plan import plan_for
from largegnn.planning.memory import estimate_memory_mb
from largegnn.planning.seconds import estimate_seconds, longest_search_seconds
from largegnn.planning.seeds import seeds_warning
from largegnn.settings import Settings

__all__ = ["Forecast", "forecast"]

_WORTH_SAYING = 60.0  # seconds


@dataclass(frozen=True)
class Forecast:
    """Sizes of a run, and the seconds and peak memory of its stages, to the order of magnitude."""

    source_entities: int
    target_entities: int
    triples: int
    seeds: int
    valid_links: int
    subgraphs: int
    cap: int
    reason: str
    seconds: Mapping[str, float]
    memory_mb: Mapping[str, float]
    warnings: tuple[str, ...]

    @property
    def peak_memory_mb(self) -> float:
        """The largest peak of any stage."""
        return max(self.memory_mb.values())

    def rows(self) -> list[tuple[str, str]]:
        """The sizes, for a table."""
        names = ("source_entities", "target_entities", "triples", "seeds", "valid_links", "subgraphs", "cap")
        return [(name.replace("_", " "), f"{getattr(self, name):,}") for name in names]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {**to_plain(self), "peak_memory_mb": self.peak_memory_mb}


def forecast(given: DataInput, settings: Settings) -> Forecast:
    """Read the input and say what a run over it would take here."""
    pair = load_pair(given, settings.data, keep_literals=settings.keep_literals)
    task, num_literals = pair.task, 0 if pair.literals is None else len(pair.literals)
    plan = plan_for(task, settings.division, settings.landmarks, settings.device)
    memory = {stage: round(mb) for stage, mb in estimate_memory_mb(task, settings, plan, num_literals).items()}
    warnings = [seeds_warning(task, settings.protocol.seeds_from), _search_warning(task, settings)]
    free = available_memory_mb()
    if free is not None and max(memory.values()) > free:
        stage = max(memory, key=lambda name: memory[name])
        warnings.append(
            f"the stage {stage} would take about {memory[stage]:,.0f} MB, and {free:,.0f} MB are free: "
            "use a machine with more memory, or lower train.dim"
        )
    seconds = estimate_seconds(task, settings, plan, num_literals)
    return Forecast(
        source_entities=task.num_source_entities,
        target_entities=task.num_target_entities,
        triples=len(task.triples),
        seeds=len(task.seeds(settings.protocol.seeds_from)),
        valid_links=len(task.held_out(settings.protocol.seeds_from)),
        subgraphs=plan.num_parts,
        cap=plan.cap,
        reason=plan.reason,
        seconds={stage: round(seconds, 1) for stage, seconds in seconds.items()},
        memory_mb=memory,
        warnings=tuple(warning for warning in warnings if warning is not None),
    )


def _search_warning(task: AlignmentTask, settings: Settings) -> str | None:
    """What to say of a search that may become an exact one."""
    longest = longest_search_seconds(task, settings)
    if longest is None or longest < _WORTH_SAYING:
        return None
    return (
        f"the search takes up to {longest:,.0f} s where inverted lists do not reach a recall of "
        f"{settings.search.recall:g}: it is then exact; a lower search.recall avoids that"
    )
