"""Whether a file is the right one, by its checksum.

In: a file, what it should hash to if that is known, and the folder whose `checksums.json` remembers what earlier files
hashed to. Out: a `ChecksumResult`, or an error with both values. A checksum that nobody published is recorded the first
time and compared from then on, so a file that changes is noticed. One pass over the file, whatever the algorithms.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from largegnn.errors import InputError
from largegnn.machine.atomic import write_text

__all__ = ["LEDGER", "ChecksumResult", "verify"]

LEDGER = "checksums.json"
_log = logging.getLogger(__name__)
_CHUNK = 1 << 20


@dataclass(frozen=True)
class ChecksumResult:
    """A file's checksum and size; `compared` says with what: known, recorded or nothing."""

    sha256: str
    size: int
    compared: str


def verify(
    path: Path, name: str, expected: str | None, ledger: Path, *, trust: bool = False, ours: bool = True
) -> ChecksumResult:
    """Compare a file's checksum with the known or the recorded one, and record it in a folder's `checksums.json`.

    A file that fails is removed if it is `ours`. `trust` accepts it whatever it hashes to.
    """
    algorithm, _, wanted = (expected or "").partition(":")
    found = _digests(path, {"sha256", algorithm} - {""})
    records = _read_ledger(ledger / LEDGER)
    compared = "known" if expected else "recorded" if name in records else "nothing"
    if compared == "recorded":
        algorithm, wanted = "sha256", str(records[name].get("sha256"))
    if compared != "nothing" and found[algorithm] != wanted.lower():
        if not trust:
            if ours:
                path.unlink(missing_ok=True)
            before = "" if expected else f", as recorded in {ledger / LEDGER}"
            raise InputError(
                "the file's checksum is wrong: it was damaged, or it is another file" + (", removed" if ours else ""),
                where=str(path),
                expected=f"{algorithm} {wanted}{before}",
                found=f"{algorithm} {found[algorithm]}",
                fix="fetch it again; if the publisher has replaced the file, accept it with --skip-checksum",
            )
        _log.warning("%s: the checksum is not the %s one; accepted because of --skip-checksum", path, compared)
        compared = "nothing"
    size = path.stat().st_size
    records[name] = {"sha256": found["sha256"], "bytes": size}
    _write_ledger(ledger / LEDGER, records)
    return ChecksumResult(found["sha256"], size, compared)


def _digests(path: Path, algorithms: set[str]) -> dict[str, str]:
    hashes = {algorithm: hashlib.new(algorithm, usedforsecurity=False) for algorithm in algorithms}
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                for digest in hashes.values():
                    digest.update(chunk)
    except OSError as error:
        raise InputError("the file cannot be read", where=str(path), found=error.strerror) from None
    return {algorithm: digest.hexdigest() for algorithm, digest in hashes.items()}


def _read_ledger(path: Path) -> dict[str, Any]:
    try:
        records = json.loads(path.read_bytes())
        if not isinstance(records, dict) or not all(isinstance(record, dict) for record in records.values()):
            raise ValueError
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise InputError("the record of checksums cannot be read", where=str(path), fix="delete it") from None
    return records


def _write_ledger(path: Path, records: dict[str, Any]) -> None:
    write_text(path, json.dumps(records, indent=1, sort_keys=True) + "\n")
