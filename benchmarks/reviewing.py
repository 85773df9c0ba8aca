"""What reviewing is worth: `python benchmarks/reviewing.py FOLDER LINKS [--each 50] [--rounds 3] [--set a.b=c]`.

    python benchmarks/reviewing.py data/OAEI_anatomy data/OAEI_anatomy/links.tsv --each 75 --rounds 2
    python benchmarks/reviewing.py --page

A simulated reviewer knows the truth. In each round it is shown some pairs, either those nearest the threshold or random
ones; it accepts what is right, rejects what is wrong, and chooses another candidate where the right one is among the
next. Then the graphs are aligned again with all decisions so far. Figures are by all links: of the accepted pairs and
decisions after aligning again, and of the first run merely corrected by the decisions. Rows become lines of
docs/results/reviewing.jsonl, each with protocol, version, commit, date, machine and random seed; `--page` writes
docs/measurements/reviewing.md from them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from largegnn import api
from largegnn.data.decisions import verdicts
from largegnn.data.links import read_named_links
from largegnn.paper.origin import origin_of
from largegnn.paper.pages import put_table
from largegnn.result import AlignmentResult
from largegnn.review.session import ReviewSession
from largegnn.review.worklist import Filters

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "results" / "reviewing.jsonl"
PAGE = ROOT / "docs" / "measurements" / "reviewing.md"
ORDERS = {"active": "nearest the threshold", "random": "random"}
Pairs = set[tuple[str, str]]


def review(session: ReviewSession, truth: Pairs, order: str, each: int) -> int:
    """Decide on some pairs as one who knows the truth; returns how many were wrong."""
    counterpart = dict(truth)
    num_wrong = 0
    for row in session.find(Filters(order=order)).tolist()[:each]:
        view = session.view(row)
        if (view.source, view.target) in truth:
            session.decide(row, "accept", "simulated")
            continue
        num_wrong += 1
        others = [(other, session.view(other)) for other in session.candidates(row)]
        right = [
            other
            for other, one in others
            if one.source == view.source
            and counterpart.get(one.source) == one.target
            and session.verdict(other) is None
        ]
        session.decide(row, "reject", "simulated", right[0] if right else None)
    return num_wrong


def measure(found: Pairs, truth: Pairs) -> dict[str, float]:
    """How good pairs are by complete links."""
    right = len(found & truth)
    precision, recall = right / max(len(found), 1), right / len(truth)
    f1 = 2 * right / (len(found) + len(truth))
    return {"pairs": len(found), "precision": precision, "recall": recall, "f1": f1}


def pairs_of(result: AlignmentResult) -> Pairs:
    """The accepted pairs."""
    return set(result.pairs.select("source", "target").rows())


def corrected(found: Pairs, log: Path) -> Pairs:
    """Pairs with the decisions put in, and nothing learnt from them."""
    from largegnn.data.decisions import read_decisions

    words = {pair: one.decision for pair, one in verdicts(read_decisions(log)).items()}
    accepted = {pair for pair, word in words.items() if word == "accept"}
    rejected = {pair for pair, word in words.items() if word == "reject"}
    sources, targets = ({pair[side] for pair in accepted} for side in (0, 1))
    kept = {pair for pair in found - rejected if pair[0] not in sources and pair[1] not in targets}
    return kept | accepted


def stamp(folder: Path, result: AlignmentResult, given: argparse.Namespace) -> dict[str, Any]:
    """Where a row comes from."""
    channels = list(result.run.channels())
    return {
        "set": folder.name,
        "protocol": {
            "seeds": len(result.task.given_seeds("train")),
            "channels": channels,
            "gold": "all links that are no seeds, plain",
            "decisions_each": given.each,
        },
        "origin": origin_of(result.run.settings, files_of(folder), channels=channels).model_dump(),
    }


def write_page() -> None:
    """The table of the page, from the records."""
    lines = [
        "| set | channels | pairs shown | decisions | wrong pairs found | precision | recall | F1, aligned again |"
    ]
    lines[0] += " F1, corrected only |"
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for line in RECORDS.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        shown = ORDERS.get(one["order"], "none")
        cells = [one["set"], "+".join(one["protocol"]["channels"]), shown, f"{one['decisions']:,}"]
        cells += ["" if one.get("wrong") is None else f"{one['wrong']:,}"]
        cells += [f"{one[name]:.3f}" for name in ("precision", "recall", "f1")]
        cells.append("" if one.get("corrected only") is None else f"{one['corrected only']:.3f}")
        lines.append(f"| {' | '.join(cells)} |")
    put_table(PAGE, "table", "\n".join(lines))


def files_of(folder: Path) -> tuple[Path, ...]:
    """What is aligned: a folder of a benchmark, or the two graphs in it."""
    return (folder / "source.nt", folder / "target.nt") if (folder / "source.nt").exists() else (folder,)


def setting(text: str) -> tuple[str, Any]:
    """A setting from `key=value`; the value is JSON, or else text."""
    key, _, value = text.partition("=")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def main() -> None:
    """Review, align again, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("links", type=Path, nargs="?")
    parser.add_argument("--each", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--out", type=Path, default=RECORDS)
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.page:
        write_page()
        return
    truth: Pairs = set(read_named_links(given.links).frame.select("source", "target").rows())
    settings: dict[str, Any] = dict(map(setting, given.set))
    with tempfile.TemporaryDirectory() as scratch:
        first = api.align(*files_of(given.folder), out=Path(scratch) / "first", settings=settings)
        names = first.names.entities
        truth -= {(names[one], names[other]) for one, other in first.task.train_links.tolist()}
        before, origin = pairs_of(first), stamp(given.folder, first, given)

        def keep(**row: Any) -> None:
            line = json.dumps({"key": f"{given.folder.name}, {row['order']}, {row['decisions']}", **origin, **row})
            print(line, file=sys.stderr, flush=True)
            with given.out.open("a", encoding="utf-8") as file:
                file.write(line + "\n")

        keep(order="none", decisions=0, **measure(before, truth))
        for name, order in ORDERS.items():
            log, result = Path(scratch) / f"{name}.jsonl", first
            for number in range(1, given.rounds + 1):
                num_wrong = review(result.review(log), truth, order, given.each)
                out = Path(scratch) / f"{name}-{number}"
                result = api.align(*files_of(given.folder), decisions=log, out=out, settings=settings)
                again = measure(corrected(pairs_of(result), log), truth)
                alone = measure(corrected(before, log), truth)["f1"]
                keep(order=name, decisions=number * given.each, wrong=num_wrong, **again, **{"corrected only": alone})


if __name__ == "__main__":
    main()
