"""Write the pages that show records: `docs/results.md`, the README's table, and the tables of the paper's systems.

In: the records in `lab/results`. Out: pages in which everything between `<!-- table:NAME -->` and `<!-- /table -->` is
written again, and every figure in a sentence is filled in from its record (`traced`). The text around the tables is
written by hand. `python -m lab tables` calls `write_pages`; a test fails if a page and the records differ.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lab import CONFIGS, MEASUREMENTS, RESULTS, ROOT
from lab.claims import claims_section
from lab.departures import departures_section
from lab.lines import read_lines
from lab.records import ResultRecord, made_by, read_results, summarise_records
from lab.sweep import read_subgraphs, subgraph_section
from lab.systems import BEST, DATASETS, SYSTEMS, read_systems
from lab.tables import fill_page, markdown_table, page_sections, scoring_section, summary_text
from lab.text import mean_text, share_text
from lab.traced import FILLED, fill

__all__ = ["render", "write_pages"]

Row = dict[str, Any]
README = ROOT / "README.md"
RESULTS_PAGE = ROOT / "docs" / "results.md"
PAPER_PAGE = MEASUREMENTS / "results.md"
ENTITIES = {
    "EN_FR_15K_V1": "15,000 + 15,000",
    "EN_DE_15K_V1": "15,000 + 15,000",
    "ContEA_FR_EN": "94,451 + 142,234",
    "DEBIAN_FILES_1M": "1,307,272 + 1,728,920",
}
SPEED = {
    "15K, two cores": "EN_FR_15K_V1, two cores",
    "ContEA_FR_EN, two cores": "ContEA_FR_EN, two cores",
    "1.3 + 1.7 million, one H200": "DEBIAN_FILES_1M, files to pairs, warm caches",
    "10 + 10 million, two cores": "generated, 10,000,000 entities a side, two cores",
}
STEPS = ("load", "literals", "merge", "partition", "landmarks", "subgraphs", "train", "integrate", "search", "match")


def write_pages() -> list[Path]:
    """Write all pages that show records, and return those that changed."""
    changed = []
    for page in dict.fromkeys((README, RESULTS_PAGE, PAPER_PAGE, *FILLED)):
        text, before = render(page), page.read_text(encoding="utf-8")
        if text != before:
            page.write_text(text, encoding="utf-8")
            changed.append(page)
    return changed


def render(page: Path) -> str:
    """Return the text of a page, filled in from the records."""
    text = page.read_text(encoding="utf-8")
    if page == README:
        text = fill_page(text, {"measured": measured_table()})
    elif page == RESULTS_PAGE:
        text = fill_page(text, results_sections())
    elif page == PAPER_PAGE:
        text = fill_page(text, paper_sections())
    return fill(text)


def paper_sections() -> dict[str, str]:
    """Return every table of the paper beside our records, and the tables that compare them."""
    systems, records = read_systems(CONFIGS), read_results(RESULTS)
    sections = page_sections(systems, records)
    sections["claims"] = claims_section(systems, records)
    sections["departures"] = departures_section(systems, records)
    sections["scorings"] = scoring_section(records)
    sections["subgraphs"] = subgraph_section(read_subgraphs(RESULTS / "subgraphs.jsonl"))
    return sections


def results_sections() -> dict[str, str]:
    """Return the tables of the page of results."""
    return {
        "measured": measured_table(),
        "paper": systems_table(),
        "scorings": scoring_section(read_results(RESULTS)),
        "folds": folds_table(_lines("repeats")),
        "few-seeds": few_seeds_table(_lines("few_seeds")),
        "names": names_table(_lines("names")),
        "confidence": confidence_table(_lines("calibration")),
        "seconds": seconds_table([*_lines("speed"), *_lines("growth")]),
        "growth": growth_table(_lines("growth")),
    }


def _lines(name: str) -> list[Row]:
    return read_lines(RESULTS / f"{name}.jsonl")


def _best_of(dataset: str) -> list[ResultRecord]:
    return [record for record in read_results(RESULTS) if (record.system, record.dataset) == (BEST, dataset)]


def measured_table() -> str:
    """Tabulate our best setting on four data sets, and name the versions that made the runs."""

    def hits(scoring: str) -> Callable[[ResultRecord], float | None]:
        return lambda record: (record.ideal[scoring] or {}).get("hits@1")

    shares: dict[str, Callable[[ResultRecord], float | None]] = {
        "H@1, cosine": hits("cosine"),
        "H@1, CSLS": hits("csls"),
        "F1": lambda record: record.real["csls_mutual_top1"].f1 if record.real else None,
    }
    amounts: dict[str, Callable[[ResultRecord], float | None]] = {
        "training, s": lambda record: record.training.seconds,
        "memory, MB": lambda record: record.training.peak_memory_mb,
        "GPU, MB": lambda record: record.training.peak_gpu_mb,
    }
    rows = []
    all_runs: list[ResultRecord] = []
    for dataset, entities in ENTITIES.items():
        runs = _best_of(dataset)
        all_runs += runs
        cells = [_mean(runs, value, ".3f") for value in shares.values()]
        cells += [_mean(runs, value, ",.0f") for value in amounts.values()]
        rows.append([dataset, entities, *cells, str(len(runs))])
    table = markdown_table(["data set", "entities", *shares, *amounts, "runs"], rows)
    return f"{table}\n\nRecorded by {made_by(all_runs)}."


def _mean(runs: list[ResultRecord], value: Callable[[ResultRecord], float | None], form: str) -> str:
    summary = summarise_records(runs, value)
    return "–" if summary is None else format(summary.mean, form).removeprefix("0" if form == ".3f" else "")


def systems_table() -> str:
    """Tabulate H@1 by cosine of each system on each data set that has records, and the paper's figure if any."""
    systems, records = read_systems(CONFIGS), read_results(RESULTS)
    datasets = [name for name in DATASETS if any(record.dataset == name for record in records)]
    rows = []
    for name in SYSTEMS:
        cells = []
        for dataset in datasets:
            runs = [record for record in records if (record.system, record.dataset) == (name, dataset)]
            ours = summary_text(summarise_records(runs, lambda record: (record.ideal["cosine"] or {}).get("hits@1")))
            printed = [entry for entry in systems if (entry.name, entry.dataset) == (name, dataset)]
            printed = [entry for entry in printed if not entry.stands_in_for]
            paper = printed[0].paper.get("hits@1") if printed else None
            cells.append(ours + (f" ({share_text(paper)})" if paper is not None else ""))
        rows.append([name, *cells])
    return markdown_table(["system", *datasets], rows)


def folds_table(lines: Iterable[Row]) -> str:
    """Tabulate the mean over five folds, by OpenEA's protocol."""
    groups = _grouped(lines, lambda row: (row["set"], tuple(row["chosen"])))
    rows = []
    for (name, chosen), runs in groups.items():
        if len({row["origin"]["protocol"]["fold"] for row in runs}) > 1:
            scorings = ("cosine", "csls", "csls+rules", "transport+rules")
            cells = [mean_text([row["ideal"][scoring]["hits@1"] for row in runs]) for scoring in scorings]
            rows.append([name, ", ".join(f"`{setting}`" for setting in chosen) or "default", *cells, str(len(runs))])
    return markdown_table(["set", "settings", "cosine", "CSLS", "CSLS, rules", "transport, rules", "folds"], rows)


def few_seeds_table(lines: Iterable[Row]) -> str:
    """Tabulate H@1 without and with rounds, by the share of links that are seeds."""
    rows = []
    for (name, share), runs in _grouped(lines, lambda row: (row["set"], row["share"])).items():
        cells = []
        for rounds, scoring in ((0, "cosine"), (0, "transport+rules"), (3, "transport+rules")):
            values = [row["hits@1"][scoring] for row in runs if row["rounds"] == rounds]
            cells.append(mean_text(values) if values else "–")
        accepted = [row["accepted"] for row in runs if "accepted" in row]
        cells += [mean_text([figures[key] for figures in accepted]) for key in ("precision", "expected")]
        rows.append([name, f"{share:.0%}", *cells])
    titles = ["cosine", "transport, rules", "the same, three rounds", "precision", "expected precision"]
    return markdown_table(["set", "seeds", *titles], rows)


def names_table(lines: Iterable[Row]) -> str:
    """Tabulate F1 by all channels without seeds, beside two baselines."""
    known = {line["key"]: line for line in lines}
    rows = []
    for name in dict.fromkeys(line["set"] for line in known.values()):
        keys = (f"{name} 0 auto", f"{name} 0 literals", f"{name} 0.3 auto")
        cells = [share_text(known[key]["partial_f1"]) if key in known else "–" for key in keys]
        baselines = (f"{name} baselines, equal labels", f"{name} baselines, n-grams, best cut")
        rows.append([name, *cells, *(share_text(known[key]["partial_f1"]) for key in baselines)])
    titles = ["no seeds", "no seeds, names and values alone", "30 % seeds", "equal labels", "n-grams, best cut"]
    return markdown_table(["set", *titles], rows)


def confidence_table(lines: Iterable[Row]) -> str:
    """Tabulate the expected and the true precision if few links are known."""
    rows = []
    for (name, seeds), runs in _grouped(lines, lambda row: (row["set"], -row["seeds"])).items():
        calibrated = [row for row in runs if row["expected"] is not None]
        errors = [abs(row["expected"] - row["true"]) for row in calibrated]
        means = [statistics.fmean(row[key] for row in calibrated) for key in ("expected", "true")]
        inside = sum(row["low"] <= row["true"] <= row["high"] for row in calibrated)
        cells = [share_text(value) for value in (*means, statistics.fmean(errors))]
        rows.append([name, f"{-seeds:,}", *cells, f"{inside} of {len(calibrated)}"])
    return markdown_table(["set", "seeds", "expected", "true", "mean error", "within the interval"], rows)


def seconds_table(lines: Iterable[Row]) -> str:
    """Tabulate the seconds of each step, from files to pairs."""
    known = {line["key"]: line for line in lines}
    shown = {title: known[key] for title, key in SPEED.items()}
    rows = []
    for step in (*STEPS, "evaluate"):
        cells = [line["stage_seconds"].get(step, line.get(f"{step}_seconds")) for line in shown.values()]
        rows.append([step, *("–" if value is None else f"{value:,.{1 if value < 10 else 0}f}" for value in cells)])
    peaks = [max(line.get("stage_peak_mb", {"": line["peak_mb"]}).values()) / 1000 for line in shown.values()]
    rows.append(["GB of memory, at most", *(f"{peak:.1f}" for peak in peaks)])
    return markdown_table(["step", *shown], rows)


def growth_table(lines: Iterable[Row]) -> str:
    """Tabulate seconds and memory of generated pairs by their size."""
    rows = []
    for line in sorted(lines, key=lambda line: (line["origin"]["machine"]["gpu"] or "", line["entities"])):
        machine = line["origin"]["machine"]
        where = f"{machine['cores']} cores" + (f", {machine['gpu']}" if machine["gpu"] else "")
        peak = max(line["stage_peak_mb"].values()) / 1000
        last = list(line["stage_seconds"])[-1]
        rows.append([f"{line['entities']:,}", where, f"{line['seconds']:,.0f}", f"{peak:.1f}", last])
    return markdown_table(["entities", "machine", "seconds", "GB of memory", "up to"], rows)


def _grouped(lines: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    groups = defaultdict(list)
    for line in lines:
        groups[key(line)].append(line)
    return dict(sorted(groups.items()))
