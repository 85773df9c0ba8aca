"""What do names and values of a million entities take, and what do they find? `million_names.py FOLDER [--json FILE]`.

A pair of the counts of `--preset dbpedia1m` is generated in FOLDER where it is not there yet, with names and values of
which a fifth has errors. It is loaded and its literals are compared without seeds, on the processors this process may
use (`taskset -c 0,1 python ...` for two). One line of the JSON file: seconds and memory of the stage, candidates, the
anchors with the share that is right and that was expected, and the share of the links among the candidates.

    python benchmarks/million_names.py /tmp/names1m
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from largegnn import api
from largegnn.artifacts import AlignmentTask, LiteralEvidence, are_among
from largegnn.artifacts.literals import Literals
from largegnn.data.inputs import DataInput
from largegnn.machine.atomic import write_text
from largegnn.machine.devices import num_processors
from largegnn.paper.origin import origin_of
from largegnn.paper.record_lines import add_line
from largegnn.runs.pipeline import run_pipeline
from largegnn.settings import PRESETS, WORLD_PRESETS, Settings, WorldSettings, resolve
from largegnn.stages.literals import LiteralsOutcome

RECORDS = Path(__file__).parents[1] / "docs" / "results" / "speed.jsonl"
NOISE = 0.2


def measure(folder: Path, preset: str, records: Path) -> None:
    """Compare the names of one pair and note what it took."""
    if not folder.exists():
        world = resolve(WorldSettings, WORLD_PRESETS, preset, None, ["literals=true", f"noise={NOISE}"])
        api.generate(world, folder=folder, form="nt")
    links = folder / "links.nt"
    if not links.exists():
        # No seeds: all links judge.
        write_text(links, "".join((folder / f"{part}_links.nt").read_text() for part in ("train", "valid", "test")))
    given = DataInput(source=folder / "source.nt", target=folder / "target.nt", test_links=links)
    settings = resolve(Settings, PRESETS, None, None, ["channels=literals"])
    with tempfile.TemporaryDirectory() as work:
        run = run_pipeline(Path(work) / "run", given, settings, last="literals")
        task, found = run.artifact("task", AlignmentTask), run.artifact("literal_evidence", LiteralEvidence)
        outcome, cost = run.outcome("literals", LiteralsOutcome), run.cost("literals")
        figures = {
            "seconds": round(cost.seconds, 1),
            "peak_mb": round(cost.peak_memory_mb),
            "load_seconds": round(run.cost("load").seconds, 1),
            "literals": len(run.artifact("literals", Literals)),
            "candidates": len(found.pairs),
            "candidate_recall": round(float(are_among(task.test_links, found.pairs).mean()), 4),
            "anchors": len(found.anchors),
            "anchors_right": round(float(are_among(found.anchors, task.test_links).mean()), 4),
            "anchors_expected_right": round(outcome.expected_right or 0.0, 4),
        }
    sizes = (task.num_source_entities, task.num_target_entities)
    protocol: dict[str, str | int] = {"seeds": 0, "generated": f"{preset}, names with errors: {NOISE}"}
    line = add_line(
        records,
        f"names, {preset}, {num_processors()} cores",
        origin_of(settings, [folder], channels=["literals"], protocol=protocol),
        {"entities": sum(sizes), **figures},
    )
    print({key: value for key, value in line.items() if key != "origin"}, flush=True)


def main() -> None:
    """Measure the pair of one folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--preset", default="dbpedia1m", choices=WORLD_PRESETS)
    parser.add_argument("--json", type=Path, default=RECORDS)
    options = parser.parse_args()
    measure(options.folder, options.preset, options.json)


if __name__ == "__main__":
    main()
