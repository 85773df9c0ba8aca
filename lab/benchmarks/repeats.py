"""Repeat a run over folds and random seeds: `repeats FOLDER ... [--folds 1 2 3] [--seeds 0 1 2] [--set K=V]`.

The protocol is OpenEA's: seeds are the train links of the fold (20 % of the links), valid links choose the epoch and
calibrate, test links measure. Each run is one line of the JSON file: H@1, H@5 and MRR (source to target among all test
targets, ties count as errors) by every scoring; the accepted pairs with their expected and true precision, plain and by
partial gold; seconds. Finished runs are not repeated.

    python -m lab.benchmarks.repeats data/EN_FR_15K_V1 --folds 1 2 3 4 5 --runs repeats
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from lab import RESULTS
from lab.lines import add_line, read_lines
from lab.origin import origin_of
from lab.runs import DataInput, MatchOutcome, run_pipeline
from largegnn.artifacts import Alignment, AlignmentTask, Evaluation
from largegnn.evaluation.pair_metrics import precision_recall_f1
from largegnn.settings import PRESETS, Settings, resolve

RECORDS = RESULTS / "repeats.jsonl"
SYSTEMS = ("cosine", "csls", "csls+rules", "transport+rules")
Row = dict[str, Any]


def measure(folder: Path, fold: int, seed: int, overrides: list[str], runs: Path) -> tuple[Settings, Row]:
    """Make one run; return its settings and figures."""
    values = {"seed": seed, "data": {"fold": fold}, "channels": ["structure", "rules"]}
    settings = resolve(Settings, PRESETS, None, None, overrides, values=values)
    run_folder = runs / "_".join([folder.name, str(fold), str(seed), *(text.replace("/", "-") for text in overrides)])
    run = run_pipeline(run_folder, DataInput(folder=folder), settings, last="evaluate")
    evaluation = run.outcome("evaluate", Evaluation)
    outcome = run.outcome("match", MatchOutcome)
    assert evaluation.ideal is not None
    assert evaluation.real is not None
    pairs = evaluation.real["accepted"]
    task, alignment = run.artifact("task", AlignmentTask), run.artifact("alignment", Alignment)
    known = np.concatenate([task.test_links, task.held_out(settings.protocol.seeds_from)])
    whole = precision_recall_f1(alignment.pairs[alignment.accepted], known)
    row = {
        "set": folder.name,
        "chosen": overrides,
        "ideal": {
            name: {key: round(value or 0.0, 4) for key, value in figures.source_to_target.items()}
            for name, figures in evaluation.ideal.items()
        },
        "accepted": {
            "pairs": pairs.pairs,
            "precision": pairs.precision,
            "recall": pairs.recall,
            "f1": pairs.f1,
            "partial_precision": pairs.partial_precision,
            "partial_f1": pairs.partial_f1,
            "expected_precision": outcome.threshold.expected_precision,
            "expected_recall": outcome.threshold.expected_recall,
            # Including the valid links, as in the expected precision.
            "precision_of_all": whole.precision,
        },
        "train_links": evaluation.protocol.num_seeds,
        "test_links": evaluation.protocol.num_test_links,
        "seconds": round(sum(run.costs()[name].seconds for name in run.finished), 1),
        "peak_mb": round(max(run.costs()[name].peak_memory_mb for name in run.finished)),
    }
    return settings, row


def main() -> None:
    """Make the missing runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--folds", nargs="+", type=int, default=[1])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--runs", type=Path, default=Path("repeats"))
    parser.add_argument("--json", type=Path, default=RECORDS)
    options = parser.parse_args()
    done = {line["key"] for line in read_lines(options.json)} if options.json.exists() else set()
    for folder in options.folders:
        for fold, seed in ((fold, seed) for seed in options.seeds for fold in options.folds):
            key = ", ".join([folder.name, f"fold {fold}", f"random seed {seed}", *options.overrides])
            if key not in done:
                settings, row = measure(folder, fold, seed, options.overrides, options.runs)
                add_line(options.json, key, origin_of(settings, [folder]), row)
                print(key, {name: row["ideal"][name]["hits@1"] for name in row["ideal"]}, row["accepted"], flush=True)


if __name__ == "__main__":
    main()
