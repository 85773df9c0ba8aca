"""Find the input files: one data set folder, or two triple files and a file of seeds.

In: paths. Out: `PairFiles`, the same for both forms. A folder's layout follows from the names of the files in it; each
file may be compressed (`rel_triples_1.gz`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from largegnn.data.compression import SUFFIXES
from largegnn.data.shown import listed, shown
from largegnn.errors import InputError
from largegnn.settings import DataSettings

__all__ = ["LAYOUTS", "DataInput", "PairFiles", "find_files"]


@dataclass(frozen=True)
class DataInput:
    """The two calling forms: a `folder`, or `source` and `target` with files of links.

    Both may have files of names, which go before those of a folder, and a file of decisions.
    """

    folder: Path | None = None
    source: Path | None = None
    target: Path | None = None
    seeds: Path | None = None
    valid_links: Path | None = None
    test_links: Path | None = None
    source_names: Path | None = None
    target_names: Path | None = None
    decisions: Path | None = None


@dataclass(frozen=True)
class PairFiles:
    """The files of a pair of graphs; index 0 is the source, 1 the target.

    `all_links` holds links that are not split yet. `attributes` are literals in OpenEA's form, `names` two columns,
    entity and name. `entity_ids` and `relation_ids` translate the ids of an id folder.
    `strict_links` is whether a link to an entity the graphs do not mention is a mistake (a user's seeds) or an
    isolated entity (a data set's).
    """

    layout: str
    triples: tuple[Path, Path]
    train_links: Path | None = None
    valid_links: Path | None = None
    test_links: Path | None = None
    all_links: Path | None = None
    attributes: tuple[Path | None, Path | None] = (None, None)
    names: tuple[Path | None, Path | None] = (None, None)
    entity_ids: tuple[Path, Path] | None = None
    relation_ids: tuple[Path, Path] | None = None
    strict_links: bool = False
    decisions: Path | None = None

    @property
    def has_seeds(self) -> bool:
        """Whether a file of links to train on was given."""
        return self.train_links is not None or self.all_links is not None or self.decisions is not None

    def paths(self) -> list[Path]:
        """Every file that is read, without repeats."""
        optional = [self.train_links, self.valid_links, self.test_links, self.all_links, *self.attributes, *self.names]
        optional.append(self.decisions)
        ids = [*(self.entity_ids or ()), *(self.relation_ids or ())]
        return list(dict.fromkeys([*self.triples, *(path for path in optional if path is not None), *ids]))


@dataclass(frozen=True)
class _Folder:
    """A folder, searched by plain names."""

    path: Path
    fold: int = 1

    def find(self, name: str) -> Path | None:
        candidates = [self.path / name, *(self.path / f"{name}{suffix}" for suffix in SUFFIXES)]
        return next((path for path in candidates if path.is_file()), None)

    def find_stem(self, stem: str) -> Path | None:
        """A file called `stem`, whatever suffixes it has."""
        exact = self.find(stem)
        found = sorted(path for path in self.path.glob(f"{stem}.*") if path.is_file())
        if exact is None and len(found) > 1:
            raise InputError(
                f"the folder holds several files called {stem}",
                where=str(self.path),
                found=listed(path.name for path in found),
                fix="keep one, or give the files one by one: SOURCE TARGET --seeds FILE",
            )
        return exact or (found[0] if found else None)

    def names(self) -> tuple[Path | None, Path | None]:
        """The files with the names of the entities of each side."""
        return self.find_stem("ent_names_1"), self.find_stem("ent_names_2")

    def need(self, name: str) -> Path:
        path = self.find(name)
        if path is None:
            present = listed(sorted(entry.name for entry in self.path.iterdir()), 12)
            raise InputError(
                f"the folder has no file {name}",
                where=str(self.path),
                expected=f"{name}, plain or compressed ({', '.join(SUFFIXES)})",
                found=present or "an empty folder",
            )
        return path


def find_files(given: DataInput, settings: DataSettings) -> PairFiles:
    """The files behind either calling form; refuses forms that are mixed, missing or the same file twice."""
    try:
        files = _find_pair(given) if given.folder is None else _find_in_folder(given.folder, given, settings)
    except OSError as error:  # a name too long for the system, a folder that may not be read
        where = shown(str(error.filename or given.folder or given.source), 300)
        raise InputError("the path cannot be used", where=where, found=error.strerror or str(error)) from None
    names = (given.source_names or files.names[0], given.target_names or files.names[1])
    files = replace(files, names=names, decisions=given.decisions)
    _refuse_repeats(files)
    return files


def _find_pair(given: DataInput) -> PairFiles:
    if given.source is None or given.target is None:
        raise InputError(
            "two triple files or one data set folder are needed",
            expected="FOLDER, or SOURCE TARGET --seeds FILE",
            found=f"only {given.source or given.target}" if given.source or given.target else "nothing",
        )
    return PairFiles(
        "files",
        (given.source, given.target),
        train_links=given.seeds,
        valid_links=given.valid_links,
        test_links=given.test_links,
        strict_links=True,
    )


def _find_in_folder(folder: Path, given: DataInput, settings: DataSettings) -> PairFiles:
    extra = [name for name in ("seeds", "valid_links", "test_links") if getattr(given, name) is not None]
    if extra:
        raise InputError(
            f"--{extra[0].replace('_', '-')} goes with two triple files, not with a data set folder",
            where=str(folder),
            fix="leave it out, or give SOURCE TARGET --seeds FILE",
        )
    if folder.exists() and not folder.is_dir():
        raise InputError(
            "this is a file, not a data set folder: the target graph and the seeds are missing",
            where=str(folder),
            expected="a data set folder, or SOURCE TARGET --seeds FILE",
            fix=f"give the other files too: {folder.name} TARGET --seeds FILE",
        )
    if not folder.is_dir():
        raise InputError(
            "there is no such folder",
            where=shown(str(folder), 300),
            expected="a data set folder, or SOURCE TARGET --seeds FILE",
            fix="check the path",
        )
    searched = _Folder(folder, settings.fold)
    if settings.layout != "auto":
        return LAYOUTS[settings.layout](searched)
    if searched.find("ent_ids_1") is not None:
        return _dbp15k(searched)
    if searched.find_stem("source") is not None and searched.find_stem("target") is not None:
        return _pair(searched)
    if searched.find("rel_triples_1") is None:
        raise InputError(
            "this folder is no data set in a known layout",
            where=str(folder),
            expected="rel_triples_1 and rel_triples_2 (OpenEA, DBpedia1M), ent_ids_1 and triples_1 (DBP15K), "
            "or source.* and target.*",
            found=listed(sorted(entry.name for entry in folder.iterdir()), 12) or "an empty folder",
            fix="give the files one by one: SOURCE TARGET --seeds FILE",
        )
    return _dbpedia1m(searched) if searched.find("train_links") is not None else _openea(searched)


def _openea(folder: _Folder) -> PairFiles:
    """OpenEA: links split in folds below a folder such as 721_5fold; without folds, all links in ent_links."""
    triples = (folder.need("rel_triples_1"), folder.need("rel_triples_2"))
    attributes = (folder.find("attr_triples_1"), folder.find("attr_triples_2"))
    names = folder.names()
    splits = sorted(path for path in folder.path.glob("*fold") if path.is_dir())
    if not splits:
        return PairFiles("openea", triples, all_links=folder.need("ent_links"), attributes=attributes, names=names)
    fold = _Folder(splits[0] / str(folder.fold))
    if not fold.path.is_dir():
        folds = sorted(path.name for path in splits[0].iterdir() if path.is_dir())
        raise InputError(
            f"the data set has no fold {folder.fold}",
            where=str(splits[0]),
            expected=f"--fold {' or '.join(folds)}" if folds else "folders named 1, 2, ...",
        )
    return PairFiles(
        "openea",
        triples,
        train_links=fold.need("train_links"),
        valid_links=fold.find("valid_links"),
        test_links=fold.find("test_links"),
        attributes=attributes,
        names=names,
    )


def _dbpedia1m(folder: _Folder) -> PairFiles:
    """DBpedia1M: the link files are in the folder of the triples."""
    return PairFiles(
        "dbpedia1m",
        (folder.need("rel_triples_1"), folder.need("rel_triples_2")),
        train_links=folder.need("train_links"),
        valid_links=folder.find("valid_links"),
        test_links=folder.find("test_links"),
        attributes=(folder.find("attr_triples_1"), folder.find("attr_triples_2")),
        names=folder.names(),
    )


def _dbp15k(folder: _Folder) -> PairFiles:
    """DBP15K: numbers everywhere, names in ent_ids_1/2; sup_ent_ids are train links, ref_ent_ids test links."""
    shared = folder.find("rel_ids")
    relation_ids = (folder.find("rel_ids_1") or shared, folder.find("rel_ids_2") or shared)
    return PairFiles(
        "dbp15k",
        (folder.need("triples_1"), folder.need("triples_2")),
        train_links=folder.need("sup_ent_ids"),
        valid_links=folder.find("valid_ent_ids"),
        test_links=folder.find("ref_ent_ids"),
        entity_ids=(folder.need("ent_ids_1"), folder.need("ent_ids_2")),
        relation_ids=(relation_ids[0], relation_ids[1]) if relation_ids[0] and relation_ids[1] else None,
        names=folder.names(),
    )


def _pair(folder: _Folder) -> PairFiles:
    """A plain pair: source.*, target.* and link files in any format; links.* that are not split are for the report."""
    source, target = folder.find_stem("source"), folder.find_stem("target")
    if source is None or target is None:
        raise InputError("the folder has no source.* and target.*", where=str(folder.path))
    return PairFiles(
        "pair",
        (source, target),
        train_links=folder.find_stem("train_links") or folder.find_stem("seeds"),
        valid_links=folder.find_stem("valid_links"),
        test_links=folder.find_stem("test_links") or folder.find_stem("links"),
        names=(folder.find_stem("source_names"), folder.find_stem("target_names")),
    )


LAYOUTS: dict[str, Callable[[_Folder], PairFiles]] = {
    "openea": _openea,
    "dbpedia1m": _dbpedia1m,
    "dbp15k": _dbp15k,
    "pair": _pair,
}


def _refuse_repeats(files: PairFiles) -> None:
    roles = {
        "source": files.triples[0],
        "target": files.triples[1],
        "seeds": files.train_links,
        "valid links": files.valid_links,
        "test links": files.test_links,
    }
    role_of: dict[tuple[int, int], str] = {}
    for role, path in roles.items():
        if path is None:
            continue
        try:
            status = path.stat()
        except OSError:
            continue  # the reader names the problem
        other = role_of.setdefault((status.st_dev, status.st_ino), role)
        if other != role:
            raise InputError(
                f"the same file was given as {other} and as {role}", where=str(path), fix="give a file for each"
            )
