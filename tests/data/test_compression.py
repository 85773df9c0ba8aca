from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from largegnn.data.compression import as_stream, compression_of, compressor, read_chunks, read_head, without_marks
from largegnn.errors import InputError

PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "zstd": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
}
TEXT = b"".join(b"line %d \xc3\xa9\n" % number for number in range(50_000))


@pytest.mark.parametrize("compression", PACK)
def test_packed_files_give_their_bytes_whatever_they_are_called(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "no_suffix"
    path.write_bytes(PACK[compression](TEXT))
    assert compression_of(path) == compression
    assert b"".join(read_chunks(path)) == TEXT
    assert as_stream(read_chunks(path)).read() == TEXT
    assert read_head(path, 10) == TEXT[:10]


@pytest.mark.parametrize("compression", PACK)
def test_members_one_after_another_are_one_file(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "two"
    path.write_bytes(PACK[compression](TEXT) + PACK[compression](b"more\n"))
    assert b"".join(read_chunks(path)) == TEXT + b"more\n"


@pytest.mark.parametrize("compression", PACK)
@pytest.mark.parametrize("share", [0.3, 0.99])
def test_a_truncated_file_is_refused(tmp_path: Path, compression: str, share: float) -> None:
    packed = PACK[compression](TEXT)
    path = tmp_path / "cut"
    path.write_bytes(packed[: int(len(packed) * share)])
    with pytest.raises(InputError, match=r"ends too early|damaged"):
        list(read_chunks(path))


@pytest.mark.parametrize("compression", ["gzip", "bzip2", "zstd"])
def test_a_damaged_file_is_refused(tmp_path: Path, compression: str) -> None:
    packed = bytearray(PACK[compression](TEXT))
    for position in range(len(packed) // 2, len(packed) // 2 + 40):
        packed[position] ^= 0xFF
    path = tmp_path / "damaged"
    path.write_bytes(packed)
    with pytest.raises(InputError, match=r"damaged|ends too early"):
        list(read_chunks(path))


@pytest.mark.parametrize("compression", [None, *PACK])
def test_compressor_is_the_inverse(tmp_path: Path, compression: str | None) -> None:
    path = tmp_path / "made"
    packer = compressor(compression)
    path.write_bytes(packer.compress(TEXT) + packer.flush())
    assert compression_of(path) == compression
    assert b"".join(read_chunks(path)) == TEXT


def test_the_byte_order_mark_goes_even_from_tiny_files(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    mark = b"\xef\xbb\xbf"
    for text in (mark + b"a\n", mark, b"a", b"", mark + mark + mark + b"a", mark + b"\xef\xbb"):
        path.write_bytes(text)
        num_marks, chunks = without_marks(read_chunks(path))
        rest = b"".join(chunks)
        assert not rest.startswith(mark)
        assert mark * num_marks + rest == text


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        list(read_chunks(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="folder"):
        list(read_chunks(tmp_path))
    with pytest.raises(InputError, match="cannot be read"):
        list(read_chunks(Path("nul\0byte")))
