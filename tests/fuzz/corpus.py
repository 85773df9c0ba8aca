"""Small valid inputs of every kind, to be mutated: files of triples, links, names and values, folders, archives.

Each is odd in a way that is allowed: comments, quotes, escapes, headers, several compressed pieces.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable

import polars as pl
import zstandard

__all__ = ["COMPRESSIONS", "archives", "files", "folders"]

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
}
_NT = [
    """<http://x/a> <http://x/r> <http://x/b> .
<http://x/b> <http://x/s> <http://x/c> . # a comment
# another <http://x/c> <http://x/s> <http://x/d> .

<http://x/c> <http://x/s> "a \\"text\\"\\n" .
<http://x/c>\t<http://x/s>\t"Text"@en-GB\t.
<http://x/\\u00e9> <http://x/s> "7"^^<http://www.w3.org/2001/XMLSchema#int>.
_:one <http://x/r> _:two.2 .
<http://x/d><http://x/r><http://x/a>.
""",
    "".join(f"<http://x/e{n}> <http://x/r{n % 3}> <http://x/e{n * 7 % 30}> .\n" for n in range(30)),
    """_:00112233445566778899aabbccddeeff <http://x/r> _:b0 . # blank
_:b0 <http://x/r> _:00112233445566778899aabbccddeeff .
_:0123456789abcdef0123 <http://x/r> <http://x/a> .
""",
]
_NQ = [
    _NT[0],
    '<http://x/a> <http://x/r> <http://x/b> <http://x/g> .\n_:a <http://x/r> _:b _:g .\n<x:a> <x:r> "text" <x:g> .\n',
    "".join(f"<http://x/e{n}> <http://x/r> <http://x/e{n + 1}> <http://x/g{n % 2}> .\n" for n in range(20)),
]
_TTL = [
    """@prefix x: <http://x/> .
@base <http://y/> .
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
x:a x:r x:b , x:c ; a x:T ; x:s "long \\t text"@en , 7 , 1.5e3 , true .
<#a> x:r [ x:s (x:a x:b ()) ; x:r [] ] .
x:b x:s '''several
lines''' , "seven"^^x:int . # a comment
x:a\\,b x:r _:one .
""",
    "\n".join(f"<http://x/e{n}> <http://x/r> <http://x/e{n + 1}> ." for n in range(20)),
    "@prefix : <http://x/> .\n<< :a :r :b >> :s :c .\n:a :r <<( :a :r :b )>> .\n:a :r :b {| :s :c |} .\n",
]
_TSV = [
    'a\tr\tb\nb\ts\tc\nc\ts\t"a text"@en\n<http://x/a>\t<http://x/r>\t<http://x/b>\n',
    "head\trelation\ttail\n" + "".join(f"e{n}\tr{n % 3}\te{n * 7 % 30}\n" for n in range(30)),
    'O\'Neil\tsays "hi"\tb c\r\nd\tr\te\r\n',
]
_CSV = [
    'a,r,b\nb,"r,s",c\n"c ""q""","s","line\nbreak"\n',
    "relation,head,tail\n" + "".join(f"r{n % 3},e{n},e{n * 7 % 30}\n" for n in range(30)),
    "a,r,b\r\nd,r,e\r\n",
]
_LINKS = {
    "tsv": ["a\tA\nb\tB\nc\tC\n", "source\ttarget\na\tA\n", "<http://x/a>\t<http://y/A>\r\n"],
    "csv": ['a,A\n"b,1",B\n', "target,source\nA,a\n", "subject_id,predicate_id,object_id\na,owl:sameAs,A\n"],
    "nt": ["<http://x/a> <http://www.w3.org/2002/07/owl#sameAs> <http://y/A> .\n# end\n"],
    "ttl": ["@prefix owl: <http://www.w3.org/2002/07/owl#> .\n<http://x/a> owl:sameAs <http://y/A> , <http://y/B> .\n"],
}


_NAMES = {
    "tsv": ['a\tParis\nb\tThe "Hague"\n', "entity\tname\n<http://x/a>\tCaf\u00e9\n"],
    "csv": ['a,"Paris, France"\nb,Rome\n', "name,entity\nParis,a\n"],
    "nt": ['<http://x/a> <http://x/label> "Paris"@fr .\n<http://x/a> <http://x/label> "P\\u00e2ris" .\n'],
}
_ROWS = {
    "tsv": ["id\tname\tborn\n1\tAnna\t1970-01-01\n2\tBob\t\n", 'id\tvalue\n1\t"x"@en\n'],
    "csv": ['name,id\n"Anna ""A""",1\nBob,2\n', "id\n1\n2\n"],
}
_ATTRIBUTES = [
    'a\tname\t"Paris"@fr\na\tsize\t"7"^^<http://www.w3.org/2001/XMLSchema#int>\nb\ttext\tplain\ttext\n',
    '<http://x/a>\t<http://x/p>\t"a \\"q\\" \\u00e9"\n',
    '<http://x/a> <http://x/p> "text" .\n',
]


def files() -> dict[str, dict[str, list[bytes]]]:
    """Files by kind (triples, links, names, rows with a key, attributes) and format."""
    triples = {"nt": _NT, "nq": _NQ, "ttl": _TTL, "tsv": _TSV, "csv": _CSV}
    texts = {"triples": triples, "links": _LINKS, "names": _NAMES, "rows": _ROWS, "attributes": {"tsv": _ATTRIBUTES}}
    tables = {
        "triples": [
            _parquet(["head", "relation", "tail"], 40),
            _parquet(["tail", "head", "relation", "more"], 5, "zstd"),
            _parquet(["s", "p", "o"], 3, "uncompressed"),
        ],
        "links": [_parquet(["source", "target"], 10)],
        "names": [_parquet(["entity", "name"], 10)],
        "rows": [_parquet(["id", "name", "more"], 10)],
    }
    encoded = {
        kind: {form: [text.encode() for text in found] for form, found in forms.items()}
        for kind, forms in texts.items()
    }
    for kind, found in tables.items():
        encoded[kind]["parquet"] = found
    return encoded


def _parquet(columns: list[str], rows: int, compression: str = "snappy") -> bytes:
    frame = pl.DataFrame({column: [f"{column}{n * 7 % 11}" for n in range(rows)] for column in columns})
    out = io.BytesIO()
    frame.write_parquet(out, compression=compression)  # type: ignore[arg-type]
    return out.getvalue()


def folders() -> dict[str, dict[str, bytes]]:
    """Data set folders by layout: the bytes of each file."""
    pairs = [(f"a{n}", f"A{n}") for n in range(12)]
    one = "".join(f"a{n}\tr{n % 2}\ta{(n + 1) % 12}\n" for n in range(12)).encode()
    two = "".join(f"A{n}\tp{n % 2}\tA{(n + 1) % 12}\n" for n in range(12)).encode()
    train, valid, test = (
        "".join(f"{a}\t{b}\n" for a, b in part).encode() for part in (pairs[:5], pairs[5:8], pairs[8:])
    )
    links = {"train_links": train, "valid_links": valid, "test_links": test}
    graphs = {"rel_triples_1": one, "rel_triples_2": two}
    attributes = {"attr_triples_1": b'a0\tname\t"x"\n', "attr_triples_2": b'A0\tname\t"y"@en\n'}
    folds = {f"721_5fold/1/{name}": data for name, data in links.items()}
    ids = {
        "ent_ids_1": "".join(f"{n}\ta{n}\n" for n in range(12)).encode(),
        "ent_ids_2": "".join(f"{n + 12}\tA{n}\n" for n in range(12)).encode(),
        "triples_1": "".join(f"{n}\t{n % 2}\t{(n + 1) % 12}\n" for n in range(12)).encode(),
        "triples_2": "".join(f"{n + 12}\t{n % 2}\t{(n + 1) % 12 + 12}\n" for n in range(12)).encode(),
        "sup_ent_ids": "".join(f"{n}\t{n + 12}\n" for n in range(6)).encode(),
        "ref_ent_ids": "".join(f"{n}\t{n + 12}\n" for n in range(6, 12)).encode(),
    }
    statements = "".join(f"<x:a{n}> <x:r> <x:a{(n + 1) % 12}> .\n" for n in range(12)).encode()
    return {
        "openea": graphs | attributes | folds | {"ent_links": train + valid + test},
        "unsplit": graphs | {"ent_links": train + valid + test},
        "dbpedia1m": graphs | links | {"ent_names_1": b"a0\tParis\n", "ent_names_2.tsv": b"A0\tparis\n"},
        "dbp15k": ids,
        "pair": {
            "source.nt": statements,
            "target.csv.gz": gzip.compress(two.replace(b"\t", b",")),
            "train_links.tsv": b"x:a0\tA0\nx:a1\tA1\nx:a2\tA2\n",
            "source_names.csv": b"entity,name\nx:a0,Paris\n",
        },
    }


def archives() -> dict[str, bytes]:
    """Archives of data set folders by suffix."""
    folder = {f"data/EN_FR/{name}": data for name, data in folders()["dbpedia1m"].items()}
    plain = _tar(folder, tarfile.GNU_FORMAT)
    pax = _tar(folder | {f"data/{'long' * 60}/readme": b"x"}, tarfile.PAX_FORMAT)
    compressed = {f"tar{suffix}": compress(plain) for suffix, compress in COMPRESSIONS.items()}
    return {
        "zip": _zip(folder, zipfile.ZIP_DEFLATED),
        "stored.zip": _zip(folder, zipfile.ZIP_STORED),
        "bz2.zip": _zip(folder, zipfile.ZIP_BZIP2),
        "tar": plain,
        "pax.tar": pax,
        "tar.xz": lzma.compress(plain),
        **compressed,
    }


def _zip(files: dict[str, bytes], method: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as written:
        for name, data in files.items():
            written.writestr(name, data)
    return out.getvalue()


def _tar(files: dict[str, bytes], form: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as written:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            written.addfile(member, io.BytesIO(data))
    return out.getvalue()
