"""How do time and memory grow with the graphs? `growth.py SIZE ... --runs DIR [--last match] [--set K=V] [--draw]`.

SIZE is entities a side, in thousands. A generated pair has five triples for each entity, half of the entities are
linked; it is put into a run folder as if it had been loaded (loading files is measured by `loading.py`) and run as
`--preset 1m` does, with ten epochs and parts of 75,000 entities, up to the stage `--last`. One line of the JSON file
for each size: seconds, peak memory of the process and of the GPU by stage. Finished sizes are not repeated, broken-off
runs go on.
`--draw` draws docs/figures/growth.svg from the records: seconds and peak memory against the entities of both sides,
machines differ in shape; the grey lines are linear growth through the largest size up to a million.

    python benchmarks/growth.py 5 50 500 1500 5000 --runs /tmp/growth
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from largegnn.datasets.generator import generate_pair
from largegnn.paper.origin import origin_of
from largegnn.paper.record_lines import add_line, read_lines
from largegnn.pipeline import run_task
from largegnn.runfolder.store import RunStore
from largegnn.settings import PRESETS, Settings, WorldSettings, resolve

DOCS = Path(__file__).parents[1] / "docs"
RECORDS = DOCS / "results" / "growth.jsonl"
PART = 75_000  # entities of a part; with landmarks a subgraph has at most 90,000
FIRST = ("merge", "partition", "landmarks", "subgraphs", "train", "integrate", "search", "match")


PANELS = ("seconds from merge to integrate", "seconds of search", "seconds of match", "peak memory in GB")


def world_of(size: int) -> WorldSettings:
    """A pair of this many entities a side."""
    return WorldSettings(
        source_entities=size,
        target_entities=size,
        links=size // 2,
        source_relations=600,
        target_relations=400,
        source_triples=size * 11 // 2,
        target_triples=size * 9 // 2,
        missing=0.3,
        degree_exponent=2.0,
        community_size=400,
        inside=0.94,
    )


def measure(size: int, runs: Path, last: str, overrides: list[str], records: Path) -> None:
    """Run one size and note what it took."""
    asked = [f"division.parts={-(-2 * size // PART)}", "train.epochs=10", *overrides]
    settings = resolve(Settings, PRESETS, "1m", None, asked)
    began = time.monotonic()
    pair = generate_pair(world_of(size), seed=0)
    print(f"{size:,} entities a side generated in {time.monotonic() - began:.0f} s", flush=True)
    folder = runs / str(size)
    run_task(folder, pair.task, None, settings, last=last)
    figures = read_run(folder)
    origin = origin_of(settings, (), channels=("structure", "rules"), protocol={"generated": f"{size:,} a side"})
    key = f"growth, {size:,} entities a side, {origin.machine.gpu or 'no GPU'}, {origin.machine.cores} cores"
    add_line(records, key, origin, {"entities": 2 * size, "triples": len(pair.task.triples), **figures})


def read_run(folder: Path) -> dict[str, Any]:
    """What the stages of a run took, by the manifest of its folder."""
    stages = RunStore(folder).stages
    done = {name: stages[name] for name in FIRST if name in stages}
    history = stages["train"].facts.get("history", []) if "train" in stages else []
    valid = [epoch["valid_hits"] for epoch in history if epoch["valid_hits"] is not None]
    return {
        "stage_seconds": {name: round(entry.seconds, 2) for name, entry in done.items()},
        "stage_peak_mb": {name: round(entry.peak_memory_mb) for name, entry in done.items()},
        "stage_gpu_mb": {name: round(entry.peak_gpu_mb) for name, entry in done.items() if entry.peak_gpu_mb},
        "seconds": round(sum(entry.seconds for entry in done.values()), 1),
        "epoch_seconds": round(sorted(epoch["seconds"] for epoch in history)[len(history) // 2], 3)
        if history
        else None,
        "valid_hits@1": valid[-1] if valid else None,
    }


def draw(records: Path, path: Path) -> None:
    """Seconds and memory against entities, with a line of linear growth."""
    import altair as alt
    import polars as pl

    rows, lines = [], []
    for line in read_lines(records):
        machine = line["origin"]["machine"]
        where = machine["gpu"] or f"{machine['cores']} cores"
        for what, value in panels_of(line).items():
            rows.append({"machine": where, "entities": line["entities"], "what": what, "value": value})
    for what in PANELS:
        for where in sorted({row["machine"] for row in rows}):
            own = sorted((r for r in rows if (r["machine"], r["what"]) == (where, what)), key=lambda r: r["entities"])
            # Through the largest of the sizes up to a million: below, what does not grow is most of it.
            base = [row for row in own if row["entities"] <= 1_000_000][-1]
            lines += [{**row, "value": base["value"] * row["entities"] / base["entities"]} for row in own]
    x = alt.X(
        "entities:Q",
        scale=alt.Scale(type="log"),
        title="entities of both sides",
        axis=alt.Axis(format="~s", labelOverlap="greedy", tickCount=4),
    )
    y = alt.Y("value:Q", scale=alt.Scale(type="log"), title=None)
    panels = []
    for what in PANELS:
        measured = alt.Chart(pl.DataFrame([row for row in rows if row["what"] == what])).encode(x=x, y=y)
        linear = alt.Chart(pl.DataFrame([row for row in lines if row["what"] == what])).encode(x=x, y=y)
        shape = alt.Shape("machine:N", title=None)
        panel = linear.mark_line(color="#bbbbbb", clip=True).encode(detail="machine:N") + measured.mark_line(
            color="#000000"
        ).encode(detail="machine:N")
        panel += measured.mark_point(color="#000000", fill="white", opacity=1, size=60).encode(shape=shape)
        panels.append(panel.properties(width=300, height=200, title=what))
    alt.concat(*panels, columns=2).configure_view(stroke="#999999").save(path)


def panels_of(line: dict[str, Any]) -> dict[str, float]:
    """What a record has for each panel."""
    seconds, peaks = line["stage_seconds"], line["stage_peak_mb"]
    found = {
        PANELS[0]: sum(value for name, value in seconds.items() if name in FIRST[: FIRST.index("search")]),
        PANELS[1]: seconds["search"],
        PANELS[3]: max(peaks.values()) / 1000,
    }
    return found | ({PANELS[2]: seconds["match"]} if "match" in seconds else {})


def main() -> None:
    """Measure sizes, or draw what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, help="thousands of entities a side")
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--last", default="match")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--json", type=Path, default=RECORDS)
    parser.add_argument("--draw", action="store_true")
    arguments = parser.parse_args()
    for size in arguments.sizes:
        measure(1000 * size, arguments.runs, arguments.last, arguments.overrides, arguments.json)
        print(json.dumps(read_lines(arguments.json)[-1]["stage_seconds"]), flush=True)
    if arguments.draw:
        draw(arguments.json, DOCS / "figures" / "growth.svg")


if __name__ == "__main__":
    main()
