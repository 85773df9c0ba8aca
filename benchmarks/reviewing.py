"""What reviewing is worth: `python benchmarks/reviewing.py FOLDER LINKS [--each 50] [--rounds 3] [--set a.b=c]`.

A simulated reviewer knows the truth. In each round it is shown some pairs, either those nearest the threshold or random
ones; it accepts what is right, rejects what is wrong, and chooses another candidate where the right one is among the
next. Then the graphs are aligned again with all decisions so far. Figures are by all links: of the accepted pairs and
decisions after aligning again, and of the first run merely corrected by the decisions.
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
from largegnn.paper.origin import write_rows
from largegnn.result import AlignmentResult
from largegnn.review.session import ReviewSession
from largegnn.review.worklist import Filters

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


def main() -> None:
    """Review, align again, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("links", type=Path)
    parser.add_argument("--each", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    truth: Pairs = set(read_named_links(given.links).frame.select("source", "target").rows())
    settings: dict[str, Any] = dict(text.split("=", 1) for text in given.set)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        first = api.align(given.folder, out=Path(scratch) / "first", settings=settings)
        task, names = first.task, first.names.entities
        seeds: Pairs = {(names[one], names[other]) for one, other in task.train_links.tolist()}
        truth -= seeds
        before = pairs_of(first)
        rows.append({"order": "none", "decisions": 0, **measure(before, truth)})
        for name, order in ORDERS.items():
            log, result = Path(scratch) / f"{name}.jsonl", first
            for number in range(1, given.rounds + 1):
                num_wrong = review(result.review(log), truth, order, given.each)
                out = Path(scratch) / f"{name}-{number}"
                result = api.align(given.folder, decisions=log, out=out, settings=settings)
                again = corrected(pairs_of(result), log)
                row = {"order": name, "decisions": number * given.each, "wrong": num_wrong, **measure(again, truth)}
                row["corrected only"] = measure(corrected(before, log), truth)["f1"]
                rows.append(row)
                print(json.dumps(row), file=sys.stderr, flush=True)
    print(json.dumps(rows, indent=1))
    if given.out is not None:
        write_rows(given.out, rows, [given.folder])


if __name__ == "__main__":
    main()
