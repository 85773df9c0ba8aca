"""Test that archives that unpack to far too much are refused in seconds, in little memory, and with the limit."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

from tests.datasets.test_unpack import OPENEA, below, make_tar, make_zip
from tests.fuzz.judge import Judge, Trial

MB = 1 << 20
Check = Callable[..., None]
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor(write_content_size=False).compress,
}


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """Limit the process to 1 GB more than it uses."""
    harmless = make_zip(tmp_path_factory.mktemp("first") / "harmless.zip", below("EN_FR", OPENEA))
    with Judge("tests.fuzz.checks:unpack_archive", [str(harmless)]) as judge:
        yield judge


@pytest.fixture
def assert_refused(court: Judge) -> Check:
    def check(archive: Path, *words: str) -> None:
        outcome = court.ask(Trial(archive.name, [str(archive)], archive))
        assert outcome.ended == "refused", outcome.detail
        assert outcome.seconds < 10
        for word in words:
            assert word in outcome.detail

    return check


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("suffix", list(COMPRESSIONS))
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_tar_that_expands_without_bound(assert_refused: Check, tmp_path: Path, suffix: str, kind: bytes) -> None:
    """Write 10 MB twenty times, piece by piece, in every compression."""
    compress = COMPRESSIONS[suffix]
    archive = tmp_path / f"bomb.tar.{suffix}"
    archive.write_bytes(compress(header("EN_FR/rel_triples_1", 10_000 * MB, kind)) + compress(bytes(10 * MB)) * 20)
    assert_refused(archive, "at most")


@pytest.mark.parametrize("suffix", ["tar", "tar.gz"])
def test_a_header_that_claims_an_exabyte(assert_refused: Check, tmp_path: Path, suffix: str) -> None:
    data = header("EN_FR/rel_triples_1", 1 << 60) + b"a\tr\tb\n" * 200
    archive = tmp_path / f"claim.{suffix}"
    archive.write_bytes(gzip.compress(data) if suffix == "tar.gz" else data)
    assert_refused(archive, "damaged")


def test_a_header_that_leads_backwards(assert_refused: Check, tmp_path: Path) -> None:
    """A negative size would put the next header before this header, and reading would never end."""
    record = b"14 size=-1024\n"
    pax = header("x", len(record), tarfile.XHDTYPE) + record.ljust(512, b"\0")
    archive = tmp_path / "back.tar"
    archive.write_bytes(pax + header("EN_FR/rel_triples_1", 0) + bytes(1024))
    assert_refused(archive, "damaged")


def sparse_tars() -> dict[str, bytes]:
    """Sparse files in the four forms of GNU tar, well formed and not."""

    def pax(**fields: str) -> bytes:
        member = tarfile.TarInfo("EN_FR/rel_triples_1")
        member.pax_headers = {f"GNU.sparse.{key}": value for key, value in fields.items()}
        member.size = 512
        return member.tobuf(tarfile.PAX_FORMAT)

    old = bytearray(header("EN_FR/rel_triples_1", 512, tarfile.GNUTYPE_SPARSE))
    old[386:410] = b"%011o\0%011o\0" % (0, 512)
    old[483:495] = b"%011o\0" % (1 << 30)
    old[148:156] = b"%06o\0 " % (sum(old) - sum(old[148:156]) + 8 * 32)
    more = bytearray(old)
    more[482] = 1  # announces more blocks of the map, which do not exist
    more[148:156] = b"%06o\0 " % (sum(more) - sum(more[148:156]) + 8 * 32)
    rest = b"x" * 512 + bytes(1024)
    return {
        "old": bytes(old) + rest,
        "old without its map": bytes(more),
        "0.0": pax(size="1152921504606846976", numblocks="1") + rest,
        "0.1": pax(map="0,512", size="1152921504606846976") + rest,
        "0.1 without numbers": pax(map="a,b", size="x") + rest,
        "1.0": pax(major="1", minor="0", realsize="1152921504606846976") + b"1\n0\n512\n".ljust(512, b"\0") + rest,
        "1.0 without its map": pax(major="1", minor="0", realsize="9") + rest,
        "1.0 with an endless map": pax(major="1", minor="0", realsize="9") + b"9999999999\n" + b"0\n" * MB,
    }


@pytest.mark.parametrize("form", list(sparse_tars()))
def test_a_sparse_tar(assert_refused: Check, tmp_path: Path, form: str) -> None:
    archive = tmp_path / "sparse.tar"
    archive.write_bytes(sparse_tars()[form])
    assert_refused(archive)


def test_headers_that_pile_up(assert_refused: Check, tmp_path: Path) -> None:
    """Global headers apply to all files after them: with many files, each has a copy of every header before it."""
    record = b"".join(b"%d k%06d=x\n" % (13, number) for number in range(4_000))
    shared = header("g", len(record), tarfile.XGLTYPE) + record + bytes(-len(record) % 512)
    archive = tmp_path / "piles.tar"
    archive.write_bytes(shared + b"".join(header(f"x/{number}", 0) for number in range(1_000)) + bytes(1024))
    assert_refused(archive)
    chain = tmp_path / "chain.tar"
    chain.write_bytes(header("l", 0, tarfile.GNUTYPE_LONGNAME) * 50_000 + bytes(1024))
    assert_refused(chain, "damaged")


def deflated(megabytes: int) -> bytes:
    """Compress zeros as raw deflate: one megabyte, repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = packer.compress(bytes(MB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return piece * megabytes + packer.flush()


def lying_zip(data: bytes, method: int, claimed: int, entries: int = 1) -> bytes:
    """Write a zip whose entries all point at the same data; every entry claims `claimed` bytes."""
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, method, 0, 33, 0, len(data), claimed, 19, 0)
    name = b"EN_FR/rel_triples_1"
    entry = struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, method, 0, 33, 0, len(data), claimed, 19, 0, 0, 0, 0, 0, 0)
    central = b"".join(entry + b"EN_FR/rel_trip%05d" % number for number in range(entries - 1)) + entry + name
    start = len(local) + len(name) + len(data)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, entries & 0xFFFF, entries & 0xFFFF, len(central), start, 0)
    return local + name + data + central + end


def test_zips_that_expand_without_bound(assert_refused: Check, tmp_path: Path) -> None:
    honest = tmp_path / "honest.zip"
    honest.write_bytes(lying_zip(deflated(3_000), zipfile.ZIP_DEFLATED, 3_000 * MB))
    assert_refused(honest, "limit")
    shared = tmp_path / "shared.zip"
    shared.write_bytes(lying_zip(deflated(100), zipfile.ZIP_DEFLATED, 100 * MB, entries=500))
    assert_refused(shared, "limit")


@pytest.mark.parametrize(
    ("method", "compress"),
    [(zipfile.ZIP_DEFLATED, None), (zipfile.ZIP_BZIP2, bz2.compress)],
    ids=["deflate", "bzip2"],
)
def test_a_zip_that_claims_less_than_it_holds(
    assert_refused: Check, tmp_path: Path, method: int, compress: Callable[[bytes], bytes] | None
) -> None:
    data = deflated(3_000) if compress is None else compress(bytes(200 * MB))
    archive = tmp_path / "small.zip"
    archive.write_bytes(lying_zip(data, method, 100))
    assert_refused(archive)


def test_compressions_that_ask_for_gigabytes_of_memory(assert_refused: Check, tmp_path: Path) -> None:
    """A few bytes at the beginning request a window or dictionary of gigabytes."""
    plain = make_tar(tmp_path / "a.tar", below("EN_FR", OPENEA)).read_bytes()
    archive = tmp_path / "dictionary.tar.xz"
    small = lzma.compress(plain, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": MB}])
    # The size of the dictionary is one byte of the block header, which has its own checksum.
    at = small.index(b"\x21\x01", 12) + 2
    block = bytearray(small[12 : 12 + (small[12] + 1) * 4 - 4])
    block[at - 12] = 39
    archive.write_bytes(small[:12] + block + struct.pack("<I", zlib.crc32(block)) + small[12 + len(block) + 4 :])
    assert_refused(archive)
    window = tmp_path / "window.tar.zst"
    parameters = zstandard.ZstdCompressionParameters(window_log=30)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    window.write_bytes(compressor.compress(plain) + compressor.flush())
    assert_refused(window, "at most")


def test_a_7z_is_no_archive_here(assert_refused: Check, tmp_path: Path) -> None:
    archive = tmp_path / "a.7z"
    archive.write_bytes(b"7z\xbc\xaf\x27\x1c" + bytes(100))
    assert_refused(archive, "zip, tar, tar.gz")


def test_damage_is_not_taken_for_the_end(assert_refused: Check, tmp_path: Path) -> None:
    """By default, tarfile mistakes a damaged header for the end of the archive, and never checks what follows."""
    archive = tmp_path / "damaged.tar"
    plain = make_tar(tmp_path / "a.tar", below("A", OPENEA) | below("B", OPENEA)).read_bytes()
    second = plain.index(b"B/rel_triples_1")
    damaged = bytearray(plain)
    damaged[second] ^= 1
    checksum_off = bytearray(gzip.compress(plain))
    checksum_off[-8] ^= 1
    for data in (damaged, checksum_off, plain[:second]):
        archive.write_bytes(data)
        assert_refused(archive, "damaged")
