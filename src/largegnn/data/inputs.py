"""Find the input files: one data set folder, or two triple files and a file of seeds.

In: paths. Out: `PairFiles`, alike for both calling forms. The layout of a folder follows from the names of its files;
each file may be compressed (`rel_triples_1.gz`).
"""

from __future__ import annotations

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

    Both forms accept files of names, which replace those of a folder, and a file of decisions.
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

    `all_links` holds links that are not split yet. Files of `attributes` hold literals in OpenEA's form; files of
    `names` have two columns, entity and name. `entity_ids` and `relation_ids` translate the ids of an id folder.
    `strict_links`: links to entities that the graphs do not mention are a mistake, as in a user's seeds; otherwise such
    entities are isolated, as in data sets.
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
        """Return every file that is read, without repeats."""
        optional = [self.train_links, self.valid_links, self.test_links, self.all_links, *self.attributes, *self.names]
        optional.append(self.decisions)
        ids = [*(self.entity_ids or ()), *(self.relation_ids or ())]
        return list(dict.fromkeys([*self.triples, *(path for path in optional if path is not None), *ids]))


@dataclass(frozen=True)
class _Layout:
    """The names of the files of a layout, without suffixes; of several names the first that exists is used."""

    triples: tuple[str, str]
    train: tuple[str, ...] = ("train_links",)
    valid: str = "valid_links"
    test: tuple[str, ...] = ("test_links",)
    attributes: tuple[str, str] = ("attr_triples_1", "attr_triples_2")
    names: tuple[str, str] = ("ent_names_1", "ent_names_2")
    has_ids: bool = False


# OpenEA has links in folds below a folder such as 721_5fold, or all links in ent_links; DBpedia1M has them beside the
# triples. DBP15K uses ids in all files and names them in ent_ids_1 and ent_ids_2; sup_ent_ids are train links,
# ref_ent_ids test links. The files of a plain pair may have any format; its file `links` holds test links.
LAYOUTS = {
    "openea": _Layout(("rel_triples_1", "rel_triples_2")),
    "dbpedia1m": _Layout(("rel_triples_1", "rel_triples_2")),
    "dbp15k": _Layout(
        ("triples_1", "triples_2"),
        ("sup_ent_ids",),
        "valid_ent_ids",
        ("ref_ent_ids",),
        has_ids=True,
    ),
    "pair": _Layout(
        ("source", "target"),
        ("train_links", "seeds"),
        test=("test_links", "links"),
        names=("source_names", "target_names"),
    ),
}


def _find(folder: Path, *stems: str) -> Path | None:
    """Find the first file with one of these names, with any suffixes."""
    for stem in stems:
        with_suffix = sorted(path for path in folder.glob(f"{stem}.*") if path.is_file())
        exact = [path for suffix in ("", *SUFFIXES) if (path := folder / f"{stem}{suffix}").is_file()]
        if not exact and len(with_suffix) > 1:
            raise InputError(
                f"the folder holds several files called {stem}",
                where=str(folder),
                found=listed(path.name for path in with_suffix),
                fix="keep one of them, or give the files one by one: SOURCE TARGET --seeds FILE",
            )
        if exact or with_suffix:
            return (exact or with_suffix)[0]
    return None


def _need(folder: Path, *stems: str) -> Path:
    path = _find(folder, *stems)
    if path is None:
        raise InputError(
            f"the folder has no file {stems[0]}",
            where=str(folder),
            expected=f"{stems[0]}, plain or compressed ({', '.join(SUFFIXES)})",
            found=_listing(folder),
        )
    return path


def _listing(folder: Path) -> str:
    return listed(sorted(entry.name for entry in folder.iterdir()), 12) or "an empty folder"


def find_files(given: DataInput, settings: DataSettings) -> PairFiles:
    """Find the files of either calling form; refuses mixed forms, missing files and a file with two roles."""
    try:
        files = _find_pair(given) if given.folder is None else _find_in_folder(given.folder, given, settings)
    except OSError as error:  # a name too long for the system, or a folder without permission
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
            f"--{extra[0].replace('_', '-')} needs two triple files, not a data set folder",
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
    return _files_of(_layout_of(folder) if settings.layout == "auto" else settings.layout, folder, settings.fold)


def _layout_of(folder: Path) -> str:
    if _find(folder, "ent_ids_1"):
        return "dbp15k"
    if _find(folder, "source") and _find(folder, "target"):
        return "pair"
    if _find(folder, "rel_triples_1"):
        return "dbpedia1m" if _find(folder, "train_links") else "openea"
    raise InputError(
        "this folder is not a data set in a known layout",
        where=str(folder),
        expected="rel_triples_1 and rel_triples_2 (OpenEA, DBpedia1M), ent_ids_1 and triples_1 (DBP15K), "
        "or source.* and target.*",
        found=_listing(folder),
        fix="give the files one by one: SOURCE TARGET --seeds FILE",
    )


def _files_of(name: str, folder: Path, fold: int) -> PairFiles:
    """Find the files of a folder in a known layout."""
    layout = LAYOUTS[name]
    links = _fold(folder, fold) if name == "openea" else folder
    first_ids, second_ids = (_find(folder, f"rel_ids_{side}", "rel_ids") if layout.has_ids else None for side in (1, 2))
    find_train = _find if name == "pair" else _need
    return PairFiles(
        name,
        (_need(folder, layout.triples[0]), _need(folder, layout.triples[1])),
        train_links=None if links is None else find_train(links, *layout.train),
        valid_links=None if links is None else _find(links, layout.valid),
        test_links=None if links is None else _find(links, *layout.test),
        all_links=_need(folder, "ent_links") if links is None else None,
        attributes=(_find(folder, layout.attributes[0]), _find(folder, layout.attributes[1])),
        names=(_find(folder, layout.names[0]), _find(folder, layout.names[1])),
        entity_ids=(_need(folder, "ent_ids_1"), _need(folder, "ent_ids_2")) if layout.has_ids else None,
        relation_ids=(first_ids, second_ids) if first_ids and second_ids else None,
    )


def _fold(folder: Path, number: int) -> Path | None:
    """Find the folder with the links of a fold; None if the data set has no folds."""
    splits = sorted(path for path in folder.glob("*fold") if path.is_dir())
    if not splits:
        return None
    if not (splits[0] / str(number)).is_dir():
        folds = sorted(path.name for path in splits[0].iterdir() if path.is_dir())
        raise InputError(
            f"the data set has no fold {number}",
            where=str(splits[0]),
            expected=f"--fold {' or '.join(folds)}" if folds else "folders named 1, 2, ...",
        )
    return splits[0] / str(number)


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
            continue  # the reader reports the problem
        first_role = role_of.setdefault((status.st_dev, status.st_ino), role)
        if first_role != role:
            raise InputError(
                f"the same file was given as {first_role} and as {role}", where=str(path), fix="give a file for each"
            )
