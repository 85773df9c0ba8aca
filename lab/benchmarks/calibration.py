"""Compare expected and true precision with few seeds: `calibration FOLDER ... [--seeds 1000 300 100]`.

Some of all links of a data set are drawn at random as seeds, a part of the seeds is held out as valid links by the rule
of `data.valid_share = auto`, and all other links are the truth. Each draw is one run up to the step `match`. The table
compares the expected with the true precision of the accepted pairs: by all links (a pair that is not a link is wrong),
and by partial gold (only pairs that touch a link are judged). "within" counts the runs whose 90 % interval contains the
true precision. Finished runs are lines of the JSON file and are not repeated.

    python -m lab.benchmarks.calibration data/EN_FR_15K_V1 data/EN_DE_15K_V1 --draws 5 --json calibration.jsonl
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from lab import RESULTS
from lab.lines import add_line, read_lines
from lab.origin import origin_of
from lab.runs import MatchOutcome, run_task
from largegnn import api
from largegnn.artifacts import Alignment, AlignmentTask, IntArray, are_among
from largegnn.data.links import num_held_out
from largegnn.evaluation.pair_metrics import precision_recall_f1
from largegnn.settings import PRESETS, Settings, resolve

RECORDS = RESULTS / "calibration.jsonl"


def draw_links(task: AlignmentTask, name: str, num_seeds: int, draw: int) -> AlignmentTask:
    """Return the task with `num_seeds` random links as train and valid links, and all others as test links."""
    links = np.concatenate([task.train_links, task.valid_links, task.test_links])
    links = links[np.lexsort((links[:, 1], links[:, 0]))]
    order = np.random.default_rng([zlib.crc32(name.encode()), num_seeds, draw]).permutation(len(links))
    num_valid = num_held_out(num_seeds, "auto")

    def chosen(rows: IntArray) -> IntArray:
        return np.asarray(links[np.sort(rows)])

    return dataclasses.replace(
        task,
        train_links=chosen(order[num_valid:num_seeds]),
        valid_links=chosen(order[:num_valid]),
        test_links=chosen(order[num_seeds:]),
    )


def settings_of(draw: int, preset: str | None, values: dict[str, Any]) -> Settings:
    """Return the settings of a run."""
    return resolve(Settings, PRESETS, preset, values={"seed": draw, **values})


def measure(task: AlignmentTask, draw: int, preset: str | None, values: dict[str, Any]) -> dict[str, Any]:
    """Make one run; return the expected and the true precision of the accepted pairs."""
    settings = settings_of(draw, preset, values)
    with tempfile.TemporaryDirectory() as folder:
        run = run_task(folder, task, settings=settings, last="match")
        alignment, outcome = run.artifact("alignment", Alignment), run.outcome("match", MatchOutcome)
        pairs = alignment.pairs[alignment.accepted]
        true = precision_recall_f1(pairs[~are_among(pairs, task.valid_links)], task.test_links)
    threshold, calibration = outcome.threshold, outcome.calibration
    return {
        "num_valid": len(task.valid_links),
        "num_judged": calibration.num_judged,
        "pairs": threshold.num_pairs,
        "expected": threshold.expected_precision,
        "low": threshold.precision_low,
        "high": threshold.precision_high,
        "true": true.precision,
        "expected_partial": threshold.expected_partial,
        "true_partial": true.partial_precision,
        "links": calibration.num_links,
        "true_links": len(task.valid_links) + len(task.test_links),
    }


def report(rows: list[dict[str, Any]]) -> None:
    """Print one line for each data set and number of seeds."""
    for name, num_seeds in dict.fromkeys((row["set"], row["seeds"]) for row in rows):
        all_runs = [row for row in rows if (row["set"], row["seeds"]) == (name, num_seeds)]
        runs = [row for row in all_runs if row["expected"] is not None and row["true"] is not None]
        shown = f"{name:<14} {num_seeds:>5} seeds, {all_runs[0]['num_valid']:>4} valid, "
        shown += f"{len(runs)} of {len(all_runs)} calibrated"
        if runs:
            errors = [abs(row["expected"] - row["true"]) for row in runs]
            partial = [abs(row["expected_partial"] - row["true_partial"]) for row in runs if row["true_partial"]]
            within = sum(row["low"] <= row["true"] <= row["high"] for row in runs)
            shown += (
                f"  expected {statistics.mean(row['expected'] for row in runs):.3f}"
                f"  true {statistics.mean(row['true'] for row in runs):.3f}"
                f"  mean error {statistics.mean(errors):.3f}  worst {max(errors):.3f}  within {within}"
                f"  partial gold: mean error {statistics.mean(partial or [0.0]):.3f}"
            )
        print(shown, flush=True)


def main() -> None:
    """Make the missing runs, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1_000, 300, 100], help="how many links are seeds")
    parser.add_argument("--draws", type=int, default=5, help="random draws of each number of seeds")
    parser.add_argument("--first-draw", type=int, default=0)
    parser.add_argument("--preset")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if arguments.json and arguments.json.exists():
        rows = read_lines(arguments.json)
    done = {(row["set"], row["seeds"], row["draw"]) for row in rows}
    for folder in arguments.folders:
        task = api.load(folder).task
        for draw in range(arguments.first_draw, arguments.first_draw + arguments.draws):
            for num_seeds in arguments.seeds:
                if (folder.name, num_seeds, draw) in done:
                    continue
                values = {"device": arguments.device}
                found = measure(draw_links(task, folder.name, num_seeds, draw), draw, arguments.preset, values)
                rows.append({"set": folder.name, "seeds": num_seeds, "draw": draw, **found})
                print(json.dumps(rows[-1]), flush=True)
                if arguments.json:
                    origin = origin_of(settings_of(draw, arguments.preset, values), [folder])
                    add_line(arguments.json, f"{folder.name}, {num_seeds}, {draw}", origin, rows[-1])
    report(rows)


if __name__ == "__main__":
    main()
