"""What is done with an input: one function a kind, called in the worker process by `module:function`.

Each takes plain text arguments and returns something JSON can hold, or raises what the command line would turn into a
message and an exit code.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from largegnn.datasets.unpack import unpack

__all__ = ["unpack_archive"]


def unpack_archive(path: str) -> list[str]:
    """Unpack an archive into a folder of its own: the files that come out."""
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as out:
        made = unpack(Path(path), Path(out) / "out", top="top")
        return sorted(
            str(file.relative_to(out)) for entry in made for file in entry.folder.rglob("*") if file.is_file()
        )
