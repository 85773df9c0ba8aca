"""Test decisions: appended, undone, read after the program was killed, by several reviewers, and exported."""

from __future__ import annotations

import datetime
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from largegnn.data.decisions import Decision, read_decisions, verdicts
from largegnn.errors import InputError, StorageError
from largegnn.export.info import ExportInfo
from largegnn.review.decisions import DecisionLog, decisions_sssom, decisions_tsv, write_decisions

INFO = ExportInfo(
    "1", "run", "source", "target", "", "csls", "mutual_top1", 0.5, True, datetime.date(2026, 1, 2), "http://x.org/"
)


def words(log: DecisionLog) -> list[tuple[str, str, str]]:
    return [(one.source, one.target, one.decision) for one in log.decisions()]


def test_what_was_decided_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "new" / "decisions.jsonl")
    log.add(Decision("a", "A", "accept", "ann"))
    log.add(Decision("b", "B", "reject", "ben"))
    assert words(DecisionLog(log.path)) == words(log) == [("a", "A", "accept"), ("b", "B", "reject")]
    assert read_decisions(log.path) == log.decisions()


def test_undo_takes_back_the_last_action_of_the_same_reviewer(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "decisions.jsonl")
    log.add(Decision("a", "A", "accept", "ann"))
    both = Decision("b", "B", "reject", "ann")
    log.add(both, Decision("b", "C", "accept", "ann", action=both.action))
    log.add(Decision("d", "D", "accept", "ben"))
    assert [one.target for one in log.undo("ann")] == ["B", "C"]
    assert words(log) == words(DecisionLog(log.path)) == [("a", "A", "accept"), ("d", "D", "accept")]
    assert [one.target for one in log.undo("ann")] == ["A"]
    assert log.undo("ann") == ()
    assert len(log.path.read_text().splitlines()) == 5, "nothing is rewritten: three actions, two undone"


def test_the_last_word_of_each_reviewer_counts_and_disagreement_is_a_dispute() -> None:
    found = verdicts(
        [
            Decision("a", "A", "accept", "ann"),
            Decision("a", "A", "reject", "ann"),
            Decision("b", "B", "accept", "ann"),
            Decision("b", "B", "reject", "ben"),
            Decision("c", "C", "unsure", "ann"),
            Decision("c", "C", "accept", "ben"),
            Decision("d", "D", "unsure", "ann"),
        ]
    )
    assert {pair[0]: one.decision for pair, one in found.items()} == {
        "a": "reject",
        "b": "disputed",
        "c": "accept",
        "d": "unsure",
    }
    assert found["b", "B"].reviewers == ("ann", "ben")


def test_a_line_cut_off_is_skipped_and_the_next_one_is_whole(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "decisions.jsonl")
    log.add(Decision("a", "A", "accept"))
    with log.path.open("a") as file:
        file.write('{"decisions": [{"source": "b", "tar')
    again = DecisionLog(log.path)
    assert words(again) == [("a", "A", "accept")]
    again.add(Decision("c", "C", "reject"))
    assert words(DecisionLog(log.path)) == [("a", "A", "accept"), ("c", "C", "reject")]


def test_no_decision_that_was_answered_is_lost_by_a_kill(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from largegnn.review.decisions import *\n"
        "from largegnn.data.decisions import *\n"
        "log = DecisionLog(Path(sys.argv[1]))\n"
        "for number in range(100_000):\n"
        "    log.add(Decision(str(number), 'x', 'accept')); print(number, flush=True)"
    )
    path = tmp_path / "decisions.jsonl"
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        answered = [int(process.stdout.readline()) for _ in range(50)]
        process.send_signal(signal.SIGKILL)
        answered += [int(line) for line in process.stdout]
    found = [int(one.source) for one in read_decisions(path)]
    assert found[: len(answered)] == answered
    assert found == list(range(len(found)))


def test_reviewers_at_once_lose_nothing(tmp_path: Path) -> None:
    """Two logs over one file, as two servers would have, four threads each."""
    logs = [DecisionLog(tmp_path / "decisions.jsonl") for _ in range(2)]

    def decide(number: int) -> None:
        for each in range(25):
            logs[number % 2].add(Decision(f"{number}", f"{each}", "accept", f"reviewer {number}"))

    threads = [threading.Thread(target=decide, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = {(one.source, one.target) for one in read_decisions(logs[0].path)}
    assert found == {(f"{number}", f"{each}") for number in range(8) for each in range(25)}


def test_what_is_no_decision_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no decision 'maybe'"):
        Decision("a", "A", "maybe")
    with pytest.raises(InputError, match="source and a target"):
        Decision("", "A", "accept")
    assert Decision("a", "A", "accept", "ann\n\0<b>" + "x" * 99).reviewer == "ann<b>" + "x" * 58
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="could not be saved"):
        DecisionLog(tmp_path / "file" / "decisions.jsonl").add(Decision("a", "A", "accept"))


def test_the_table_reads_back(tmp_path: Path) -> None:
    given = [
        Decision("a", "A", "accept", "ann"),
        Decision("b\tb", "B\n", "reject", "ben"),
        Decision("c", "C", "accept", "ann"),
        Decision("c", "C", "reject", "ben"),
    ]
    path = tmp_path / "decisions.tsv"
    write_decisions(given, path, INFO)
    assert path.read_text().splitlines()[0] == "source\ttarget\tdecision\treviewer\ttime"
    assert "disputed\tann, ben" in decisions_tsv(given)
    found = [(one.source, one.target, one.decision) for one in read_decisions(path)]
    assert found == [("a", "A", "accept"), ("b\tb", "B\n", "reject")], "disputed pairs are no decisions"


@pytest.mark.parametrize(
    ("text", "message"),
    [("source\ttarget\nA\tB\n", "not a file of decisions"), ("source\ttarget\tdecision\na\tA\tperhaps\n", "line 2")],
)
def test_other_tables_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "file.tsv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_decisions(tmp_path / "file.tsv")
    with pytest.raises(InputError, match="does not exist"):
        read_decisions(tmp_path / "nothing.tsv")


def test_sssom_has_reviewers_as_authors_and_rejections_as_not() -> None:
    given = [Decision("a", "A", "accept", "ann"), Decision("b", "B", "reject", "ben"), Decision("c", "C", "unsure")]
    rows = [line.split("\t") for line in decisions_sssom(given, INFO).splitlines() if not line.startswith("#")]
    table = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    assert [row["predicate_modifier"] for row in table] == ["", "Not"]
    assert [row["author_label"] for row in table] == ["ann", "ben"]
    assert {row["mapping_justification"] for row in table} == {"semapv:ManualMappingCuration"}
    assert table[0]["subject_id"].endswith(":a")
    assert decisions_sssom([], INFO).splitlines()[-1].startswith("subject_id")
    assert json.dumps(rows)
