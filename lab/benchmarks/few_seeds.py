"""Measure accuracy with few seeds: `few_seeds FOLDER ... [--shares 0.01 0.05 0.1 0.2 0.3] [--rounds 3]`.

Seeds, a share of all links, are drawn at random from the train and valid links of the first fold of a data set;
`data.valid_share = auto` determines how many of them are held out as valid links. All other links are test links, and
matching is among all entities that are not seeds, because rules need the neighbours.
One run gives a row without and a row with self-training rounds: H@1 (source to target among the test targets, ties
count as errors) by cosine, CSLS, CSLS with rules and transport with rules; the accepted pairs of the last row are
judged by the same links. Finished rows are lines of the JSON file and are not repeated; run folders are kept in
`--runs`, so that the matching can be examined later.

    python -m lab.benchmarks.few_seeds data/EN_FR_15K_V1 data/EN_DE_15K_V1 --runs few_seeds
"""

from __future__ import annotations

import argparse
import dataclasses
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from lab import RESULTS
from lab.lines import add_line, read_lines
from lab.origin import origin_of
from lab.runs import MatchOutcome, RoundsOutcome, Run, evaluate, run_task
from largegnn import api
from largegnn.artifacts import (
    Alignment,
    AlignmentTask,
    EntityEmbeddings,
    IntArray,
    LiteralEvidence,
    Neighbors,
    Partition,
    are_among,
)
from largegnn.data.links import num_held_out
from largegnn.evaluation.pair_metrics import precision_recall_f1
from largegnn.settings import PRESETS, Settings, resolve

RECORDS = RESULTS / "few_seeds.jsonl"
SYSTEMS = ("cosine", "csls", "csls+rules", "transport+rules")
Row = dict[str, Any]


def draw_links(task: AlignmentTask, name: str, share: float, draw: int) -> AlignmentTask:
    """Draw a share of all links from the train and valid links as train and valid links; the others are test links."""
    links = np.concatenate([task.train_links, task.valid_links])
    links = links[np.lexsort((links[:, 1], links[:, 0]))]
    number = round(share * (len(links) + len(task.test_links)))
    # All shares use the same order, so the seeds of a larger share include those of a smaller share.
    order = np.random.default_rng([zlib.crc32(name.encode()), draw]).permutation(len(links))
    num_valid = num_held_out(number, "auto")

    def chosen(rows: IntArray) -> IntArray:
        return np.asarray(links[np.sort(rows)])

    return dataclasses.replace(
        task,
        train_links=chosen(order[num_valid:number]),
        valid_links=chosen(order[:num_valid]),
        test_links=np.concatenate([chosen(order[number:]), task.test_links]),
    )


def finished_run(folder: Path, task: AlignmentTask, settings: Settings) -> Run:
    """Compute the run in this folder up to the step `match`, or open it if it is finished."""
    if (folder / "manifest.json").exists():
        run = Run.open(folder)
        if "match" in run.finished:
            return run
    return run_task(folder, task, settings=settings, last="match")


def hits(run: Run, embeddings: EntityEmbeddings, task: AlignmentTask) -> dict[str, float]:
    """Compute H@1 of the test links by every scoring."""
    settings = run.settings
    evaluation = evaluate(
        task,
        embeddings,
        run.artifact("alignment", Alignment),
        run.artifact("source_neighbors", Neighbors),
        run.artifact("target_neighbors", Neighbors),
        run.artifact("membership", Partition),
        LiteralEvidence.empty(),
        settings.data,
        settings.protocol,
        ("structure", "rules"),
        settings.match,
        settings.rounds,
        settings.evaluate,
        settings.search,
        settings.seed,
        device=settings.device,
    ).outcome
    assert evaluation.ideal is not None
    return {name: round(evaluation.ideal[name].source_to_target["hits@1"] or 0.0, 4) for name in SYSTEMS}


def accepted(run: Run, task: AlignmentTask) -> Row:
    """Judge the accepted pairs that are not valid links by the test links."""
    alignment, outcome = run.artifact("alignment", Alignment), run.outcome("match", MatchOutcome)
    pairs = alignment.pairs[alignment.accepted]
    pairs = pairs[~are_among(pairs, task.valid_links)]
    true = precision_recall_f1(pairs, task.test_links)
    return {
        "pairs": len(pairs),
        "precision": None if true.precision is None else round(true.precision, 4),
        "recall": None if true.recall is None else round(true.recall, 4),
        "expected": outcome.threshold.expected_precision,
    }


def measure(run: Run, task: AlignmentTask) -> list[Row]:
    """Return the rows of one run: without rounds and, if it has rounds, with them."""
    rows: list[Row] = [{"rounds": 0, "hits@1": hits(run, run.artifact("embeddings", EntityEmbeddings), task)}]
    if run.settings.rounds.number:
        rows.append(
            {
                "rounds": run.settings.rounds.number,
                "hits@1": hits(run, run.embeddings, task),
                "history": [dataclasses.asdict(entry) for entry in run.outcome("rounds", RoundsOutcome).history],
            }
        )
    rows[-1]["accepted"] = accepted(run, task)
    return rows


def describe_run(run: Run, task: AlignmentTask) -> Row:
    """Return the protocol and the seconds of a run, which belong to its figures."""
    return {
        "protocol": {
            "train": len(task.train_links),
            "valid": len(task.valid_links),
            "test": len(task.test_links),
            "ranked": "source to target, among all test targets; ties against us",
        },
        "seconds": round(sum(run.costs()[name].seconds for name in run.finished)),
    }


def main() -> None:
    """Make the missing runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--shares", nargs="+", type=float, default=[0.01, 0.05, 0.1, 0.2, 0.3])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--draw", type=int, default=0, help="which random draw of the seeds; also the random seed")
    parser.add_argument("--set", action="append", default=[], help="a setting, as key=value")
    parser.add_argument("--runs", type=Path, default=Path("few_seeds"))
    parser.add_argument("--json", type=Path, default=RECORDS)
    options = parser.parse_args()
    records: list[Row] = read_lines(options.json) if options.json.exists() else []
    for folder in options.folders:
        loaded = api.load(folder).task
        for share in options.shares:
            task = draw_links(loaded, folder.name, share, options.draw)
            fields = {"set": folder.name, "share": share, "draw": options.draw, "chosen": options.set}
            if not any(fields.items() <= row.items() for row in records):
                overrides = [f"rounds.number={options.rounds}", f"seed={options.draw}", *options.set]
                folder_name = "_".join([folder.name, f"{share:g}", str(options.draw), *options.set])
                run = finished_run(options.runs / folder_name, task, resolve(Settings, PRESETS, overrides=overrides))
                origin = origin_of(run.settings, [folder], channels=run.channels)
                for row in measure(run, task):
                    key = ", ".join(
                        [folder.name, f"{share:g}", *options.set, f"{row['rounds']} rounds, {options.draw}"]
                    )
                    records.append(add_line(options.json, key, origin, {**fields, **row, **describe_run(run, task)}))
                    print(key, row, flush=True)


if __name__ == "__main__":
    main()
