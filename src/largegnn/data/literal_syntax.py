"""Turn literals as they are written into values: without quotes and escapes, of bounded length, with valid tags.

In: columns of text. Out: columns of values, datatypes and languages; `tidied` also counts what was changed.
Nothing is refused here: half of an escaped pair of surrogates becomes a replacement character, an invalid language
tag is counted and its value kept without, and what a value means (a date, a number) is not checked.
Cost: one pass; values with escapes are taken one by one, about two seconds for a million.
"""

from __future__ import annotations

import re

import polars as pl

from largegnn.data.batch import LONGEST_NAME, LiteralBatch, ReadCounts

__all__ = ["LITERAL", "LONGEST_VALUE", "parse_literals", "tags_as_written", "tidied", "unescaped"]

LONGEST_VALUE = 10_000  # characters
LITERAL = r'(?s)^"(.*)"(?:@([^\s"]*)|\^\^(.+))?$'
_LONGEST_ESCAPE = 10
_NO_TAG = "?"
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
_HIGHEST = 0x10FFFF


def parse_literals(texts: pl.Series) -> pl.DataFrame:
    """Texts in RDF syntax, `"..."`, `"..."@en`, `"..."^^<type>`, as `value`, `datatype` and `language`.

    Any other text is a value as it is.
    """
    if not bool(texts.str.starts_with('"').any()):
        return pl.DataFrame({"value": texts}).with_columns(datatype=pl.lit(""), language=pl.lit(""))
    found = texts.to_frame("text").select("text", pl.col("text").str.extract_groups(LITERAL).struct.unnest())
    values = pl.select(pl.coalesce(unescaped(found["1"]), found["text"])).to_series()
    datatypes = found["3"].fill_null("").str.replace(r"^<(.*)>$", "$1")
    return pl.DataFrame({"value": values, "datatype": datatypes, "language": tags_as_written(found["2"])})


def tags_as_written(found: pl.Series) -> pl.Series:
    """Language tags that a pattern found: "" where there is no @, something invalid where nothing follows it."""
    return found.replace("", _NO_TAG).fill_null("")


def unescaped(values: pl.Series) -> pl.Series:
    """Values with what their escapes (of N-Triples and Turtle) stand for; null stays null."""
    odd = values.str.contains("\\", literal=True).fill_null(False)
    if not bool(odd.any()):
        return values
    # More than this is cut anyway, and need not be decoded letter by letter.
    chosen = values.filter(odd).str.slice(0, _LONGEST_ESCAPE * (LONGEST_VALUE + 1))
    plain = pl.Series([_unescape(value) for value in chosen.to_list()], dtype=pl.String)
    return values.clone().scatter(odd.arg_true(), plain)


def tidied(batch: LiteralBatch) -> tuple[LiteralBatch, ReadCounts]:
    """Literals of any reader as all later steps have them, and what was cut, changed and dropped.

    Dropped are those whose entity or predicate has no name, or one of absurd length. xsd:string is no datatype.
    """
    if not len(batch):
        return batch, ReadCounts()
    columns = {name: getattr(batch, name) for name in ("heads", "predicates", "values", "datatypes", "languages")}
    frame = pl.DataFrame(columns).with_columns(pl.all().fill_null(""))
    size = {name: pl.col(name).str.len_bytes() for name in ("heads", "predicates", "datatypes")}
    named = (
        size["heads"].is_between(1, LONGEST_NAME)
        & size["predicates"].is_between(1, LONGEST_NAME)
        & (size["datatypes"] <= LONGEST_NAME)
    )
    kept = frame.filter(named)
    language = pl.col("languages").str.to_lowercase().str.replace(_DIRECTION, "")
    kept = kept.with_columns(languages=language, is_tag=language.str.contains(_LANGUAGE) | (language == ""))
    num_broken = len(kept) - int(kept["is_tag"].sum())
    long = pl.col("values").str.len_bytes() > LONGEST_VALUE  # few, and only these are counted in characters
    cut = pl.when(long).then(pl.col("values").str.slice(0, LONGEST_VALUE)).otherwise(pl.col("values"))
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


def _character(found: re.Match[str]) -> str:
    short, long, letter = found.groups()
    if letter is not None:
        return _PLAIN.get(letter, letter)
    code = int(short or long, 16)
    return chr(code) if code <= _HIGHEST else "\ufffd"
