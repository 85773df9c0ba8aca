"""Parse literals as they are written: remove quotes and escapes, cut long values, and check language tags.

In: columns of text. Out: columns of values, datatypes and languages; `tidied` also counts what was changed.
Nothing is refused: half of an escaped surrogate pair becomes a replacement character, an invalid language tag is
counted and removed from its value, and the meaning of a value (a date, a number) is not checked.
Cost: one pass; values with escapes are decoded one at a time, about two seconds for a million.
"""

from __future__ import annotations

import re

import polars as pl

from largegnn.data.batch import MAX_NAME_BYTES, LiteralBatch, ReadCounts

__all__ = ["LITERAL", "MAX_VALUE_CHARS", "parse_literals", "tags_as_written", "tidied", "unescaped"]

MAX_VALUE_CHARS = 10_000  # characters
LITERAL = r'(?s)^"(.*)"(?:@([^\s"]*)|\^\^(.+))?$'
_MAX_ESCAPE_CHARS = 10  # \U and eight digits
_INVALID_TAG = "?"
_LANGUAGE = r"^[a-z]{1,8}(-[a-z0-9]{1,8})*$"
_DIRECTION = r"--(ltr|rtl)$"
_NO_TYPE = (
    "http://www.w3.org/2001/XMLSchema#string",
    "xsd:string",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString",
)
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_PLAIN = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_CODE_POINT = 0x10FFFF


def parse_literals(texts: pl.Series) -> pl.DataFrame:
    """Texts in RDF syntax, `"..."`, `"..."@en`, `"..."^^<type>`, as `value`, `datatype` and `language`.

    Any other text becomes a value without changes.
    """
    if not bool(texts.str.starts_with('"').any()):
        return pl.DataFrame({"value": texts}).with_columns(datatype=pl.lit(""), language=pl.lit(""))
    groups = texts.to_frame("text").select("text", pl.col("text").str.extract_groups(LITERAL).struct.unnest())
    values = pl.select(pl.coalesce(unescaped(groups["1"]), groups["text"])).to_series()
    datatypes = groups["3"].fill_null("").str.replace(r"^<(.*)>$", "$1")
    return pl.DataFrame({"value": values, "datatype": datatypes, "language": tags_as_written(groups["2"])})


def tags_as_written(matched: pl.Series) -> pl.Series:
    """Mark the language tags a pattern matched: "" if there is no @, an invalid tag if nothing follows the @."""
    return matched.replace("", _INVALID_TAG).fill_null("")


def unescaped(values: pl.Series) -> pl.Series:
    """Decode the escapes of N-Triples and Turtle in values; null stays null."""
    has_escapes = values.str.contains("\\", literal=True).fill_null(False)
    if not bool(has_escapes.any()):
        return values
    # Longer values are cut later anyway, and the rest need not be decoded.
    escaped = values.filter(has_escapes).str.slice(0, _MAX_ESCAPE_CHARS * (MAX_VALUE_CHARS + 1))
    plain = pl.Series([_unescape(value) for value in escaped.to_list()], dtype=pl.String)
    return values.clone().scatter(has_escapes.arg_true(), plain)


def tidied(batch: LiteralBatch) -> tuple[LiteralBatch, ReadCounts]:
    """Normalise the literals of any reader for all later steps, and count what was cut, changed and dropped.

    Literals are dropped if the name of their entity or predicate is empty or too long, or their datatype is too long.
    xsd:string counts as no datatype.
    """
    if not len(batch):
        return batch, ReadCounts()
    columns = {name: getattr(batch, name) for name in ("heads", "predicates", "values", "datatypes", "languages")}
    frame = pl.DataFrame(columns).with_columns(pl.all().fill_null(""))
    size = {name: pl.col(name).str.len_bytes() for name in ("heads", "predicates", "datatypes")}
    named = (
        size["heads"].is_between(1, MAX_NAME_BYTES)
        & size["predicates"].is_between(1, MAX_NAME_BYTES)
        & (size["datatypes"] <= MAX_NAME_BYTES)
    )
    kept = frame.filter(named)
    language = pl.col("languages").str.to_lowercase().str.replace(_DIRECTION, "")
    kept = kept.with_columns(languages=language, is_tag=language.str.contains(_LANGUAGE) | (language == ""))
    num_broken = len(kept) - int(kept["is_tag"].sum())
    long = pl.col("values").str.len_bytes() > MAX_VALUE_CHARS  # bytes are counted faster; only these few are cut
    cut = pl.when(long).then(pl.col("values").str.slice(0, MAX_VALUE_CHARS)).otherwise(pl.col("values"))
    short = kept.select(cut.alias("values"))["values"]
    num_cut = int((short.str.len_bytes() != kept["values"].str.len_bytes()).sum())
    has_type = ~pl.col("datatypes").is_in(_NO_TYPE) & (pl.col("languages") == "")
    kept = kept.with_columns(
        values=short,
        languages=pl.when("is_tag").then("languages").otherwise(pl.lit("")),
        datatypes=pl.when(has_type).then("datatypes").otherwise(pl.lit("")),
    )
    counts = ReadCounts(cut_values=num_cut, broken_languages=num_broken, dropped_literals=len(frame) - len(kept))
    return LiteralBatch(*(kept[name] for name in columns)), counts


def _unescape(value: str) -> str:
    text = _ESCAPED.sub(_character, value)
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _character(match: re.Match[str]) -> str:
    short, long, letter = match.groups()
    if letter is not None:
        return _PLAIN.get(letter, letter)
    code = int(short or long, 16)
    return chr(code) if code <= _MAX_CODE_POINT else "\ufffd"
