"""Do landmarks and the mean over subgraphs get on? `landmarks.py FOLDER ... [--parts 40] [--repeats 3] [--page]`.

On the generated pair of a million entities landmarks lose by CSLS where the paper's plain mean over subgraphs is taken.
Here each way to bring subgraphs together (`integrate.method`) is applied to the same training, with landmarks and
without them; the other settings are those of plain LargeGNN there (`configs/paper/dbpedia1m`), with room for
landmarks in the same proportion. Seeds = train links; the valid links are ranked among themselves, both directions,
ties against us, and H@1 by cosine and CSLS is their mean. Test links are taken away before anything runs.
A pair like that one, of a twentieth of its size:

    largegnn generate twentieth --preset dbpedia1m --set source_entities=60564 --set target_entities=58843 \
        --set links=24428 --set source_triples=407533 --set target_triples=213436
    python benchmarks/landmarks.py twentieth

Finished runs are lines of `docs/results/landmarks.jsonl` and are not repeated. `--page` writes the table of
docs/measurements/division.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

from largegnn import api
from largegnn.artifacts import AlignmentTask, EntityEmbeddings
from largegnn.evaluation.metrics import rank_links_by, summarise
from largegnn.paper.origin import origin_of
from largegnn.paper.pages import mean_text, put_table
from largegnn.paper.record_lines import add_line, read_lines
from largegnn.paper.systems import PLAIN, read_systems
from largegnn.runs.on_task import division_of, run_task
from largegnn.settings import Settings

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "results" / "landmarks.jsonl"
PAGE = ROOT / "docs" / "measurements" / "division.md"
METHODS = ("plain_average", "average", "full")
ROOM = 1.5  # of a part's size: what the configuration leaves at a million


def settings_of(task: AlignmentTask, parts: int, seed: int, landmarks: bool, method: str) -> Settings:
    """Plain LargeGNN of the table of a million, on a graph of this size."""
    systems = read_systems(ROOT / "configs" / "paper" / "dbpedia1m")
    plain = next(system.settings for system in systems if system.name == PLAIN)
    values = plain.model_dump()
    values |= {"seed": seed, "device": "cpu", "protocol": {"seeds_from": "train"}, "channels": ["structure"]}
    values["division"] |= {"parts": parts}
    values["landmarks"] |= {"enabled": landmarks, "cap": int(ROOM * task.num_entities / parts)}
    values["integrate"] = {"method": method}
    return Settings.of(values)


def measure(task: AlignmentTask, settings: Settings) -> dict[str, float | None]:
    """One run: H@1 of the held-out links, and the share of them that the division keeps."""
    links = task.test_links
    with tempfile.TemporaryDirectory() as folder:
        run = run_task(folder, task, settings=settings, last="integrate")
        embeddings = run.artifact("embeddings", EntityEmbeddings)
        vectors = [embeddings.vectors[links[:, side]] for side in (0, 1)]
        covered = [embeddings.covered[links[:, side]] for side in (0, 1)]
        ranks = rank_links_by(*vectors, source_covered=covered[0], target_covered=covered[1])
        found: dict[str, float | None] = {name: summarise(ranks[name]).mean["hits@1"] for name in ("cosine", "csls")}
        return found | {"kept": division_of(run).quality.test_kept}


def table(rows: list[dict[str, Any]]) -> str:
    """A row for each way to bring subgraphs together."""
    groups = defaultdict(list)
    for row in rows:
        groups[row["set"], row["parts"], row["method"], row["landmarks"]].append(row)
    lines = [
        "| set | subgraphs | brought together by | landmarks | runs | links kept | cosine | CSLS |",
        "|---" * 8 + "|",
    ]
    for (name, parts, method, landmarks), own in groups.items():
        shown = [mean_text([row[figure] for row in own]) for figure in ("kept", "cosine", "csls")]
        about = f"{name} | {parts} | `{method}` | {'yes' if landmarks else 'no'}"
        lines.append(f"| {about} | {len(own)} | {' | '.join(shown)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, print what there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--parts", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=3, help="random seeds of each")
    parser.add_argument("--json", type=Path, default=RECORDS)
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    rows = read_lines(arguments.json) if arguments.json.exists() else []
    if arguments.page:
        put_table(PAGE, "landmarks and means", table(rows))
        return
    done = {row["key"] for row in rows}
    for folder in arguments.folders:
        loaded = api.load(folder).task
        task = dataclasses.replace(loaded, test_links=loaded.valid_links, valid_links=loaded.valid_links[:0])
        for seed, landmarks, method in product(range(arguments.repeats), (True, False), METHODS):
            about = f"{folder.name}, {arguments.parts} parts, {'with' if landmarks else 'without'} landmarks"
            key = f"{about}, {method}, {seed}"
            if key not in done:
                settings = settings_of(task, arguments.parts, seed, landmarks, method)
                found = measure(task, settings)
                origin = origin_of(settings, [folder], protocol={"judged by": "valid links"})
                names = {"set": folder.name, "parts": arguments.parts, "method": method, "landmarks": landmarks}
                rows.append(add_line(arguments.json, key, origin, names | found))
    print(table(rows))


if __name__ == "__main__":
    main()
