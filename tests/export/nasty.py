"""List names that careless writers get wrong, and make tables of them."""

from __future__ import annotations

import dataclasses
from datetime import date

import numpy as np
import polars as pl
from hypothesis import strategies as st

from largegnn.artifacts import Alignment, StringTable, TaskNames
from largegnn.export import ExportInfo, alignment_table

# pyoxigraph, which is strict about RFC 3987, takes these as they are.
VALID_IRIS = [
    "http://dbpedia.org/resource/Paris",
    "http://dbpedia.org/resource/AC/DC",
    "http://dbpedia.org/resource/Foo_(bar),_baz",
    "http://dbpedia.org/resource/Tom_&_Jerry's",
    "http://sws.geonames.org/2950159/",
    "http://fr.dbpedia.org/resource/Évry",
    "http://ja.dbpedia.org/resource/東京",
    "http://x.org/😀",
    "http://x.org/?q=%C3%89&r=1#part",
    "http://x.org",
    "http://www.w3.org/2002/07/owl#Thing",
    "urn:",
    "urn:isbn:0451450523",
    "Batman:_Year_One",
    "mailto:someone@example.org",
]
OTHER_NAMES = [
    "tab\there",
    "line\nbreak",
    "carriage\rreturn\r\n",
    '"quoted"',
    'half"quote',
    "back\\slash\\n\\t",
    "<angle>",
    "<a> <b> <c> .",
    "two words",
    " leading and trailing ",
    "",
    " ",
    "NA",
    "null",
    "#comment",
    "a|b",
    "ünï-çødé",
    "😀",
    "_:blank",
    "urn:largegnn:x%20y",
    "urn:largegnn:",
    "nul\0byte",
    "\ufeffmark",
    "next\u2028line\x85",
    "http://x.org/a b",
    'http://x.org/"Heroes"',
    "http://x.org/\uffff",
    "]]>&amp;<![CDATA[",
    "--",
    "//host",
    "source",
]
# Not valid by RFC 3987, but in the grammar of N-Triples: written as they are.
LENIENT_IRIS = ["http://x.org/100%", "http://x.org/a[1]", "http://x.org#a#b", "http://x.org/\x7f\x85", "http:////a:b"]
NASTY = VALID_IRIS + OTHER_NAMES + LENIENT_IRIS

# The kinds of evidence in the tables.
EVIDENCE = ("cosine", "support")
INFO = ExportInfo(
    tool_version="0.1.0",
    title='run "1" <&>: é\u2028\t😀\x01',
    source_name="source file.nt",
    target_name="http://dbpedia.org/?a&b",
    protocol="train links seen",
    scoring="csls",
    selection="mutual_top1",
    threshold=0.25,
    calibrated=True,
    created=date(2025, 3, 1),
)

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
spicy = st.text(st.sampled_from("\t\n\r\"'\\<>&#%/:|{}[] \0\x85\u2028\ufffe\ufeffaé😀0"), max_size=8)
nasty_names = st.one_of(names, spicy, spicy.map(lambda text: f"http://x.org/{text}"), st.sampled_from(NASTY))
name_lists = st.lists(st.tuples(nasty_names, nasty_names), min_size=1, max_size=8)


def alignment_of(pairs: list[tuple[str, str]], accepted: list[bool] | None = None) -> tuple[Alignment, TaskNames]:
    """Make an alignment of source i with target i; all numbers differ and need all their digits."""
    count = len(pairs)
    rng = np.random.default_rng(7)
    alignment = Alignment(
        pairs=np.stack([np.arange(count), count + np.arange(count)], axis=1),
        columns=EVIDENCE,
        evidence=np.float32(1.1) * rng.random((2, count), np.float32) - np.float32(0.1),
        scores=rng.standard_normal(count, np.float32),
        margins=rng.standard_normal(count, np.float32) * np.float32(1e-6),
        source_ranks=1 + np.arange(count) % 3,
        target_ranks=1 + np.arange(count) % 2,
        confidence=rng.random(count, np.float32),
        accepted=np.ones(count, dtype=bool) if accepted is None else np.array(accepted, dtype=bool),
        reasons=np.zeros(2 * count),
    )
    strings = [source for source, _ in pairs] + [target for _, target in pairs]
    return alignment, TaskNames(StringTable.from_strings(strings), StringTable.from_strings([]))


def table_of(pairs: list[tuple[str, str]], accepted: list[bool] | None = None) -> pl.DataFrame:
    alignment, task_names = alignment_of(pairs, accepted)
    return alignment_table(alignment, task_names, accepted_only=False)


UNCALIBRATED = dataclasses.replace(INFO, calibrated=False)


def nasty_pairs(strings: list[str]) -> list[tuple[str, str]]:
    """Pair the names so that each name is once on either side."""
    return list(zip(strings, strings[1:] + strings[:1], strict=True))
