from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from largegnn import parts
from largegnn.errors import InputError
from largegnn.parts import TABLES, Table


def stitch() -> str:
    return "a seam"


class Knot:
    class Inner:
        pass


TIED = Knot()


@pytest.fixture
def seams() -> Table[object]:
    """Two parts of ours: a function of the standard library, and one whose module does not exist."""
    return Table("seams", "seam", {"flat": "fractions:Fraction", "lost": "no_such_module:thing"})


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package that adds `french` and the broken `torn` to the seams."""
    (tmp_path / "sewing.py").write_text("def french():\n    return 'two rows'\n\n\nRUN_ON = [french]\n")
    info = tmp_path / "sewing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sewing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[largegnn.seams]\nfrench = sewing:french\nflat = sewing:french\ntorn = sewing:missing\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    parts._entry_points.cache_clear()
    parts._installed_points.cache_clear()
    yield tmp_path
    sys.modules.pop("sewing", None)
    parts._entry_points.cache_clear()
    parts._installed_points.cache_clear()


def test_a_part_is_imported_when_it_is_asked_for(seams: Table[object]) -> None:
    import fractions

    assert list(seams) == ["flat", "lost"]
    assert "lost" in seams
    assert seams.name_of("lost") == "lost"
    assert seams["flat"] is fractions.Fraction
    with pytest.raises(ModuleNotFoundError):
        seams["lost"]


def test_an_unknown_name_gets_the_known_and_the_near_ones(seams: Table[object]) -> None:
    with pytest.raises(InputError, match="no seam is called 'flatt'") as error:
        seams["flatt"]
    assert error.value.expected == "one of flat, lost"
    assert error.value.fix == "did you mean flat?"
    with pytest.raises(InputError, match="no seam is called 'zig zag'") as error:
        seams.name_of("zig zag")
    assert "`module:name`" in str(error.value.fix)


def test_long_names_are_cut(seams: Table[object]) -> None:
    for name in ("x" * 60_000, "x:" * 30_000):
        with pytest.raises(InputError) as error:
            seams[name]
        assert len(str(error.value)) < 1_000


def test_a_name_with_a_colon_is_an_address(seams: Table[object]) -> None:
    assert seams["tests.test_parts:stitch"] is stitch
    assert seams["tests.test_parts:Knot.Inner"] is Knot.Inner
    assert seams.name_of("tests.test_parts:stitch") == "tests.test_parts:stitch"


@pytest.mark.parametrize(
    "address", ["no_such_module:x", "fractions:nothing", ":x", "fractions:", ".fractions:x", "a:b:c"]
)
def test_an_address_that_leads_nowhere_is_refused(address: str, seams: Table[object]) -> None:
    with pytest.raises(InputError, match="cannot be imported") as error:
        seams.name_of(address)
    assert "PYTHONPATH" in str(error.value.fix)


@pytest.mark.parametrize("code", ["raise RuntimeError('no thread')", "x = (", "import sys; sys.exit(3)"])
def test_a_module_that_cannot_be_imported_is_refused(
    code: str, seams: Table[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torn_module.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match="cannot be imported"):
        seams["torn_module:part"]


def test_the_name_of_an_object(seams: Table[object]) -> None:
    from fractions import Fraction

    assert seams.name_of("flat") == "flat"
    assert seams.name_of(Fraction) == "flat"
    assert seams.name_of(stitch) == "tests.test_parts:stitch"
    assert seams.name_of(Knot.Inner) == "tests.test_parts:Knot.Inner"
    assert not seams.is_local("tests.test_parts:stitch")
    with pytest.raises(InputError, match="no seam is called 'none'"):
        seams.name_of("none")


def test_an_object_of_a_class_is_found_where_the_table_names_it() -> None:
    """Parts that are values, such as a reader, have no address of their own."""
    seams: Table[object] = Table("seams", "seam", {"tied": "tests.test_parts:TIED"})
    assert seams.name_of(TIED) == "tied"
    assert seams.name_of(Knot()) == "Knot"
    assert seams.is_local("Knot")


def test_what_is_made_inside_a_function_is_known_here_alone(seams: Table[object]) -> None:
    def make(number: int) -> object:
        def part() -> int:
            return number

        return part

    first, second = make(1), make(2)
    assert seams.name_of(first) == "part"
    assert seams.name_of(second) == "part-2"
    assert seams.name_of(first) == "part"
    assert (seams["part"], seams["part-2"]) == (first, second)
    assert seams.is_local("part-2")


def test_what_a_script_defines_is_known_there_alone() -> None:
    code = (
        "from largegnn.parts import PARTITIONERS\n"
        "def mine(): pass\n"
        "print(PARTITIONERS.name_of(mine), PARTITIONERS.is_local('mine'), PARTITIONERS['mine'] is mine)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["mine", "True", "True"]


def test_an_installed_package_adds_parts(package: Path, seams: Table[object]) -> None:
    assert list(seams) == ["flat", "lost", "french", "torn"]
    assert "sewing" not in sys.modules
    assert seams.name_of("french") == "french"
    assert "sewing" not in sys.modules
    french = seams["french"]
    assert callable(french)
    assert french() == "two rows"
    assert seams.name_of(french) == "french"
    assert not seams.is_local("french")


def test_our_own_part_wins_over_one_of_a_package(package: Path, seams: Table[object]) -> None:
    import fractions

    assert seams["flat"] is fractions.Fraction


def test_a_broken_part_of_a_package_names_the_package(package: Path, seams: Table[object]) -> None:
    with pytest.raises(InputError, match="'torn' of sewing cannot be loaded") as error:
        seams["torn"]
    assert "sewing:missing" in str(error.value.found)


def test_the_tables_import_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from largegnn.parts import TABLES\n"
        "names = [name for table in TABLES.values() for name in table if table.name_of(name)]\n"
        "assert len(names) > 20, names\n"
        "heavy = {'torch', 'polars', 'scipy', 'numba', 'faiss', 'pymetis', 'pyoxigraph', 'pydantic', 'click'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_table_stands_under_its_own_name() -> None:
    assert {name: table.name for name, table in TABLES.items()} == {name: name for name in TABLES}
