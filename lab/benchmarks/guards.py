"""Record the accuracy of a few cheap runs on real sets, which a test guards: `guards DATA [--repeats 5]`.

One setting for each channel that a change could harm unnoticed, small enough for continuous integration: structure on
EN_FR_15K_V1, names on OAEI_anatomy and on DBP15K_FR_EN. They say nothing about how good the program is, only whether it
is as good as it was. Structure is judged by valid links, so that test links are not looked at with every change.
Each runs with several random seeds; lines of `lab/results/guards.jsonl` have the figures. `lab/tests/test_accuracy.py`
fails where one run is below the lowest of them by more than their sample deviation, or .005 where that is larger.
If a guard fails for a good reason, remove its lines, run this again, and give the reason in the commit.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import RESULTS
from lab.lines import add_line, read_lines
from lab.origin import origin_of
from lab.runs import DataInput, run_pipeline, run_task
from largegnn import api
from largegnn.artifacts import Alignment, AlignmentTask, EntityEmbeddings
from largegnn.evaluation.metrics import rank_links
from largegnn.evaluation.pair_metrics import precision_recall_f1
from largegnn.settings import PRESETS, Settings, resolve

RECORDS = RESULTS / "guards.jsonl"
LEAST = 0.005  # what another processor or library may change


@dataclass(frozen=True)
class Guard:
    """A cheap run on a real set: the names its folder may have, what is measured, settings, and how to measure."""

    names: tuple[str, ...]
    figure: str
    values: dict[str, Any]
    measure: Callable[[Path, Settings], float]


def valid_hits(folder: Path, settings: Settings) -> float:
    """H@1 by CSLS of the valid links among themselves, mean of both directions; the test links are taken away."""
    loaded = api.load(folder).task
    task: AlignmentTask = dataclasses.replace(loaded, test_links=loaded.test_links[:0])
    with tempfile.TemporaryDirectory() as work:
        run = run_task(work, task, settings=settings, last="integrate")
        vectors = run.artifact("embeddings", EntityEmbeddings).vectors
        sides = [vectors[task.valid_links[:, side]] for side in (0, 1)]
        return rank_links(sides[0], sides[1], "csls").hits_at_1()


def accepted_f1(folder: Path, settings: Settings) -> float:
    """F1 by partial gold of the accepted pairs, without seeds."""
    if (folder / "source.nt").exists():
        given = DataInput(source=folder / "source.nt", target=folder / "target.nt")
        links = api.load(folder / "source.nt", folder / "target.nt", test_links=folder / "links.tsv").task.test_links
    else:
        sides = [folder / f"rel_triples_{side}" for side in (1, 2)]
        names: dict[str, Any] = {"source_names": folder / "ent_names_1", "target_names": folder / "ent_names_2"}
        given = DataInput(source=sides[0], target=sides[1], **names)
        links = api.load(*sides, test_links=folder / "ent_links", **names).task.test_links
    with tempfile.TemporaryDirectory() as work:
        run = run_pipeline(Path(work) / "run", given, settings, last="match")
        alignment = run.artifact("alignment", Alignment)
        return precision_recall_f1(alignment.pairs[alignment.accepted], links).partial_f1 or 0.0


GUARDS = {
    "structure": Guard(
        ("EN_FR_15K_V1",),
        "H@1 of valid links by CSLS",
        {
            "channels": ["structure"],
            "train": {"dim": 32, "epochs": 12, "negatives": 1_000, "repartition_every": 0, "validate_every": 12},
        },
        valid_hits,
    ),
    "names of terms": Guard(("OAEI_anatomy",), "F1 of accepted pairs", {"channels": ["literals"]}, accepted_f1),
    "names of entities": Guard(
        ("DBP15K_FR_EN_names", "DBP15K_FR_EN"), "F1 of accepted pairs", {"channels": ["literals"]}, accepted_f1
    ),
}


def settings_of(guard: Guard, random_seed: int) -> Settings:
    """The settings of one run."""
    return resolve(Settings, PRESETS, values={"seed": random_seed, "device": "cpu", **guard.values})


def bound(figures: list[float]) -> float:
    """What a run must reach, given the recorded ones."""
    return min(figures) - max(spread(figures), LEAST)


def spread(figures: list[float]) -> float:
    """Sample deviation; 0 of one run."""
    return statistics.stdev(figures) if len(figures) > 1 else 0.0


def main() -> None:
    """Record what is missing, print what there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the data set folders")
    parser.add_argument("--repeats", type=int, default=5, help="random seeds of each guard")
    parser.add_argument("--json", type=Path, default=RECORDS)
    arguments = parser.parse_args()
    rows = read_lines(arguments.json) if arguments.json.exists() else []
    for name, guard in GUARDS.items():
        folder = next(path for one in guard.names if (path := arguments.data / one).is_dir())
        for random_seed in range(arguments.repeats):
            key = f"{name}, {random_seed}"
            if key not in {row["key"] for row in rows}:
                settings = settings_of(guard, random_seed)
                value = guard.measure(folder, settings)
                origin = origin_of(settings, [folder], protocol={"figure": guard.figure})
                rows.append(add_line(arguments.json, key, origin, {"guard": name, "value": value}))
        found = [row["value"] for row in rows if row["guard"] == name]
        shown = f"{statistics.mean(found):.4f} ± {spread(found):.4f}, at least {bound(found):.4f}"
        print(f"{name:<18} {guard.figure}: {shown}", flush=True)


if __name__ == "__main__":
    main()
