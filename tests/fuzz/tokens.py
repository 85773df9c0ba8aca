"""What means something in each format: tokens to insert, and brackets to nest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["FORMATS", "Format"]

_ANYWHERE = [
    b"\xef\xbb\xbf",  # byte-order marks: UTF-8, UTF-16
    b"\xff\xfe",
    b"\r",
    b"\r\n",
    b"\n\r",
    b"\n\n",
    b"\0",
    b"\x0b",
    b"\x0c",
    b"\x1a",
    b"\x1c",
    b"\x7f",
    "\u0085".encode(),
    "\u2028".encode(),
    "\u00a0".encode(),
    "\u202e".encode(),
    "\U0010ffff".encode(),
    b"\xed\xa0\x80",  # a surrogate
    b"\xc0\xaf",  # longer than need be
    b"\xe9",  # Latin-1
    b'"',
    b"'",
    b"\\",
    b"\\u0000",
    b"\\uD800",
    b"\\u00e9",
    b"\\U0010FFFF",
    b"\\U00110000",
    b"9" * 5_000,
    b"-1",
    b"1e308",
    b"nan",
    b"#",
    b"# comment\r",
    b"<",
    b">",
    b"<>",
    b"_:",
    b"urn:largegnn:%41%ZZ",
    b"%",
    b"a" * 70_000,
    b"BZh9",
    b"PAR1",
    b"\x1f\x8b\x08",
    b"\x28\xb5\x2f\xfd",
]
_RDF = [
    b"<<",
    b">>",
    b"<<(",
    b")>>",
    b"[",
    b"]",
    b"(",
    b")",
    b"{",
    b"}",
    b";",
    b",",
    b" .",
    b"^^",
    b"@en",
    b"@en--ltr",
    b'"""',
    b"'''",
    b"a",
    b":",
    b"true",
    b"1.0E5",
    b"@prefix : <http://x/> .\n",
    b"@base <http://x/> .\n",
    b"VERSION '1.2'\n",
    b"<http://x/ y>",
    b"<\\u0020>",
    b"<http://x/\\u00e9>",
    b"_:a.",
    b"_:0123456789abcdef0123456789abcdef",
    b"_:0123456789abcdef0123",
    b"<http://www.w3.org/2002/07/owl#sameAs>",
    b"<http://x/a><http://x/b><http://x/c>.",
]
_TABLE = [
    b"\t",
    b",",
    b";",
    b'""',
    b'"",',
    b'","',
    b" ",
    b"head\trelation\ttail\n",
    b"relation,head,tail\n",
    b"source,target\n",
    b"subject_id\tpredicate_id\tobject_id\n",
    b'"a text"@en',
    b"<http://x/a>",
]
_PARQUET = [bytes(4), b"\xff" * 4, b"\xff" * 8, b"\x7f\xff\xff\xff", b"\x80" * 10, b"\x15", b"PAR1", b"PARE"]
_ARCHIVE = [bytes(512), b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\6", b"../", b"/", b"\xff" * 4, b"7" * 11, b"ustar\0"]
_SETTINGS = [
    b"=",
    b"[",
    b"]",
    b"{",
    b"}",
    b"[[",
    b"]]",
    b'"""',
    b"'",
    b"1_000",
    b"inf",
    b"1979-05-27",
    b"[train]\n",
    b".",
]

_RDF_BRACKETS = [(b"<<( <x:a> <x:r> ", b" )>>"), (b"<< ", b" <x:r> <x:b> >>")]


@dataclass(frozen=True)
class Format:
    """What means something in a format: tokens, and what nests (before and after what is inside)."""

    tokens: Sequence[bytes]
    brackets: Sequence[tuple[bytes, bytes]] = ((b"[", b"]"), (b'"', b'"'), (b"<", b">"))


FORMATS: dict[str, Format] = {
    "nt": Format(_ANYWHERE + _RDF, _RDF_BRACKETS),
    "nq": Format(_ANYWHERE + _RDF, _RDF_BRACKETS),
    "ttl": Format(_ANYWHERE + _RDF, [*_RDF_BRACKETS, (b"( ", b" )"), (b"[ <x:r> ", b" ]"), (b"{| <x:r> ", b" |}")]),
    "tsv": Format(_ANYWHERE + _TABLE),
    "csv": Format(_ANYWHERE + _TABLE),
    "parquet": Format(_PARQUET),
    "archive": Format(_ARCHIVE),
    "toml": Format(_ANYWHERE + _SETTINGS, [(b"[", b"]"), (b"{a = ", b"}"), (b'"', b'"')]),
    "json": Format([*_ANYWHERE, *_SETTINGS, b"null", b":", b","], [(b"[", b"]"), (b'{"a": ', b"}"), (b'"', b'"')]),
}
