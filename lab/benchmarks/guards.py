"""Record the accuracy of a few cheap runs on real data, for a test of regressions: `guards DATA [--repeats 5]`.

There is one setting for each channel that a change could harm unnoticed, small enough for continuous integration:
structure on EN_FR_15K_V1, names on OAEI_anatomy and on DBP15K_FR_EN. The figures do not show how good the program is,
only whether it has become worse. Structure is judged by valid links, so that test links are not used at every change.
Each guard runs with several random seeds; `lab/results/guards.jsonl` has the figures. `lab/tests/test_accuracy.py`
fails if a run is below the lowest figure by more than the sample deviation, or by more than .005 if that is larger.
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
MIN_TOLERANCE = 0.005  # another processor or library may change the figures by so much


@dataclass(frozen=True)
class Guard:
    """A cheap run on real data: possible names of the folder, title of the figure, settings, function that measures."""

    names: tuple[str, ...]
    figure: str
    values: dict[str, Any]
    measure: Callable[[Path, Settings], float]


def valid_hits(folder: Path, settings: Settings) -> float:
    """Compute H@1 by CSLS of the valid links among themselves, mean of both directions, without any test links."""
    loaded = api.load(folder).task
    task: AlignmentTask = dataclasses.replace(loaded, test_links=loaded.test_links[:0])
    with tempfile.TemporaryDirectory() as work:
        run = run_task(work, task, settings=settings, last="integrate")
        vectors = run.artifact("embeddings", EntityEmbeddings).vectors
        sides = [vectors[task.valid_links[:, side]] for side in (0, 1)]
        return rank_links(sides[0], sides[1], "csls").hits_at_1()


def accepted_f1(folder: Path, settings: Settings) -> float:
    """Compute F1 of the accepted pairs by partial gold, without seeds."""
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
    """Return the settings of one run."""
    return resolve(Settings, PRESETS, values={"seed": random_seed, "device": "cpu", **guard.values})


def bound(figures: list[float]) -> float:
    """Return the figure that a run must reach, given the recorded figures."""
    return min(figures) - max(spread(figures), MIN_TOLERANCE)


def spread(figures: list[float]) -> float:
    """Return the sample deviation; 0 for one run."""
    return statistics.stdev(figures) if len(figures) > 1 else 0.0


def main() -> None:
    """Record the missing runs, and print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the data set folders")
    parser.add_argument("--repeats", type=int, default=5, help="random seeds of each guard")
    parser.add_argument("--json", type=Path, default=RECORDS)
    arguments = parser.parse_args()
    rows = read_lines(arguments.json) if arguments.json.exists() else []
    for name, guard in GUARDS.items():
        folder = next(path for folder_name in guard.names if (path := arguments.data / folder_name).is_dir())
        for random_seed in range(arguments.repeats):
            key = f"{name}, {random_seed}"
            if key not in {row["key"] for row in rows}:
                settings = settings_of(guard, random_seed)
                value = guard.measure(folder, settings)
                origin = origin_of(settings, [folder], protocol={"figure": guard.figure})
                rows.append(add_line(arguments.json, key, origin, {"guard": name, "value": value}))
        values = [row["value"] for row in rows if row["guard"] == name]
        shown = f"{statistics.mean(values):.4f} ± {spread(values):.4f}, at least {bound(values):.4f}"
        print(f"{name:<18} {guard.figure}: {shown}", flush=True)


if __name__ == "__main__":
    main()
