"""Shorten IRIs to CURIEs such as `ns1:Paris`, as SSSOM requires, with a list of prefixes.

In: names, and their IRIs (`largegnn.export.iris`). Out: prefixes, and for each name a CURIE that expands to it.
The idea: the most frequent namespaces (all up to the last `/` or `#`) get prefixes; a name takes the prefix of the
longest namespace it starts with, so `.../resource/AC/DC` is still in `.../resource/`. Every scheme (`http://`, `urn:`)
has a prefix too, for all other IRIs. Names that are not IRIs are packed into `urn:largegnn:...`, with the prefix `lg`.
A CURIE must be ASCII; the SSSOM tools drop lines with other characters. These are percent-encoded (RFC 3987, 3.1), so
`http://fr.dbpedia.org/resource/Évry` becomes `ns1:%C3%89vry`: the same resource for a web server, but not for an RDF
store. `rewritten` marks these names. Cost: a few passes over the names; some microseconds for each rewritten name.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

import polars as pl

from largegnn.data.iri import PACKED, pack_names
from largegnn.errors import InputError

__all__ = ["BUILT_IN", "CONTROL", "Curies", "choose_prefixes", "shorten"]

# SSSOM's own prefixes: no file may redefine them, and their namespaces get no other prefix.
BUILT_IN = {
    "owl": "http://www.w3.org/2002/07/owl#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "semapv": "https://w3id.org/semapv/vocab/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "sssom": "https://w3id.org/sssom/",
}
# Control characters, and the characters that some readers treat as the end of a line.
CONTROL = r"[\x00-\x1f\x7f-\x9f\x{2028}\x{2029}]"
_MAX_NAMESPACES = 30
_MAX_SCHEMES = 15
_NAMESPACE = r"^([A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9._~!$&'()*+,;=:@/?#-]*[/#])[^/#]+[/#]*$"
_SCHEME = r"^([A-Za-z][A-Za-z0-9+.-]*:(?://)?)"
# The characters that may follow the prefix of a CURIE; % only where two hexadecimal digits follow it.
_SAFE = "!$&'()*+,;=:@/?"
_BARE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_VALID_LOCAL = r"^(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*$"


@dataclass(frozen=True)
class Curies:
    """CURIEs (n,), and a mask of the CURIEs that do not expand to the very name (n,)."""

    curies: pl.Series
    rewritten: pl.Series


def choose_prefixes(columns: Iterable[pl.Series], given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Choose prefixes for columns of IRIs: SSSOM's own, the given prefixes, and new prefixes of frequent namespaces."""
    reserved = BUILT_IN | {"lg": PACKED}
    given = given or {}
    for prefix, space in given.items():
        if reserved.get(prefix, space) != space:
            raise InputError(
                f"the prefix {prefix} is reserved in SSSOM files",
                expected=reserved[prefix],
                found=space,
                fix="use another prefix",
            )
    known = {**reserved, **given}
    iris = pl.concat(columns)
    namespaces = _most_frequent(iris.str.extract(_NAMESPACE), _MAX_NAMESPACES, min_count=2)
    covered = _starting_with(iris, [*namespaces, *known.values()])
    schemes = _most_frequent(iris.filter(~covered).str.extract(_SCHEME), _MAX_SCHEMES, min_count=1)
    new = [space for space in namespaces + schemes if space not in set(known.values())]
    numbered = (name for number in itertools.count(1) if (name := f"ns{number}") not in known)
    return known | dict(zip(numbered, new, strict=False))


def shorten(names: pl.Series, iris: pl.Series, prefixes: dict[str, str]) -> Curies:
    """Shorten names, given with their IRIs, to CURIEs with the longest namespace that fits."""
    # Names without a prefix (of a rare scheme), with a rest that looks like a host, or with control characters
    # are packed too.
    prefix, local = _split(iris, prefixes)
    unfit = prefix.is_null() | local.str.starts_with("//") | iris.str.contains(CONTROL)
    unfit &= ~iris.str.starts_with(PACKED)
    if bool(unfit.any()):
        iris = pack_names(iris, unfit)
        prefix, local = _split(iris, prefixes)
    needs_encoding = ~local.str.contains(_VALID_LOCAL)
    if bool(needs_encoding.any()):
        quoted = [_quoted(text) if is_chosen else None for text, is_chosen in zip(local, needs_encoding, strict=True)]
        local = pl.select(pl.coalesce(pl.Series(quoted, dtype=pl.String), local)).to_series()
    return Curies(curies=prefix + ":" + local, rewritten=needs_encoding | (iris != names))


def _split(iris: pl.Series, prefixes: dict[str, str]) -> tuple[pl.Series, pl.Series]:
    """Split IRIs into prefix and rest; null where no prefix fits."""
    # The longest namespace comes first, so the first namespace that fits is the longest that fits.
    spaces = sorted(prefixes.items(), key=lambda item: -len(item[1]))
    frame = pl.DataFrame({"iri": iris})
    iri = pl.col("iri")
    prefix = pl.coalesce(pl.when(iri.str.starts_with(space)).then(pl.lit(name)) for name, space in spaces)
    frame = frame.with_columns(prefix.alias("prefix"))
    length = pl.col("prefix").replace_strict({name: len(space) for name, space in spaces}, return_dtype=pl.Int64)
    local = frame.select(local=iri.str.slice(length))["local"]
    return frame["prefix"], local


def _most_frequent(values: pl.Series, maximum: int, min_count: int) -> list[str]:
    """The most frequent of these strings, ties in alphabetical order."""
    counts = pl.DataFrame({"value": values.drop_nulls()}).group_by("value").len().filter(pl.col("len") >= min_count)
    return counts.sort(["len", "value"], descending=[True, False]).head(maximum)["value"].to_list()


def _starting_with(iris: pl.Series, spaces: list[str]) -> pl.Series:
    return pl.select(pl.any_horizontal(iris.str.starts_with(space) for space in spaces)).to_series()


def _quoted(local: str) -> str:
    """The rest of an IRI in ASCII; percent signs that already encode a byte stay as they are."""
    return quote(_BARE_PERCENT.sub("%25", local), safe=_SAFE + "%")
