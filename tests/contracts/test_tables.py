"""What every table of swappable parts keeps: addresses that exist, names that are their parts' own."""

from __future__ import annotations

from typing import Any

import pytest

from largegnn import parts
from largegnn.errors import InputError
from largegnn.parts import TABLES, Table

ENTRIES = [(table, name) for table in TABLES.values() for name in list(table)]
every_entry = pytest.mark.parametrize(
    ("table", "name"), ENTRIES, ids=[f"{table.name}-{name}" for table, name in ENTRIES]
)
every_table = pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))


@every_entry
def test_every_declared_address_can_be_imported(table: Table[Any], name: str) -> None:
    part = table[name]
    assert part is not None
    assert part is table[name], "the same every time"


@every_entry
def test_a_part_is_known_by_its_own_name(table: Table[Any], name: str) -> None:
    assert table.name_of(table[name]) == name
    assert not table.is_local(name), "another process knows it too"


@every_entry
def test_a_name_can_stand_in_settings_and_on_the_command_line(table: Table[Any], name: str) -> None:
    assert name == name.strip().lower()
    assert not set(name) & set(":,=; \"'[]{}")


@every_table
def test_an_unknown_name_gets_those_there_are(table: Table[Any]) -> None:
    with pytest.raises(InputError) as error:
        table["nonsense"]
    assert f"no {table.kind} is called 'nonsense'" in str(error.value)
    for name in list(table):
        assert name in str(error.value)
    near = next(iter(table)) + "x"
    with pytest.raises(InputError, match=f"did you mean .*{next(iter(table))}"):
        table[near]


def test_every_table_is_listed_once_under_its_own_name() -> None:
    declared = {name: value for name, value in vars(parts).items() if isinstance(value, Table)}
    assert {table.name for table in declared.values()} == TABLES.keys()
    for constant, table in declared.items():
        assert constant == table.name.upper()
        assert TABLES[table.name] is table
        assert list(table), "a table without entries is useless"
