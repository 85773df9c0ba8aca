"""What an update costs against training anew: `updating.py FOLDER ... [--seeds 0 1 2] [--json FILE] [--page]`.

Entities of random test links are withheld with all their triples; a run is trained on the rest and updated with them,
and another is trained on everything. Seeds = train links, valid links calibrate, structure and rules, all defaults. H@1
by CSLS, source to target and the other way round, of each test entity against all of the other side, for the withheld
links and for all other test links. Finished cases are lines of the JSON file and are not repeated. `--page` writes the
table of docs/measurements/updating.md from the records.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from largegnn import api
from largegnn.artifacts import IntArray, Mask
from largegnn.data.load import LoadedPair
from largegnn.evaluation.metrics import rank_links_by
from largegnn.paper.origin import origin_of
from largegnn.paper.pages import mean_text, put_table
from largegnn.paper.record_lines import add_line, read_lines
from largegnn.result import AlignmentResult
from largegnn.settings import Settings

DOCS = Path(__file__).parents[1] / "docs"
RECORDS = DOCS / "results" / "updating.jsonl"
# Case: (share of the test links that lose an end, which ends).
CASES = {
    "source ends of a twentieth": (0.05, "source"),
    "either ends of a twentieth": (0.05, "either"),
    "both ends of a twentieth": (0.05, "both"),
    "either ends of two fifths": (0.4, "either"),
}


def withheld_of(pair: LoadedPair, name: str, case: str, seed: int) -> tuple[IntArray, Mask]:
    """The test links that lose an end (places), and which entities are withheld."""
    share, ends = CASES[case]
    links = pair.task.test_links
    rng = np.random.default_rng([zlib.crc32(f"{name} {case}".encode()), seed])
    places = np.sort(rng.permutation(len(links))[: int(share * len(links))])
    chosen = links[places]
    if ends == "either":
        taken = np.where(rng.random(len(places)) < 0.5, chosen[:, 0], chosen[:, 1])
    else:
        taken = chosen[:, 0] if ends == "source" else chosen.ravel()
    withheld = np.zeros(pair.task.num_entities, dtype=bool)
    withheld[taken] = True
    return places, withheld


def triples_of(pair: LoadedPair, kept: Mask) -> list[pl.DataFrame]:
    """Some triples of both graphs, by name."""
    triples, names = pair.task.triples[kept], pair.names
    is_source = triples[:, 0] < pair.task.num_source_entities
    return [
        pl.DataFrame(
            {
                "head": names.entities.take(own[:, 0].tolist()),
                "relation": names.relations.take(own[:, 1].tolist()),
                "tail": names.entities.take(own[:, 2].tolist()),
            }
        )
        for own in (triples[is_source], triples[~is_source])
    ]


def links_of(pair: LoadedPair, links: IntArray) -> pl.DataFrame:
    """Links by name."""
    source, target = (pair.names.entities.take(links[:, side].tolist()) for side in (0, 1))
    return pl.DataFrame({"source": source, "target": target})


def hits(result: AlignmentResult, pair: LoadedPair, places: IntArray) -> dict[str, list[float]]:
    """H@1 by CSLS in both directions, of the withheld links and of the others."""
    ids = {name: number for number, name in enumerate(result.names.entities.take(range(result.task.num_entities)))}
    links = pair.task.test_links
    own = [np.array([ids[name] for name in pair.names.entities.take(links[:, side].tolist())]) for side in (0, 1)]
    embeddings = result.run.final_embeddings()
    ranks = rank_links_by(
        embeddings.vectors[own[0]],
        embeddings.vectors[own[1]],
        source_covered=embeddings.covered[own[0]],
        target_covered=embeddings.covered[own[1]],
    )["csls"]
    others = np.setdiff1d(np.arange(len(links)), places)
    return {
        name: [float((side == 1).mean()) for side in (some.source_to_target, some.target_to_source)]
        for name, some in (("withheld", ranks.some(places)), ("others", ranks.some(others)))
    }


def measure(pair: LoadedPair, name: str, case: str, seed: int, settings: Settings) -> dict[str, Any]:
    """One case: the run updated, and the run trained on everything."""
    task = pair.task
    places, withheld = withheld_of(pair, name, case, seed)
    touched = withheld[task.triples[:, 0]] | withheld[task.triples[:, 2]]
    seeds, valid, test = (links_of(pair, links) for links in (task.train_links, task.valid_links, task.test_links))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        source, target = triples_of(pair, ~touched)
        api.align(source, target, seeds, valid_links=valid, out=folder / "known", settings=settings)
        started = time.perf_counter()
        added = [graph if graph.height else None for graph in triples_of(pair, touched)]
        updated = api.update(folder / "known", added[0], added[1], test_links=test, out=folder / "updated")
        seconds = time.perf_counter() - started
        source, target = triples_of(pair, np.ones(len(touched), dtype=bool))
        out = folder / "full"
        full = api.align(source, target, seeds, valid_links=valid, test_links=test, out=out, settings=settings)
        report = updated.summary.update
        assert report is not None
        return {
            "links": len(places),
            "new_entities": sum(report.entities),
            "updated": hits(updated, pair, places),
            "full": hits(full, pair, places),
            "f1": {name: f1_of(result) for name, result in (("updated", updated), ("full", full))},
            "estimate": report.cost.ratio if report.cost else None,
            "update_seconds": seconds,
            "train_seconds": full.run.cost("train").seconds,
        }


def f1_of(result: AlignmentResult) -> float:
    """F1 of the accepted pairs by the test links."""
    return float(result.summary.to_dict()["real"]["accepted"]["f1"])


def page(rows: list[dict[str, Any]]) -> str:
    """A row for each case: means over random seeds."""
    lines = [
        "| set, withheld | runs | new entities | withheld links: updated | full | other links: updated | full "
        "| estimate | F1: updated | full |",
        "|---" * 10 + "|",
    ]
    for (name, case), own in groups(rows):
        cells = [f"{name}, {case}", str(len(own)), f"{np.mean([row['new_entities'] for row in own]):,.0f}"]
        cells += [
            mean_text([float(np.mean(row[which][part])) for row in own])
            for part in ("withheld", "others")
            for which in ("updated", "full")
        ]
        cells.append(mean_text([row["estimate"] for row in own]))
        cells += [mean_text([row["f1"][which] for row in own]) for which in ("updated", "full")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def groups(rows: list[dict[str, Any]]) -> Iterator[tuple[tuple[str, str], list[dict[str, Any]]]]:
    """The records of each set and case."""
    for name in sorted({row["set"] for row in rows}):
        for case in CASES:
            own = [row for row in rows if (row["set"], row["case"]) == (name, case)]
            if own:
                yield (name, case), own


def main() -> None:
    """Measure what is missing, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="random seeds, of the draw too")
    parser.add_argument("--json", type=Path, default=RECORDS)
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    rows = read_lines(arguments.json) if arguments.json.exists() else []
    if arguments.page:
        put_table(DOCS / "measurements" / "updating.md", "updating", page(rows))
        return
    done = {row["key"] for row in rows}
    for folder in arguments.folders:
        pair = api.load(folder)
        for seed in arguments.seeds:
            for case in CASES:
                key = f"{folder.name}, {case}, {seed}"
                if key not in done:
                    # A seed whose neighbours are all withheld is in no triple of the first run: it is left out there.
                    chosen = {"seed": seed, "channels": ["structure", "rules"], "data.skip_unknown": True}
                    settings = Settings.of(chosen)
                    found = {"set": folder.name, "case": case} | measure(pair, folder.name, case, seed, settings)
                    add_line(arguments.json, key, origin_of(settings, [folder]), found)
                    print(key, found, flush=True)


if __name__ == "__main__":
    main()
