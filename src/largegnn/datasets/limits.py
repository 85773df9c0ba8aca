"""How much an archive may ask for before it is refused: an archive comes from the network and may be hostile.

In: what an archive claims or unpacks to. Out: nothing, or an `InputError` that names the limit. The limits are far
above what data sets need: triples shrink to a twentieth, if very regular to a two-hundredth, and the largest
collections have some hundred files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from largegnn.errors import InputError

__all__ = ["LIMITS", "Limits", "over_limit"]


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes, `expansion` in bytes per compressed byte, `name` in characters; `files`, `shared_headers` count.

    `free_of_expansion` bytes may come from any number of compressed ones. `header` bounds one header of a tar,
    `directory` the list of files in a zip, `memory` the window or dictionary of a decompressor.
    """

    expansion: int = 500
    free_of_expansion: int = 64 << 20
    files: int = 10_000
    name: int = 1_000
    header: int = 1 << 16
    shared_headers: int = 100
    directory: int = 8 << 20
    memory: int = 256 << 20

    def check_expansion(self, plain: int, compressed: int, archive: Path) -> None:
        """Refuse an archive that unpacks to far more bytes than text does."""
        if plain > max(self.free_of_expansion, self.expansion * compressed):
            raise over_limit(
                f"{self.expansion} bytes for each compressed byte after the first {self.free_of_expansion >> 20} MiB",
                f"{plain:,} bytes or more from {compressed:,} compressed bytes",
                archive,
            )

    def check_files(self, count: int, archive: Path) -> None:
        """Refuse an archive of far more files than a data set has."""
        if count > self.files:
            raise over_limit(f"{self.files:,} files", f"{count:,} files or more", archive)


LIMITS = Limits()


def over_limit(limit: str, found: str, archive: Path) -> InputError:
    """The error for an archive that asks for too much."""
    return InputError(
        "the archive asks for more than a data set needs",
        where=str(archive),
        expected=f"at most {limit} (a limit, so that no archive fills memory or disk)",
        found=found,
        fix="do not trust this file; if you do, unpack it with another program and use the folder",
    )
