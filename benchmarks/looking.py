"""How long does looking at a large run take? `looking.py RUN [--json FILE]`, and `looking.py --page`.

Of a finished run: `explain` of a random source entity and of the one with most triples, each a process of its own; the
size of `report.html`; and what `largegnn review` does, in this process: getting ready, its indexes, a worklist in
another order, a search, a pair, a decision with the next pair. Seconds are those of the processor, the median of
several where it can be done several times. `--page` writes the table of docs/measurements/reviewing.md.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from largegnn import api
from largegnn.machine.metering import Meter
from largegnn.paper.origin import origin_of_run
from largegnn.paper.pages import put_table
from largegnn.paper.record_lines import add_line, read_lines
from largegnn.result import AlignmentResult
from largegnn.review.worklist import Filters

DOCS = Path(__file__).parents[1] / "docs"
RECORDS = DOCS / "results" / "looking.jsonl"
REPEATS = 20
Found = dict[str, dict[str, float]]


def explain_seconds(run: Path, entity: str) -> float:
    """Processor seconds of the command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "largegnn", "explain", str(run), entity], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def seconds_of(work: Callable[[], object]) -> float:
    """Processor seconds of this process."""
    started = time.process_time()
    work()
    return time.process_time() - started


def explaining(run: Path, result: AlignmentResult) -> Found:
    """A random entity, and the largest hub."""
    task, names = result.task, result.names.entities
    degrees = np.bincount(task.triples[:, [0, 2]].ravel(), minlength=task.num_entities)[: task.num_source_entities]
    hub, other = int(degrees.argmax()), int(np.random.default_rng(0).integers(task.num_source_entities))
    return {
        f"`largegnn explain`, a process of its own: {what}": {
            "processor_seconds": explain_seconds(run, names[entity]),
            "triples": int(degrees[entity]),
        }
        for what, entity in (("a random entity", other), ("the largest hub", hub))
    }


def reviewing(result: AlignmentResult, log: Path) -> Found:
    """What a reviewer waits for."""
    meter, sessions = Meter(), []
    ready = seconds_of(lambda: sessions.append(result.review(log)))
    (session,) = sessions
    indexes = seconds_of(session.prepare)
    found: Found = {
        "`largegnn review`: ready": {"processor_seconds": ready, "peak_mb": meter.read().peak_memory_mb},
        "its indexes, beside the page": {"processor_seconds": indexes},
        "a worklist in another order, the first time": {
            "processor_seconds": seconds_of(lambda: session.find(Filters(order="random")))
        },
        "the same later": _median(lambda _: session.find(Filters(order="random"))),
    }
    rows = session.find(Filters()).tolist()
    words = [session.labels(row)[0].split()[0] for row in rows[:REPEATS]]
    found["a search in names and identifiers"] = _median(lambda number: session.find(Filters(query=words[number])))
    found["a pair"] = _median(lambda number: session.view(rows[number]))

    def decide(number: int) -> None:
        session.decide(rows[number], "accept", "nobody")
        session.view(rows[number + 1])

    found["a decision, on disk, with the next pair"] = _median(decide)
    return found


def _median(work: Callable[[int], object]) -> dict[str, float]:
    seconds = [seconds_of(lambda number=number: work(number)) for number in range(REPEATS)]  # type: ignore[misc]
    return {"processor_seconds": statistics.median(seconds), "times": REPEATS}


def page() -> str:
    """A row for each thing."""
    lines = ["| what | seconds of processor | |", "|---|---|---|"]
    for line in read_lines(RECORDS):
        also = [f"{line['triples']:,} triples"] if "triples" in line else []
        also += [f"{line['peak_mb']:,.0f} MB at most"] if "peak_mb" in line else []
        seconds = f"{line['processor_seconds']:.2g}" if "processor_seconds" in line else f"{line['size_mb']:.2f} MB"
        lines.append(f"| {line['what']} | {seconds} | {', '.join(also)} |")
    return "\n".join(lines)


def main() -> None:
    """Look, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--json", type=Path, default=RECORDS)
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    if arguments.page:
        put_table(DOCS / "measurements" / "reviewing.md", "looking", page())
        return
    result = api.open_run(arguments.run)
    found = explaining(arguments.run, result)
    found["`report.html`"] = {"size_mb": (arguments.run / "report.html").stat().st_size / 1e6}
    with tempfile.TemporaryDirectory() as scratch:
        found |= reviewing(result, Path(scratch) / "decisions.jsonl")
    about = {"entities": result.task.num_entities, "candidates": len(result.alignment.pairs)}
    origin = origin_of_run(result.run, about)
    for what, figures in found.items():
        add_line(arguments.json, f"{arguments.run.name}, {what}", origin, {"what": what, **figures})
        print(what, figures, flush=True)


if __name__ == "__main__":
    main()
