"""Look up swappable parts by name: six tables that users can add to without touching the package.

Each entry is the address of a part, `module:attribute`, so that the tables can be read without importing anything. A
name is looked up (1) among the objects registered in this process, which cannot be imported elsewhere; (2) in the
table; (3) among the entry points of the group `largegnn.TABLE` of installed packages; (4) if it has a colon, as an
address. `docs/guides/extending.md` shows one part of each kind.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import importlib.metadata
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from largegnn.errors import InputError

if TYPE_CHECKING:
    from largegnn.data.batch import Reader
    from largegnn.division.partition import Partitioner
    from largegnn.embedding.encoders import EncoderFactory
    from largegnn.export import Exporter
    from largegnn.matching.scorings import Scoring
    from largegnn.matching.search import Searcher

__all__ = [
    "ENCODERS",
    "EXPORTERS",
    "PARTITIONERS",
    "READERS",
    "SCORINGS",
    "SEARCHERS",
    "TABLES",
    "Table",
    "address_of",
    "load_address",
]

_Part = TypeVar("_Part")
_MAX_SHOWN_CHARS = 100


class Table(Generic[_Part]):
    """Parts of one kind by name."""

    def __init__(self, name: str, kind: str, parts: Mapping[str, str]) -> None:
        """`name`: the table, plural (`encoders`); `kind`: one entry, as messages call it (`encoder`)."""
        self.name, self.kind = name, kind
        self._parts = dict(parts)
        self._registered: dict[str, _Part] = {}

    def __getitem__(self, name: str) -> _Part:
        """The part of this name; an unknown one is refused with the known names."""
        if name in self._registered:
            return self._registered[name]
        if name in self._parts:
            return cast(_Part, _import(self._parts[name]))
        points = _entry_points(self.name)
        if name in points:
            return cast(_Part, self._load_point(points[name]))
        if ":" in name:
            return cast(_Part, load_address(name, self.kind, f"one of {', '.join(self)}, or `module:name`"))
        raise self._unknown(name)

    def __iter__(self) -> Iterator[str]:
        """The known names: ours, those of installed packages, those of this process."""
        return iter(dict.fromkeys([*self._parts, *_entry_points(self.name), *self._registered]))

    def __contains__(self, name: object) -> bool:
        return name in self._parts or name in self._registered or name in _entry_points(self.name)

    def name_of(self, part: _Part | str) -> str:
        """The name to write into settings for a part given by name or as an object; an unknown name is refused."""
        if isinstance(part, str):
            if part not in self:
                self[part]  # refuses an unknown name
            return part
        known = {name: point.value for name, point in _entry_points(self.name).items()} | self._parts
        for name, address in known.items():
            if _is_loaded_at(address, part):
                return name
        address = address_of(part)
        # Another process has another `__main__`.
        if _is_loaded_at(address, part) and not address.startswith("__main__:"):
            return address
        return self._register(part)

    def is_local(self, name: str) -> bool:
        """Whether a part is known in this process alone, so that no other process can use it."""
        return name in self._registered

    def _register(self, part: _Part) -> str:
        """Make a part known under its own name, with a number where that is taken."""
        for name, known in self._registered.items():
            if known is part:
                return name
        plain = str(getattr(part, "__name__", type(part).__name__))
        name, number = plain, 2
        while name in self:
            name, number = f"{plain}-{number}", number + 1
        self._registered[name] = part
        return name

    def _unknown(self, name: str) -> InputError:
        near = difflib.get_close_matches(name[:_MAX_SHOWN_CHARS], list(self), n=3, cutoff=0.5)
        return InputError(
            f"no {self.kind} is called {name[:_MAX_SHOWN_CHARS]!r}",
            expected=f"one of {', '.join(self)}",
            fix=f"did you mean {' or '.join(near)}?"
            if near
            else f"choose one of these, or give `module:name` of your own {self.kind}; see docs/guides/extending.md",
        )

    def _load_point(self, point: importlib.metadata.EntryPoint) -> Any:
        try:
            return point.load()
        except Exception as error:  # another package's code may raise anything
            package = point.dist.name if point.dist is not None else "an installed package"
            raise InputError(
                f"the {self.kind} {point.name!r} of {package} cannot be loaded",
                found=_described(point.value, error),
                fix=f"repair or remove {package}",
            ) from error


def load_address(address: str, kind: str, expected: str) -> Any:
    """The object at `module:attribute`; one that cannot be imported is refused."""
    try:
        return _import(address)
    except (Exception, SystemExit) as error:  # a module of the user's may raise anything, and a script may exit
        raise InputError(
            f"the {kind} {address[:_MAX_SHOWN_CHARS]!r} cannot be imported",
            expected=expected,
            found=_described(address, error),
            fix="check the spelling, and that the module is installed or on PYTHONPATH",
        ) from error


def _import(address: str) -> Any:
    module, _, path = address.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def address_of(part: object) -> str:
    """`module:name` of a function or class, or of the class of anything else; text stays as it is."""
    if isinstance(part, str):
        return part
    named = part if hasattr(part, "__qualname__") else type(part)
    return f"{named.__module__}:{getattr(named, '__qualname__', '')}"


def _is_loaded_at(address: str, part: object) -> bool:
    """Whether an address names this very object; an object's module is loaded, so nothing is imported."""
    module, _, path = address.partition(":")
    found: Any = sys.modules.get(module)
    for name in path.split("."):
        found = getattr(found, name, None)
    return found is part


def _described(address: str, error: BaseException) -> str:
    return f"{address[:_MAX_SHOWN_CHARS]}: {type(error).__name__}: {str(error)[: 2 * _MAX_SHOWN_CHARS]}"


@functools.cache
def _entry_points(table: str) -> dict[str, importlib.metadata.EntryPoint]:
    """What installed packages add to a table; of two with one name the first found counts."""
    found: dict[str, importlib.metadata.EntryPoint] = {}
    for point in _installed_points():
        if point.group == f"largegnn.{table}":
            found.setdefault(point.name, point)
    return found


@functools.cache
def _installed_points() -> tuple[importlib.metadata.EntryPoint, ...]:
    """The entry points of all installed packages for our tables; looking through the packages takes a moment."""
    points = importlib.metadata.entry_points()
    return tuple(
        point for group in points.groups if group.startswith("largegnn.") for point in points.select(group=group)
    )


READERS: Table[Reader] = Table(
    "readers",
    "format",
    {
        "nt": "largegnn.data.rdf:NT",
        "nq": "largegnn.data.rdf:NQ",
        "ttl": "largegnn.data.rdf:TURTLE",
        "tsv": "largegnn.data.tables:TSV",
        "csv": "largegnn.data.tables:CSV",
        "parquet": "largegnn.data.parquet:PARQUET",
    },
)
PARTITIONERS: Table[Partitioner] = Table(
    "partitioners",
    "partitioner",
    {
        "auto": "largegnn.division.partition:auto",
        "metis": "largegnn.division.partition:metis",
        "kaminpar": "largegnn.division.partition:kaminpar",
        "kaminpar_parallel": "largegnn.division.partition:kaminpar_parallel",
        "cps": "largegnn.division.partition:cps",
        "sbp": "largegnn.division.partition:sbp",
    },
)
ENCODERS: Table[EncoderFactory] = Table(
    "encoders",
    "encoder",
    {"dual_amn": "largegnn.embedding.dual_amn:DualAMN", "gcn": "largegnn.embedding.gcn:GCN"},
)
SEARCHERS: Table[Searcher] = Table(
    "searchers",
    "searcher",
    {
        "torch": "largegnn.matching.exact_search:exact_search",
        "ivf": "largegnn.matching.faiss_search:ivf_search",
    },
)
SCORINGS: Table[Scoring] = Table(
    "scorings",
    "scoring",
    {
        "cosine": "largegnn.matching.scorings:COSINE",
        "csls": "largegnn.matching.scorings:CSLS",
        "transport": "largegnn.matching.scorings:TRANSPORT",
        "partial_transport": "largegnn.matching.scorings:PARTIAL_TRANSPORT",
        "reciprocal": "largegnn.matching.scorings:RECIPROCAL",
    },
)
EXPORTERS: Table[Exporter] = Table(
    "exporters",
    "export form",
    {
        "tsv": "largegnn.export.tabular:TSV",
        "parquet": "largegnn.export.tabular:PARQUET",
        "sameas": "largegnn.export.rdf:SAME_AS",
        "sssom": "largegnn.export.sssom:SSSOM",
        "alignment-api": "largegnn.export.rdf:ALIGNMENT_API",
        "rdf12": "largegnn.export.rdf:ANNOTATIONS",
        "neo4j": "largegnn.export.tabular:NEO4J",
        "quickstatements": "largegnn.export.quickstatements:QUICKSTATEMENTS",
    },
)

TABLES: dict[str, Table[Any]] = {
    table.name: table for table in (READERS, PARTITIONERS, ENCODERS, SEARCHERS, SCORINGS, EXPORTERS)
}
