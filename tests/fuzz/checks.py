"""What is done with an input: one function a kind, called in the worker process by `module:function`.

Each takes plain text arguments and returns something JSON can hold, or raises what the command line would turn into a
message and an exit code.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from largegnn.data.inputs import DataInput
from largegnn.data.load import load_pair
from largegnn.data.readers import read_attributes, read_links, read_names, read_rows, read_triples
from largegnn.datasets.unpack import unpack
from largegnn.settings import PRESETS, DataSettings, Settings, resolve

__all__ = ["load_folder", "read_file", "resolve_settings", "run_command", "unpack_archive"]


def read_file(path: str, kind: str, form: str) -> int:
    """Read a file of triples, links, names, rows or attributes: how many there are."""
    file = Path(path)
    if kind == "links":
        return len(read_links(file).sources)
    batches = {
        "triples": lambda: read_triples(file, form),
        "names": lambda: read_names(file),
        "rows": lambda: read_rows(file, "id", form),
        "attributes": lambda: read_attributes(file),
    }[kind]()
    return sum(len(batch.heads) + len(batch.literals) + len(batch.entities) for batch in batches)


def load_folder(path: str) -> list[int]:
    """Load a data set folder: triples and links."""
    task = load_pair(DataInput(folder=Path(path)), DataSettings()).task
    return [len(task.triples), len(task.train_links), len(task.valid_links), len(task.test_links)]


def unpack_archive(path: str) -> list[str]:
    """Unpack an archive into a folder of its own: the files that come out."""
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as out:
        made = unpack(Path(path), Path(out) / "out", top="top")
        return sorted(
            str(file.relative_to(out)) for entry in made for file in entry.folder.rglob("*") if file.is_file()
        )


def resolve_settings(file: str | None, *overrides: str) -> str:
    """Settings from a file and `key=value`, as JSON."""
    settings = resolve(Settings, PRESETS, file=None if file is None else Path(file), overrides=overrides)
    return settings.model_dump_json()


def run_command(*arguments: str) -> None:
    """A command of the command line, in this process."""
    from largegnn.cli import main

    main(list(arguments))
