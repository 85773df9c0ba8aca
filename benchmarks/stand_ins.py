"""Are the weights right that stand in where there is nothing to learn them from? `stand_ins.py FOLDER ... [--page]`.

A confidence is a weighted sum of a pair's evidence and of its margins; the weights are learnt by the valid links, drawn
to the default weights of every scoring (`DefaultWeights` in `largegnn.matching.scorings`), and are these where there
are too few valid links. Here the default training is run with
train links as seeds, by every scoring, without the test links. The mutual first choices that touch a valid link judge:
how well do the weights order right pairs before wrong ones (AUC: 1 always, .5 by chance)? Beside the weights that stand
in: weights fitted to the judged pairs of all other sets, which is what choosing anew would give a new set, and weights
fitted to the pairs themselves, which no choice can surpass by much.
Each scoring of each run is a line of `docs/results/stand_ins.jsonl`; runs are made together, as a fit needs all.
`--page` writes the table of docs/measurements/alignment.md.

    python benchmarks/stand_ins.py data/EN_FR_15K_V1 data/EN_DE_15K_V1 data/ContEA_FR_EN --runs stand_ins
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
from scipy import stats

import largegnn.matching.match as stage
from largegnn import api
from largegnn.artifacts import AlignmentTask
from largegnn.matching.confidence.calibration import calibrate
from largegnn.matching.confidence.labelled_pairs import Weights, label_pairs
from largegnn.matching.confidence.logistic import fit_logistic
from largegnn.paper.origin import Origin, origin_of
from largegnn.paper.pages import mean_text, put_table
from largegnn.paper.record_lines import add_line, read_lines
from largegnn.runs.on_task import run_task
from largegnn.runs.pipeline import run_pipeline
from largegnn.settings import PRESETS, Settings, resolve

DOCS = Path(__file__).parents[1] / "docs"
RECORDS = DOCS / "results" / "stand_ins.jsonl"
SCORINGS = ("csls", "cosine", "transport", "partial_transport", "reciprocal")
FREE = 100.0  # how far a fitted weight may lie from the one that stands in, in units of the feature's spread
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Judged:
    """The judged first choices of one run by one scoring: features (j, f), which are right, what each counts (j,)."""

    name: str
    seed: int
    scoring: str
    features: Floats
    right: npt.NDArray[np.bool_]
    counts: Floats
    stand_in: Weights
    origin: Origin


def judged_pairs(folder: Path, seed: int, runs: Path) -> Iterator[Judged]:
    """One training, matched by every scoring."""
    loaded = api.load(folder)
    task: AlignmentTask = dataclasses.replace(loaded.task, test_links=loaded.task.test_links[:0])
    place, values = runs / f"{folder.name}_{seed}", {"seed": seed, "channels": ["structure", "rules"]}
    if not place.exists():
        run_task(place, task, loaded.names, resolve(Settings, PRESETS, values=values), last="search")
    for scoring in SCORINGS:
        settings = resolve(Settings, PRESETS, values=values | {"match": {"scoring": scoring}})
        # The stage hands features, first choices and what stands in to the calibration: these are looked at.
        with mock.patch.object(stage, "calibrate", wraps=calibrate) as handed:
            run_pipeline(place, None, settings, force="match", last="match")
        pairs, features, best, valid, _, _, (weights, offset) = handed.call_args.args
        first = np.flatnonzero(best)
        found = label_pairs(pairs[first], valid)
        origin = origin_of(settings, [folder], protocol={"judged by": "first choices that touch a valid link"})
        own = np.asarray(features, dtype=np.float64)[first][found.rows]
        stand_in = Weights(np.asarray(weights), offset)
        yield Judged(folder.name, seed, scoring, own, found.right, found.counts, stand_in, origin)


def fitted(runs: list[Judged]) -> Weights:
    """The weights that fit the judged pairs of several runs best, every run alike."""
    features, right = np.concatenate([run.features for run in runs]), np.concatenate([run.right for run in runs])
    counts = np.concatenate([run.counts / run.counts.sum() for run in runs]) * len(right)
    scale = np.maximum(features.std(axis=0), 1e-6)
    centre = np.append(runs[0].stand_in.features * scale, runs[0].stand_in.offset)
    found = fit_logistic(features / scale, right.astype(np.float64), counts, centre, np.full(len(centre), FREE))
    return Weights(found[:-1] / scale, float(found[-1]))


def area(weights: Weights, run: Judged) -> float:
    """How often a right pair has more evidence than a wrong one; equal ones count half."""
    evidence = weights.evidence(run.features)
    right, wrong = evidence[run.right], evidence[~run.right]
    return float(stats.mannwhitneyu(right, wrong).statistic / (len(right) * len(wrong)))


def compare(runs: list[Judged], records: Path) -> None:
    """A record for each scoring of each run."""
    for run in runs:
        alike = [other for other in runs if other.scoring == run.scoring]
        others = [other for other in alike if other.name != run.name] or alike
        weights = {"stand_in": run.stand_in, "of_other_sets": fitted(others), "own": fitted([run])}
        figures = {
            "set": run.name,
            "scoring": run.scoring,
            "judged": len(run.right),
            "right": int(run.right.sum()),
            "auc": {name: round(area(found, run), 4) for name, found in weights.items()},
            "weights": {
                name: [round(value, 3) for value in (*found.features.tolist(), found.offset)]
                for name, found in weights.items()
            },
        }
        add_line(records, f"{run.name}, {run.scoring}, {run.seed}", run.origin, figures)


def table(rows: list[dict[str, Any]]) -> str:
    """A row for each scoring of a set."""
    lines = [
        "| set | scoring | runs | judged pairs | weights that stand in | fitted to the other sets | fitted to itself |"
    ]
    lines.append("|---" * 7 + "|")
    for name, scoring in dict.fromkeys((row["set"], row["scoring"]) for row in rows):
        own = [row for row in rows if (row["set"], row["scoring"]) == (name, scoring)]
        cells = [mean_text([row["auc"][kind] for row in own]) for kind in ("stand_in", "of_other_sets", "own")]
        judged = round(sum(row["judged"] for row in own) / len(own))
        lines.append(f"| {name} | `{scoring}` | {len(own)} | {judged:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run all, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--repeats", type=int, default=3, help="random seeds of each set")
    parser.add_argument("--runs", type=Path, default=Path("stand_ins"))
    parser.add_argument("--json", type=Path, default=RECORDS)
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if options.folders:
        seeds = range(options.repeats)
        compare(
            [one for folder in options.folders for seed in seeds for one in judged_pairs(folder, seed, options.runs)],
            options.json,
        )
    rows = read_lines(options.json)
    if options.page:
        put_table(DOCS / "measurements" / "alignment.md", "weights that stand in", table(rows))
    else:
        print(table(rows))


if __name__ == "__main__":
    main()
