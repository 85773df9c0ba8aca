"""Find words that the project no longer uses, in code, messages and documents.

In: the files of the repository. Out: one line for each finding, with file, line, the words and what to write instead.
`OLD_WORDS` is the list: a pattern, the replacement, and whether only Python files are searched. Patterns are narrow, so
that ordinary English does not match. Identifiers are searched only in Python files, as whole words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lab import ROOT

__all__ = ["OLD_WORDS", "OldWord", "check_text", "check_words"]

SEARCHED = ("src/**/*.py", "tests/**/*.py", "lab/*.py", "lab/benchmarks/*.py", "lab/tests/*.py", "examples/*.py")
SEARCHED_TEXTS = ("docs/**/*.md", "docs/scripts/*.py", "*.md", "src/**/*.html", "src/**/*.js", "src/**/*.jinja")
# The list itself, its tests, and the changelog, which is older than the list.
EXEMPT = ("lab/words.py", "lab/tests/test_words.py", "CHANGELOG.md")


@dataclass(frozen=True)
class OldWord:
    """A pattern that is no longer used, and what to write instead; `code`: searched only in Python files."""

    pattern: str
    instead: str
    code: bool = False


def _words(*rows: tuple[str, str]) -> list[OldWord]:
    return [OldWord(pattern, instead) for pattern, instead in rows]


def _names(*rows: tuple[str, str]) -> list[OldWord]:
    return [OldWord(pattern, instead, code=True) for pattern, instead in rows]


OLD_WORDS = (
    # Sentences, in code, messages and documents.
    *_words(
        (r"answer(?:s|ed|ing)? to each other", "aligned relations"),
        (r"which predicate answers to which", "aligned predicates"),
        (r"(?:goes|go|went|gone) astray", "diverged"),
        (r"training (?:cannot|can) go on", "training cannot continue"),
        (r"nobody", "no entity, no user: name it"),
        (r"expected of no pairs", "no pairs accepted"),
        (r"(?:are|is|be) no (?:valid )?IRIs?", "not a valid IRI"),
        (r"tags that are none", "invalid tags"),
        (r"(?:were|was|is|are) put out", "accepted"),
        (r"(?:were|was|is|are) given up(?! on)", "rejected"),
        (r"made(?:-| )up", "synthetic"),
        (r"makes? up (?:a|the|two|pairs|graphs)", "generate"),
        (r"weights that stand in", "default weights"),
        (r"stand(?:-| )in weights", "default weights"),
        (r"stand-ins?", "default, replacement"),
        (r"surely (?:right|wrong)", "reference matches, decoys"),
        (r"(?:least sure|surest|surer)", "most confident, least confident"),
        (r"(?<!at\s)hand(?:s|ed|ing)? (?:it |them |this |these )?(?:over|in|out)", "pass"),
        (r"(?:lets|let|letting) (?:it |them )?go", "release"),
        (r"(?:hard|easy) to come by", "hard to obtain"),
        (r"(?:go|goes|went|going) round (?:it|them|the)", "bypass"),
        (r"mend(?:s|ed|ing)?", "fix"),
        (r"to do:", "fix:"),
        (r"decoding", "scoring"),
        (r"goes? on after a kill", "resume"),
        (r"fresh divisions?", "repartitioning"),
        (r"in-block", "within-block"),
        (r"to be had", "available"),
    ),
    # Names in code.
    *_names(
        (r"_?is_there", "exists, present"),
        (r"at_hand", "in_memory"),
        (r"_Said|_said|_told|_tells?", "log, args, attributes"),
        (r"_looks?|_seen", "the verb for what it does: update_best, refresh"),
        (r"beside(?= *(?:=|:|\(|\)|,\n))", "in_background"),
        (r"how(?= = |: (?:[A-Z]|int|str|float|bool|dict|list|tuple))", "what it is: options, sinkhorn_args"),
        (r"put_out|left_out|given_up|taken_by|caught_by", "accepted, unmatched, rejected, matched_elsewhere"),
        (
            r"_?(?:Recalled|Compared|Judged|Merged|Partitioned|Searched|Matched|Divided|Trained|Integrated|Loaded|Reported)"
            r"(?=\(|:|\]|,|\))",
            "a noun: LandmarksResult, LiteralsResult",
        ),
        (r"_Contest", "TestRanking"),
        (r"stand_ins?|STAND_INS?", "default_weights"),
        (
            r"matching\.(?:fusing|growing|uniting|judged|walking)",
            "evidence_weights, merge_candidates, union, labelled_pairs, rule_candidates",
        ),
        (r"mended|mend", "fixed, fix"),
        (r"hand_over|hand_in|let_go|come_by|go_round", "pass, release, obtain, bypass"),
        (r"hidden_task", "the name of what it holds"),
    ),
)


def check_words(root: Path = ROOT) -> list[str]:
    """List all findings in the repository, one line each."""
    findings = []
    for path in _files(root):
        name = path.relative_to(root).as_posix()
        if name not in EXEMPT:
            text = path.read_text(encoding="utf-8")
            findings += [f"{name}:{finding}" for finding in check_text(text, path.suffix == ".py")]
    return findings


def check_text(text: str, is_code: bool) -> Iterator[str]:
    """Yield the findings in one text: line number, the words, and what to write instead."""
    for old, pattern in _PATTERNS:
        if is_code or not old.code:
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                yield f"{line}: {' '.join(match[0].split())!r}: write {old.instead}"


def _files(root: Path) -> Iterable[Path]:
    patterns = (*SEARCHED, *SEARCHED_TEXTS)
    return sorted({path for pattern in patterns for path in root.glob(pattern) if path.is_file()})


def _compiled(old: OldWord) -> re.Pattern[str]:
    """Compile a pattern: a name matches whole identifiers; words may be split over two lines, also within a comment."""
    if old.code:
        return re.compile(rf"(?<!\w)(?:{old.pattern})(?!\w)")
    spaced = old.pattern.replace(" ", r"(?:[ \t]+|[ \t]*\n[ \t#*-]*)")
    return re.compile(rf"(?<![\w-])(?:{spaced})(?![\w-])", re.IGNORECASE)


_PATTERNS = tuple((old, _compiled(old)) for old in OLD_WORDS)
