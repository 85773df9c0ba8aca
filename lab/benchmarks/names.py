"""Measure what names and values add, with seeds and without: `names SET ... [--seeds 0 10 ...] [--channels ...]`.

SET is a folder with source.nt, target.nt and links.tsv, or an OpenEA folder with ent_names_1 and ent_names_2. There is
one run for each number of seeds (a share below 1, or a count) and each choice of channels, with default settings; seeds
are drawn at random, and all other links are test links. Two baselines without seeds are measured too: equal labels
(pairs of entities whose normalised name no other entity has), and mutual best pairs by n-grams of the names, at the
best threshold by the truth. Finished rows are lines of the JSON file, with their origin, and are not repeated.

    python -m lab.benchmarks.names data/OAEI_anatomy --seeds 0 0.01 0.1 --channels auto structure literals
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from lab import RESULTS
from lab.lines import add_line
from lab.origin import origin_of
from largegnn import api
from largegnn.artifacts import IntArray, PairFigures
from largegnn.artifacts.literals import Literals
from largegnn.data.load import LoadedPair
from largegnn.evaluation.pair_metrics import precision_recall_f1
from largegnn.literals.candidates import literal_candidates
from largegnn.literals.profiles import profile_predicates
from largegnn.literals.texts import EntityTexts, identifier_names, texts_of_side
from largegnn.matching.candidates import preferred
from largegnn.settings import Settings, resolve

RECORDS = RESULTS / "names.jsonl"


def load(folder: Path) -> LoadedPair:
    """Load a data set with all its links as test links."""
    if (folder / "source.nt").exists():
        return api.load(folder / "source.nt", folder / "target.nt", test_links=folder / "links.tsv")
    return api.load(
        folder / "rel_triples_1",
        folder / "rel_triples_2",
        test_links=folder / "ent_links",
        source_names=folder / "ent_names_1",
        target_names=folder / "ent_names_2",
    )


def draw_seeds(links: IntArray, name: str, seeds: float) -> tuple[IntArray, IntArray]:
    """Draw a number or share of the links as seeds; return seeds and other links."""
    count = round(seeds * len(links)) if seeds < 1 else int(seeds)
    order = np.random.default_rng([zlib.crc32(name.encode()), count]).permutation(len(links))
    return links[np.sort(order[:count])], links[np.sort(order[count:])]


def measure(folder: Path, pair: LoadedPair, seeds: float, channels: str, overrides: list[str]) -> dict[str, Any]:
    """Align a loaded pair; return figures by partial and plain gold, and the expected precision."""
    known, test = draw_seeds(pair.task.test_links, folder.name, seeds)
    settings = settings_of(channels, overrides)
    with tempfile.TemporaryDirectory() as place:
        written = {"train": Path(place) / "seeds.tsv", "test": Path(place) / "test.tsv"}
        for path, links in zip(written.values(), (known, test), strict=True):
            names = pair.names.entities
            path.write_text("".join(f"{names[left]}\t{names[right]}\n" for left, right in links.tolist()), "utf-8")
        sides, extra = _files(folder)
        started = time.perf_counter()
        result = api.align(
            *sides,
            written["train"] if len(known) else None,
            test_links=written["test"],
            out=Path(place) / "run",
            settings=settings,
            **extra,
        )
        seconds = time.perf_counter() - started
        report = result.summary.to_dict()
    figures, ideal = report["real"]["accepted"], report["ideal"]
    best = {name: ranks["source_to_target"]["hits@1"] for name, ranks in ideal.items()}
    return {
        "system": "ours",
        "channels": "+".join(report["protocol"]["channels"]),
        "seeds": len(known),
        "anchors": report["protocol"]["num_anchors"],
        **_shares(figures),
        "expected": report["threshold"]["expected_precision"],
        "expected_partial": report["threshold"]["expected_partial"],
        "hits@1": {name: best[name] for name in list(best)[-2:]},
        "seconds": round(seconds, 1),
    }


def settings_of(channels: str, overrides: list[str]) -> Settings:
    """Return the default settings with these channels and the given overrides."""
    values = {} if channels == "auto" else {"channels": channels.split("+")}
    return resolve(Settings, {}, None, overrides=overrides, values=values)


def baselines(folder: Path, pair: LoadedPair) -> list[dict[str, Any]]:
    """Equal labels, and the mutual best by n-grams at the best cut, which only the truth shows."""
    sides = _texts(pair, 0), _texts(pair, 1)
    rows = [{"system": "equal labels", "seeds": 0, **_shares(vars(judged(equal_labels(*sides), pair.task.test_links)))}]
    graph = literal_candidates(*sides, 10)
    scores = graph.column("name")
    best = preferred(graph, scores, 1.0)[0]
    thresholds = np.arange(0.05, 1.0, 0.05)
    figures = [judged(graph.pairs(best[scores[best] >= value]), pair.task.test_links) for value in thresholds]
    rows.append(
        {
            "system": "n-grams, best cut",
            "seeds": 0,
            **_shares(vars(max(figures, key=lambda pairs: pairs.partial_f1 or 0))),
        }
    )
    return rows


def equal_labels(source: EntityTexts, target: EntityTexts) -> IntArray:
    """Find pairs of entities with a common normalised name that no other entity of either side has."""
    owners: list[dict[str, set[int]]] = [{}, {}]
    for texts, owners_of_name in zip((source, target), owners, strict=True):
        for owner, name in zip(texts.name_owners.tolist(), texts.names, strict=True):
            owners_of_name.setdefault(name, set()).add(owner)
    pairs = {
        (min(owners[0][name]), min(owners[1][name]))
        for name in owners[0].keys() & owners[1].keys()
        if len(owners[0][name]) == len(owners[1][name]) == 1
    }
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def judged(pairs: IntArray, links: IntArray) -> PairFigures:
    """Judge pairs by the links."""
    return precision_recall_f1(pairs, links)


def _texts(pair: LoadedPair, side: int) -> EntityTexts:
    task, literals = pair.task, pair.literals
    assert isinstance(literals, Literals)
    count = (task.num_source_entities, task.num_target_entities)[side]
    rows = literals.rows_of_sides(task.num_source_entities)[side]
    profiles = profile_predicates(literals, rows, count)
    identifiers = identifier_names(pair.names.entities, task.num_source_entities * side, count)
    return texts_of_side(literals, rows, profiles, identifiers, np.empty((0, 3), dtype=np.int64))


def _shares(figures: dict[str, Any]) -> dict[str, Any]:
    wanted = ("precision", "recall", "f1", "partial_precision", "partial_f1", "pairs")
    return {name: figures[name] for name in wanted}


def _files(folder: Path) -> tuple[tuple[Path, Path], dict[str, Any]]:
    if (folder / "source.nt").exists():
        return (folder / "source.nt", folder / "target.nt"), {}
    names = {"source_names": folder / "ent_names_1", "target_names": folder / "ent_names_2"}
    return (folder / "rel_triples_1", folder / "rel_triples_2"), names


def main() -> None:
    """Make the missing runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", type=Path)
    parser.add_argument("--seeds", nargs="*", type=float, default=[0.0])
    parser.add_argument("--channels", nargs="*", default=["auto"])
    parser.add_argument("--json", type=Path, default=RECORDS)
    parser.add_argument("--set", nargs="*", default=[], help="settings that differ from the defaults, as key=value")
    arguments = parser.parse_args()
    text = arguments.json.read_text(encoding="utf-8") if arguments.json.exists() else ""
    records = [json.loads(line) for line in text.splitlines()]
    done = {row["key"] for row in records}

    def add(key: str, rows: list[dict[str, Any]], folder: Path, channels: str = "literals") -> None:
        for row in rows:
            row_key = key if len(rows) == 1 else f"{key}, {row['system']}"
            used = row.get("channels", "literals").split("+")
            settings = settings_of(channels, arguments.set)
            origin = origin_of(settings, [folder], channels=used, protocol={"seeds": row["seeds"]})
            records.append(add_line(arguments.json, row_key, origin, {"set": folder.name, **row}))

    for folder in arguments.sets:
        pair = load(folder)
        key = f"{folder.name} baselines"
        if not any(known.startswith(key) for known in done):
            add(key, baselines(folder, pair), folder)
        for seeds in arguments.seeds:
            for channels in arguments.channels:
                key = f"{folder.name} {seeds:g} {channels}"
                if key not in done and not (channels == "structure" and seeds == 0):
                    add(key, [measure(folder, pair, seeds, channels, arguments.set)], folder, channels)


if __name__ == "__main__":
    main()
