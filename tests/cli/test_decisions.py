"""`align --decisions`: what reviewers said holds in every channel, in self-training rounds too."""

from __future__ import annotations

from pathlib import Path

from largegnn.api import open_run
from largegnn.data.decisions import Decision
from largegnn.review.decisions import DecisionLog
from tests.cli.small_runs import QUICK, call


def test_rejected_pairs_never_come_back_and_accepted_ones_are_seeds(finished: Path, pair: Path, tmp_path: Path) -> None:
    before = open_run(finished)
    pairs = before.pairs.sort("confidence", descending=True)
    rejected, accepted = pairs.head(8), pairs.slice(8, 8)
    log = DecisionLog(tmp_path / "decisions.jsonl")
    for frame, word in ((rejected, "reject"), (accepted, "accept")):
        for source, target in frame.select("source", "target").rows():
            log.add(Decision(source, target, word, "ann"))
    command: list[str | Path] = [
        "align",
        pair,
        "--rounds",
        "1",
        "--out",
        tmp_path / "run",
        *QUICK,
        "--set",
        "rounds.epochs=1",
    ]
    call(*command, "--decisions", log.path)
    after = open_run(tmp_path / "run")
    candidates = after.candidates.select("source", "target")
    assert len(candidates.join(rejected, on=["source", "target"])) == 0, "no candidate, so never accepted"
    assert len(after.task.forbidden) == 8
    for source, target in accepted.select("source", "target").rows():
        assert after.explain(source, "source").seed_partner == target
    assert len(after.task.train_links) == len(before.task.train_links) + 8
    source, target = pairs.select("source", "target").row(20)
    log.add(Decision(source, target, "reject"))
    changed = call(*command, "--decisions", log.path, expect=2)
    assert "is not the file it was made from" in changed.stderr
