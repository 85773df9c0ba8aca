"""The small table of `README.md` from the records in `docs/results`, and `docs/index.md` from the README.

What stands between `<!-- table:measured -->` and `<!-- /table -->` is made again; the rest of the README is written by
hand, but for the output of the first run, which `quickstart.py` writes. The index is the README with its links made
relative to `docs`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from largegnn.paper.records import ResultRecord, made_by, read_results, summarise_records
from largegnn.paper.tables import markdown_table

ROOT = Path(__file__).parents[2]
README, INDEX = ROOT / "README.md", ROOT / "docs" / "index.md"
SYSTEM = "LargeGNN (best)"
ENTITIES = {
    "EN_FR_15K_V1": "15,000 + 15,000",
    "EN_DE_15K_V1": "15,000 + 15,000",
    "ContEA_FR_EN": "94,451 + 142,234",
    "DEBIAN_FILES_1M": "1,307,272 + 1,728,920",
}
BETWEEN = re.compile(r"(?<=<!-- table:measured -->\n).*?(?=<!-- /table -->)", re.DOTALL)
HIDDEN = "---\nhide:\n  - navigation\n---\n\n"
PROTOCOL = """
`{system}` by structure alone. Seeds are train + valid links (30 %), the paper's protocol; no self-training rounds.
H@1: each test source ranks all test targets, ties against us. F1: mutual top-1 by CSLS among all entities that are no
seeds, no threshold. Mean over random seeds ("runs"). Recorded by {version},
on one {machines} that up to fifteen runs shared: seconds are orders of magnitude. Settings were first explored on
test links of EN_FR_15K_V1. 2 % of the seeds of EN_DE_15K_V1 are wrong. DEBIAN_FILES_1M is two releases of one project,
easier than two DBpedias.
"""


def render_readme() -> str:
    """The README as it has to be."""
    return BETWEEN.sub(lambda _: f"{_measured()}\n{PROTOCOL.format(**_facts())}", README.read_text(encoding="utf-8"))


def render_index() -> str:
    """The index as it has to be."""
    text = README.read_text(encoding="utf-8").replace("[contributing](CONTRIBUTING.md)", "`CONTRIBUTING.md`")
    return HIDDEN + text.replace("](docs/", "](")


def _measured() -> str:
    rows = [
        [dataset, entities, *(column(_records(dataset)) for column in COLUMNS.values())]
        for dataset, entities in ENTITIES.items()
    ]
    return markdown_table(["data set", "entities", *COLUMNS], rows)


def _facts() -> dict[str, object]:
    every = [record for dataset in ENTITIES for record in _records(dataset)]
    return {
        "system": SYSTEM,
        "machines": " and ".join(
            dict.fromkeys(record.origin.machine.gpu or "a CPU" for record in every if record.origin)
        ),
        "version": made_by(every),
    }


def _records(dataset: str) -> list[ResultRecord]:
    known = read_results(ROOT / "docs" / "results")
    return [record for record in known if record.system == SYSTEM and record.dataset == dataset]


def _share(records: list[ResultRecord], value: Callable[[ResultRecord], float | None]) -> str:
    found = summarise_records(records, value)
    return "–" if found is None else f"{found.mean:.3f}".removeprefix("0")


def _amount(records: list[ResultRecord], value: Callable[[ResultRecord], float | None], unit: str) -> str:
    found = summarise_records(records, value)
    return "–" if found is None else f"{found.mean:,.0f} {unit}"


def _hits(record: ResultRecord, scoring: str) -> float | None:
    figures = record.ideal[scoring]
    return None if figures is None else figures["hits@1"]


COLUMNS: dict[str, Callable[[list[ResultRecord]], str]] = {
    "runs": lambda runs: str(len(runs)),
    "H@1, cosine": lambda runs: _share(runs, lambda one: _hits(one, "cosine")),
    "H@1, CSLS": lambda runs: _share(runs, lambda one: _hits(one, "csls")),
    "F1": lambda runs: _share(runs, lambda one: one.real["csls_mutual_top1"].f1 if one.real else None),
    "division": lambda runs: _amount(runs, lambda one: one.partition.seconds, "s"),
    "training": lambda runs: _amount(runs, lambda one: one.training.seconds, "s"),
    "memory": lambda runs: _amount(runs, lambda one: one.training.peak_memory_mb, "MB"),
    "GPU memory": lambda runs: _amount(runs, lambda one: one.training.peak_gpu_mb, "MB"),
}


if __name__ == "__main__":
    README.write_text(render_readme(), encoding="utf-8")
    INDEX.write_text(render_index(), encoding="utf-8")
