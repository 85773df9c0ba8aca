"""The same run over folds and random seeds: `repeats.py FOLDER ... [--folds 1 2 3 4 5] [--seeds 0 1 2] [--set K=V]`.

Seeds are the train links of the fold, valid links choose epoch and calibrate, test links judge: OpenEA's protocol, 20 %
of the links as seeds. Each run is one line of the JSON file: H@1, H@5 and MRR, source to target among all test targets,
ties against us, by every scoring; the accepted pairs with their expected and their true precision, plain and by partial
gold; seconds. Finished runs are not repeated. `--page` writes the tables of docs/measurements/results.md (folds) and
docs/measurements/alignment.md (expected precision).

    python benchmarks/repeats.py data/EN_FR_15K_V1 --folds 1 2 3 4 5 --runs repeats
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from largegnn.artifacts import Alignment, AlignmentTask, Evaluation
from largegnn.data.inputs import DataInput
from largegnn.evaluation.pair_metrics import precision_recall_f1
from largegnn.paper.origin import origin_of
from largegnn.paper.pages import put_table
from largegnn.paper.record_lines import add_line, read_lines
from largegnn.pipeline import run_pipeline
from largegnn.settings import PRESETS, Settings, resolve
from largegnn.stages.match import MatchOutcome

DOCS = Path(__file__).parents[1] / "docs"
RECORDS = DOCS / "results" / "repeats.jsonl"
SYSTEMS = ("cosine", "csls", "csls+rules", "transport+rules")
Row = dict[str, Any]


def measure(folder: Path, fold: int, seed: int, overrides: list[str], runs: Path) -> tuple[Settings, Row]:
    """One run to its figures."""
    values = {"seed": seed, "data": {"fold": fold}, "channels": ["structure", "rules"]}
    settings = resolve(Settings, PRESETS, None, None, overrides, values=values)
    place = runs / "_".join([folder.name, str(fold), str(seed), *(each.replace("/", "-") for each in overrides)])
    run = run_pipeline(place, DataInput(folder=folder), settings, last="evaluate")
    found, outcome = run.outcome("evaluate", Evaluation), run.outcome("match", MatchOutcome)
    assert found.ideal is not None
    assert found.real is not None
    pairs = found.real["accepted"]
    task, alignment = run.artifact("task", AlignmentTask), run.artifact("alignment", Alignment)
    known = np.concatenate([task.test_links, task.held_out(settings.protocol.seeds_from)])
    whole = precision_recall_f1(alignment.pairs[alignment.accepted], known)
    row = {
        "set": folder.name,
        "chosen": overrides,
        "ideal": {
            name: {key: round(value or 0.0, 4) for key, value in figures.source_to_target.items()}
            for name, figures in found.ideal.items()
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
            # With the valid links, which the expected precision counts too.
            "precision_of_all": whole.precision,
        },
        "train_links": found.protocol.num_seeds,
        "test_links": found.protocol.num_test_links,
        "seconds": round(sum(run.cost(name).seconds for name in run.finished()), 1),
        "peak_mb": round(max(run.cost(name).peak_memory_mb for name in run.finished())),
    }
    return settings, row


def _cell(values: list[float]) -> str:
    text = f"{statistics.mean(values):.3f}".removeprefix("0")
    return text if len(values) < 2 else f"{text} ± {statistics.stdev(values):.3f}".replace("± 0", "± ")


def table_of_folds(records: list[Row]) -> str:
    """Mean and sample deviation over all runs of a set that has several folds."""
    lines = ["| set | settings | runs | " + " | ".join(f"H@1 {name}" for name in SYSTEMS) + " | MRR transport+rules |"]
    lines.append("|" + "---|" * (4 + len(SYSTEMS)))
    for (name, chosen), rows in _grouped(records, of_folds=True).items():
        cells = [_cell([row["ideal"][system]["hits@1"] for row in rows]) for system in SYSTEMS]
        cells.append(_cell([row["ideal"]["transport+rules"]["mrr"] for row in rows]))
        folds = len({row["origin"]["protocol"]["fold"] for row in rows})
        shown = ", ".join(f"`{each}`" for each in chosen) or "default"
        lines.append(f"| {name} | {shown} | {len(rows)} over {folds} folds | {' | '.join(cells)} |")
    return "\n".join(lines)


def table_of_precision(records: list[Row]) -> str:
    """Expected against true precision of each run of a set that has one fold."""
    lines = [
        "| set | settings | random seed | pairs | expected | by all links | plain | partial gold | F1 | partial F1 |"
    ]
    lines.append("|" + "---|" * 10)
    for (name, chosen), rows in _grouped(records, of_folds=False).items():
        shown = ", ".join(f"`{each}`" for each in chosen) or "default"
        for row in rows:
            own = row["accepted"]
            keys = ("expected_precision", "precision_of_all", "precision", "partial_precision", "f1", "partial_f1")
            cells = " | ".join(_cell([own[key]]) if own.get(key) is not None else "not noted" for key in keys)
            lines.append(f"| {name} | {shown} | {row['origin']['random_seed']} | {own['pairs']:,} | {cells} |")
    return "\n".join(lines)


def _grouped(records: list[Row], *, of_folds: bool) -> dict[tuple[str, tuple[str, ...]], list[Row]]:
    groups = defaultdict(list)
    for row in records:
        groups[row["set"], tuple(row["chosen"])].append(row)
    return {
        key: sorted(rows, key=lambda row: (row["origin"]["protocol"]["fold"], row["origin"]["random_seed"]))
        for key, rows in sorted(groups.items())
        if (len({row["origin"]["protocol"]["fold"] for row in rows}) > 1) == of_folds
    }


def main() -> None:
    """Measure what is missing, and write the tables if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--folds", nargs="+", type=int, default=[1])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--runs", type=Path, default=Path("repeats"))
    parser.add_argument("--json", type=Path, default=RECORDS)
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    done = {line["key"] for line in read_lines(options.json)} if options.json.exists() else set()
    for folder in options.folders:
        for fold, seed in ((fold, seed) for seed in options.seeds for fold in options.folds):
            key = ", ".join([folder.name, f"fold {fold}", f"random seed {seed}", *options.overrides])
            if key not in done:
                settings, row = measure(folder, fold, seed, options.overrides, options.runs)
                add_line(options.json, key, origin_of(settings, [folder]), row)
                print(key, {name: row["ideal"][name]["hits@1"] for name in row["ideal"]}, row["accepted"], flush=True)
    if options.page:
        records = read_lines(options.json)
        put_table(DOCS / "measurements" / "results.md", "folds", table_of_folds(records))
        put_table(DOCS / "measurements" / "alignment.md", "expected precision", table_of_precision(records))


if __name__ == "__main__":
    main()
