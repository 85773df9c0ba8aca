"""The tables of docs/measurements/cluster.md from the records of `cluster.py`: `cluster_page.py`."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from largegnn.paper.pages import put_table
from largegnn.paper.record_lines import read_lines

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "results" / "cluster.jsonl"
STALENESS = ROOT / "docs" / "results" / "staleness.jsonl"
PAGE = ROOT / "docs" / "measurements" / "cluster.md"

Record = dict[str, Any]


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]], note: str = "") -> str:
    """A heading and a table in Markdown."""
    columns = list(columns)
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n\n".join([f"## {title}", *([note] if note else []), "\n".join(lines)])


def spread(values: list[float]) -> str:
    """Mean, and the sample deviation where there are several."""
    mean = f"{statistics.mean(values):.4f}"
    return f"{mean} ± {statistics.stdev(values):.4f}" if len(values) > 1 else mean


def accuracy(records: list[Record]) -> str:
    """One row for each number of subgraphs and of nodes, over the random seeds."""
    rows = []
    for parts, nodes in sorted({(record["parts"], record["nodes"]) for record in records}):
        some = [record for record in records if (record["parts"], record["nodes"]) == (parts, nodes)]
        uses = [record["cluster"] for record in some if record["cluster"]]
        cells = ["", "", ""]
        if uses:
            stale = statistics.mean(use["mean_staleness"] for use in uses)
            sent, shared = (statistics.mean(use[key] for use in uses) for key in ("bytes_sent", "shared_rows"))
            cells = [f"{stale:.2f} ({max(use['most_stale'] for use in uses)})", f"{sent / 1e6:,.0f}", f"{shared:,.0f}"]
        hits = [spread([record["hits"][name] for record in some]) for name in ("valid", "test")]
        rows.append([str(parts), "one process" if nodes == 1 else str(nodes), str(len(some)), *hits, *cells])
    columns = ("subgraphs", "nodes", "seeds", "H@1 valid", "H@1 test", "visits stale (most)", "MB sent", "shared rows")
    return table("Accuracy", columns, rows)


def throughput(records: list[Record]) -> str:
    """One row for each number of workers, and the ratio to one."""
    rows = []
    for record in records:
        first = next(each for each in records if each["workers"] == 1)
        use, seconds = record["cluster"], record["epoch_seconds"]
        ratios = [first[key] / record[key] for key in ("epoch_seconds", "search_seconds")]
        figures = [f"{record['parts'] / seconds:.2f}", f"{ratios[0]:.2f}"]
        figures += [f"{use['visit_cpu_seconds'] / use['num_visits']:.2f}", f"{use['peak_worker_mb']:.0f}"]
        rows.append([str(record["workers"]), *figures, str(record["search_seconds"]), f"{ratios[1]:.2f}"])
    columns = (
        "workers",
        "visits a second",
        "times one",
        "CPU seconds of a visit",
        "peak MB",
        "seconds of search",
        "times one",
    )
    some = records[0] if records else {}
    note = (
        f"{some.get('parts')} subgraphs, {some.get('epochs')} epochs, median of those that are not validated; exact "
        f"search of {some.get('search_rows', 0):,} rows of 384 numbers, both ways."
    )
    return table("Throughput", columns, rows, note)


def at_once(records: list[Record]) -> str:
    """One row for each number of visits at the same time, the sets side by side."""
    kinds = sorted({(record["set"], record["parts"], record["epochs"]) for record in records})
    rows = []
    for number in sorted({record["at_once"] for record in records}):
        cells = []
        for kind in kinds:
            own = [r for r in records if (r["set"], r["parts"], r["epochs"]) == kind and r["at_once"] == number]
            cells.append(spread([record["valid_hits@1"][-1] for record in own]) if own else "")
        rows.append([str(number), *cells])
    columns = ["visits at a time", *(f"{name}, {parts} subgraphs, {epochs} epochs" for name, parts, epochs in kinds)]
    note = (
        "H@1 of the valid links by cosine, mean over random seeds; played in one process by `benchmarks/staleness.py`, "
        "records in `docs/results/staleness.jsonl`."
    )
    return table("Visits at the same time", columns, rows, note)


def memory(records: list[Record]) -> str:
    """One row for each number of nodes."""
    rows = [
        [str(one["nodes"]), f"{one['cluster']['peak_worker_mb']:,.0f}", f"{one['shard_peak_mb']:,}"] for one in records
    ]
    size = "".join(f"{one['entities']:,} made-up entities, d = {one['dim']}." for one in records[:1])
    return table("Memory", ("nodes and workers", "peak MB of a worker", "peak MB of a shard"), rows, size)


def overhead(records: list[Record]) -> str:
    """A run without a cluster and one on a cluster of this machine."""
    rows = [
        [
            f"{one['set']}, {one['parts']} subgraphs, {one['epochs']} epochs",
            one["address"],
            str(one["seconds"]),
            f"{one['train_seconds']:.1f}",
            f"{one['hits']['valid']:.4f}",
        ]
        for one in records
    ]
    columns = ("set", "--cluster", "seconds up to integrate", "of training", "H@1 valid")
    return table("A cluster on one machine", columns, rows)


def sixteen(records: list[Record]) -> str:
    """Workers that share the processors of one machine."""
    rows = []
    for one in records:
        use, workers = one["cluster"], one["workers"]
        visits = [f"{use['visit_seconds'] / workers:.1f}", f"{use['visit_cpu_seconds']:.0f}"]
        rows.append([str(workers), str(16 // workers), *visits, str(one["search_seconds"])])
    columns = ("workers", "threads of each", "seconds of visits", "their CPU seconds", "seconds of search")
    some = records[0]
    note = (
        f"{some['set']}, {some['parts']} subgraphs, {some['cluster']['num_visits']} visits, on the H200's machine; "
        f"seconds of visits: their sum by the number of workers. Search of {some['search_rows']:,} rows."
    )
    return table("Sixteen workers against one with all threads", columns, rows, note)


def gpu_worker(records: list[Record]) -> str:
    """A worker that has a GPU."""
    rows = []
    for one in records:
        use = one["cluster"]
        cells = [
            str(use["num_workers"]),
            str(use["num_visits"]),
            f"{use['visit_seconds']:.1f}",
            f"{use['bytes_sent'] / 1e6:,.0f}",
        ]
        rows.append(
            [
                one["set"],
                *cells,
                f"{one['train_seconds']:.1f}",
                *(f"{one['hits'][name]:.4f}" for name in ("valid", "test")),
            ]
        )
    columns = (
        "set",
        "workers",
        "visits",
        "seconds of visits",
        "MB sent",
        "of training",
        "H@1 valid by cosine",
        "H@1 test by CSLS",
    )
    note = "`align --cluster local` on the H200's machine, 25 epochs with repartitioning: one GPU, so one worker."
    return table("A worker on a GPU", columns, rows, note)


def kills(records: list[Record]) -> str:
    """One row for each run that was disturbed."""
    rows = []
    for one in records:
        use, killed = one["cluster"], ", ".join(f"{count} {kind}s" for kind, count in one["kills"].items())
        counts = [str(use["visits_repeated"]), str(use["epochs_repeated"])]
        of_pieces = ", ".join(f"`{kind}`" for kind in one.get("pieces_killed", []))
        rows.append([killed, of_pieces, *counts, *(f"{one['hits'][name]:.4f}" for name in ("valid", "test"))])
    columns = ("killed", "workers killed at a piece", "visits made again", "epochs made again", "H@1 valid", "H@1 test")
    return table("Kills on three nodes", columns, rows)


TABLES = (accuracy, at_once, throughput, sixteen, gpu_worker, memory, overhead, kills)


def render(records: list[Record]) -> str:
    """All tables there are records for."""
    by_kind = [(make, [one for one in records if one["what"] == make.__name__]) for make in TABLES]
    return "\n\n".join(make(some) for make, some in by_kind if some)


def main() -> None:
    """Write the tables into the page."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    records = [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]
    records += [{"what": "at_once", **line} for line in read_lines(STALENESS)]
    put_table(PAGE, "tables", f"\n{render(records)}\n")


if __name__ == "__main__":
    main()
