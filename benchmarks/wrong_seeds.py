"""What do a few wrong seeds cost? `wrong_seeds.py EN_DE_15K_V1 EN_FR_15K_V1 [--repeats 3]`.

The first set's seeds were inferred and about 2 % are wrong; its file `recovered_link_margin.tsv` says how sure each is
(a margin, or that the names are equal). It is trained with all seeds, without the tenth of the lowest margin, and
without a tenth drawn at random, which costs as many seeds but removes no more wrong ones than others. In the second
set, whose seeds are right, 2 % of the seeds exchange their targets. If the wrong seeds of the first set explain its
distance from the paper, both differences are of that size.
The setting is that of plain LargeGNN in the paper's tables (`configs/paper`: seeds = train + valid, structure only);
test sources against all test targets, ties against us; H@1 by cosine and CSLS.
Finished runs are lines of `docs/results/wrong_seeds.jsonl` and not repeated.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from largegnn import api
from largegnn.artifacts import AlignmentTask, EntityEmbeddings, IntArray, Mask
from largegnn.data.load import LoadedPair
from largegnn.errors import InputError
from largegnn.evaluation.metrics import rank_links_by, summarise
from largegnn.paper.origin import origin_of
from largegnn.paper.record_lines import add_line, read_lines
from largegnn.paper.systems import PLAIN, read_systems
from largegnn.runs.on_task import run_task
from largegnn.settings import Settings

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "results" / "wrong_seeds.jsonl"
MARGINS = "recovered_link_margin.tsv"
DROPPED, WRONG = 0.1, 0.02
VARIANTS = ("all seeds", "without the least sure tenth", "without a tenth at random", "2 % of the seeds wrong")


def seeds_of(task: AlignmentTask) -> IntArray:
    """The seeds of the paper's protocol, (k, 2)."""
    return np.concatenate([task.train_links, task.valid_links])


def least_sure(pair: LoadedPair, folder: Path, share: float) -> Mask:
    """Which seeds (k,) have the lowest margins; equal names are the surest."""
    margins = {}
    for line in (folder / MARGINS).read_text(encoding="utf-8").splitlines():
        source, target, margin = line.split("\t")
        margins[source, target] = np.inf if margin == "exact-name" else float(margin)
    names, seeds = pair.names.entities, seeds_of(pair.task)
    found = np.array([margins[names[left], names[right]] for left, right in seeds.tolist()])
    chosen = np.zeros(len(seeds), dtype=bool)
    chosen[np.argsort(found, kind="stable")[: round(share * len(seeds))]] = True
    return chosen


def drawn(num_seeds: int, share: float, random_seed: int) -> Mask:
    """As many seeds (k,) at random."""
    chosen = np.zeros(num_seeds, dtype=bool)
    chosen[np.random.default_rng(random_seed).permutation(num_seeds)[: round(share * num_seeds)]] = True
    return chosen


def with_wrong(seeds: IntArray, share: float, random_seed: int) -> IntArray:
    """The seeds (k, 2), some of which have each other's targets."""
    rows = np.flatnonzero(drawn(len(seeds), share, random_seed))
    changed = seeds.copy()
    changed[rows, 1] = seeds[np.roll(rows, 1), 1]
    return changed


def variant_seeds(pair: LoadedPair, folder: Path, variant: str, random_seed: int) -> IntArray:
    """The seeds of a variant."""
    seeds = seeds_of(pair.task)
    if variant == VARIANTS[1]:
        return np.asarray(seeds[~least_sure(pair, folder, DROPPED)])
    if variant == VARIANTS[2]:
        return np.asarray(seeds[~drawn(len(seeds), DROPPED, random_seed)])
    return with_wrong(seeds, WRONG, random_seed) if variant == VARIANTS[3] else seeds


def measure(task: AlignmentTask, seeds: IntArray, settings: Settings) -> dict[str, Any]:
    """One run: H@1 of the test links."""
    own = dataclasses.replace(task, train_links=seeds, valid_links=seeds[:0])
    with tempfile.TemporaryDirectory() as folder:
        run = run_task(folder, own, settings=settings, last="integrate")
        found = run.artifact("embeddings", EntityEmbeddings)
        vectors = [found.vectors[task.test_links[:, side]] for side in (0, 1)]
        covered = [found.covered[task.test_links[:, side]] for side in (0, 1)]
        ranks = rank_links_by(*vectors, source_covered=covered[0], target_covered=covered[1])
        seconds = run.cost("train").seconds
    hits = {name: summarise(one).source_to_target["hits@1"] for name, one in ranks.items()}
    return {"seeds": len(seeds), "hits@1": hits, "train_seconds": round(seconds, 1)}


def report(rows: list[dict[str, Any]]) -> None:
    """Mean and sample deviation of each variant, and the difference from all seeds with the same random seed."""
    for name, variant in dict.fromkeys((row["set"], row["variant"]) for row in rows):
        own = [row for row in rows if (row["set"], row["variant"]) == (name, variant)]
        base = {row["random_seed"]: row for row in rows if (row["set"], row["variant"]) == (name, VARIANTS[0])}
        shown = []
        for scoring in ("cosine", "csls"):
            values = [row["hits@1"][scoring] for row in own]
            gains = [
                row["hits@1"][scoring] - base[row["random_seed"]]["hits@1"][scoring]
                for row in own
                if row["random_seed"] in base
            ]
            spread = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
            shown.append(f"{scoring} {statistics.mean(values):.4f}{spread} ({statistics.mean(gains or [0.0]):+.4f})")
        print(f"{name:<14} {variant:<30} {'  '.join(shown)}  {len(own)} runs", flush=True)


def main() -> None:
    """Run what is missing, print what there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inferred", type=Path, help="folder of the set whose seeds were inferred")
    parser.add_argument("right", type=Path, help="folder of the set whose seeds are right")
    parser.add_argument("--repeats", type=int, default=3, help="random seeds of each variant")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path, default=RECORDS)
    arguments = parser.parse_args()
    if not (arguments.inferred / MARGINS).exists():
        raise InputError("nothing says how sure its seeds are", where=str(arguments.inferred), expected=MARGINS)
    rows = read_lines(arguments.json) if arguments.json.exists() else []
    done = {row["key"] for row in rows}
    systems = read_systems(ROOT / "configs" / "paper")
    plain = {system.dataset: system.settings for system in systems if system.name == PLAIN}
    planned = [(arguments.inferred, variant) for variant in VARIANTS[:3]]
    planned += [(arguments.right, variant) for variant in (VARIANTS[0], VARIANTS[3])]
    for random_seed in range(arguments.repeats):
        for folder, variant in planned:
            key = f"{folder.name}, {variant}, {random_seed}"
            if key in done:
                continue
            settings = plain[folder.name].model_copy(update={"seed": random_seed, "device": arguments.device})
            pair = api.load(folder)
            found = measure(pair.task, variant_seeds(pair, folder, variant, random_seed), settings)
            about = {"set": folder.name, "variant": variant, "random_seed": random_seed}
            origin = origin_of(settings, [folder], protocol={"seeds": variant})
            rows.append(add_line(arguments.json, key, origin, about | found))
            report(rows[-1:])
    report(rows)


if __name__ == "__main__":
    main()
