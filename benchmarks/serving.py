"""How many queries a second does `largegnn serve` answer over HTTP? `python benchmarks/serving.py RUN [--seconds 10]`.

A server in a process of its own, and one client with one connection, as OpenRefine has it: batches of ten queries, and
single ones. Names are drawn at random from the run: the very name, one with a letter missing, one word of it, and the
identifier. Printed are queries a second by the clock and by the processor time of the server, which on a machine that
others use too says more. Rows become lines of docs/results/serving.jsonl and are not repeated; `--page` writes the
table of docs/measurements/reviewing.md from them.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

import numpy as np

from largegnn import api
from largegnn.paper.origin import origin_of_run
from largegnn.paper.pages import put_table
from largegnn.paper.record_lines import add_line, read_lines

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "results" / "serving.jsonl"
PAGE = ROOT / "docs" / "measurements" / "reviewing.md"
BATCH = 10


def texts_of(run: Path, count: int) -> dict[str, list[str]]:
    """What to ask for, by kind."""
    result = api.open_run(run)
    task, rng = result.task, np.random.default_rng(0)
    entities = [int(one) for one in rng.integers(0, task.num_source_entities, count)]
    identifiers = result.names.entities.take(entities)
    names = result.labels(identifiers, "source")
    cuts = [int(len(name) * at) for name, at in zip(names, rng.random(count), strict=True)]
    missing = [name[:at] + name[at + 1 :] for name, at in zip(names, cuts, strict=True)]
    return {
        "by the very name": names,
        "by a name with a letter missing": missing,
        "by one word of a name": [max(name.split(), key=len, default=name) for name in names],
        "by identifier": identifiers,
    }


def processor_seconds(process: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(connection: http.client.HTTPConnection, texts: list[str]) -> None:
    """One batch as a form, as OpenRefine sends it."""
    queries = {f"q{number}": {"query": text, "limit": 5} for number, text in enumerate(texts)}
    body = urllib.parse.urlencode({"queries": json.dumps(queries)})
    connection.request("POST", "/", body, {"content-type": "application/x-www-form-urlencoded"})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    assert answer.status == 200, found
    assert found.keys() == queries.keys(), found


def write_page() -> None:
    """The table of the page, from the records."""
    lines = ["| queries | in batches of | a second | a second of processor |", "|---|---|---|---|"]
    for one in read_lines(RECORDS):
        rates = f"{one['per_second']:,.0f} | {one['per_processor_second']:,.0f}"
        lines.append(f"| {one['queries']} | {one['batch']} | {rates} |")
    put_table(PAGE, "serving", "\n".join(lines))


def main() -> None:
    """Start the server, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--out", type=Path, default=RECORDS)
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.page:
        write_page()
        return
    texts = texts_of(given.run, 20_000)
    how = "one client, one connection, POST as a form, limit 5, names drawn at random with seed 0"
    name, origin = given.run.resolve().name, origin_of_run(api.open_run(given.run).run, {"client": how})
    done = {line["key"] for line in read_lines(given.out)} if given.out.exists() else set()
    started = time.perf_counter()
    command = [sys.executable, "-m", "largegnn", "serve", str(given.run), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(re.findall(r":(\d+)/", server.stdout.readline())[0])
        ready = {"ready_seconds": round(time.perf_counter() - started, 1)}
        ready["ready_processor_seconds"] = round(processor_seconds(server.pid), 1)
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for kind, wanted in texts.items():
            for size in (BATCH, 1):
                key = f"{name}, {kind}, {size}"
                if key in done:
                    continue
                used, begun, count = processor_seconds(server.pid), time.perf_counter(), 0
                while time.perf_counter() - begun < given.seconds and count + size <= len(wanted):
                    ask(connection, wanted[count : count + size])
                    count += size
                seconds, used = time.perf_counter() - begun, processor_seconds(server.pid) - used
                rates = {"per_second": count / seconds, "per_processor_second": count / max(used, 0.01)}
                row = {**ready, "queries": kind, "batch": size, **rates, "load": os.getloadavg()[0]}
                add_line(given.out, key, origin, row)
                print(kind, size, *(f"{rate:,.0f}" for rate in rates.values()), flush=True)
        server.terminate()


if __name__ == "__main__":
    main()
