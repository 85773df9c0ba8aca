"""Test files of names and tables of entities: their literals, the counts, and the errors."""

from __future__ import annotations

import datetime
from pathlib import Path

import polars as pl
import pytest

from largegnn import api
from largegnn.data.in_memory import as_path, as_table
from largegnn.data.inputs import DataInput
from largegnn.data.load import LoadedPair, load_pair
from largegnn.data.readers import NAME_PREDICATE, read_triples
from largegnn.errors import InputError
from largegnn.settings import DataSettings
from tests.data.literal_sets import literals_of_pair

NONE_HELD_OUT = DataSettings(valid_share=0.0)
XSD = "http://www.w3.org/2001/XMLSchema#"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


class TestNameFiles:
    def given(self, toy_folder: Path, names: Path) -> DataInput:
        return DataInput(folder=toy_folder, source_names=names)

    def test_every_form(self, toy_folder: Path, tmp_path: Path) -> None:
        frame = pl.DataFrame({"note": [1, 2, 3], "Name": ["Anna", 'B, "b"', None], "Entity": ["a", "b", "c"]})
        frame.write_parquet(tmp_path / "n.parquet")
        forms = {
            "n.tsv": 'a\tAnna\n<b>\tB, "b"\nc\t\n',
            "n": 'a\tAnna\nb\tB, "b"\n',
            "n.csv": 'id,label\na,Anna\nb,"B, ""b"""\n',
            "n.nt": '<a> <a:name> "Anna" .\n<b> <a:label> "B, \\"b\\"" .\n<a> <a:r> <b> .\n',
            "n.ttl": '<a> <a:name> "Anna" . <b> <a:name> "B, \\"b\\"" .\n',
        }
        for name, text in forms.items():
            write(tmp_path / name, text)
        for name in (*forms, "n.parquet"):
            pair = load_pair(self.given(toy_folder, tmp_path / name))
            rows = sorted(literals_of_pair(pair))
            expected = [("a", NAME_PREDICATE, "Anna", "", ""), ("b", NAME_PREDICATE, 'B, "b"', "", "")]
            assert rows == expected, name
            assert [side.dropped_literals for side in pair.summary.read] == [int(name in ("n.tsv", "n.parquet")), 0]

    def test_languages_and_several_names(self, toy_folder: Path, tmp_path: Path) -> None:
        names = write(tmp_path / "n.tsv", 'a\t"Anne"@fr\na\tAnna\na\tAnna\n')
        rows = literals_of_pair(load_pair(self.given(toy_folder, names)))
        assert sorted(rows) == [("a", NAME_PREDICATE, "Anna", "", ""), ("a", NAME_PREDICATE, "Anne", "", "fr")]

    def test_unknown_entities_are_counted_and_said(
        self, toy_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        names = write(tmp_path / "n.tsv", "a\tAnna\nnobody\tX\nnobody\tY\nnoone\tZ\n")
        pair = load_pair(self.given(toy_folder, names))
        assert (pair.summary.num_unknown_names, pair.summary.num_literals) == ((2, 0), (1, 0))
        assert "unknown" not in pair.names.entities
        assert "entities in the name files that the graphs do not mention, dropped: 2 in the source" in caplog.text

    def test_nobody_known_is_an_error(self, toy_folder: Path, tmp_path: Path) -> None:
        names = write(tmp_path / "n.tsv", "x\tAnna\ny\tY\n")
        with pytest.raises(InputError, match="no entity of the name file is in its graph") as error:
            load_pair(self.given(toy_folder, names))
        assert "x, y" in str(error.value.found)
        assert "such as a, b, c" in str(error.value.expected)
        assert load_pair(self.given(toy_folder, names), keep_literals=False).summary.num_unknown_names == (0, 0)

    def test_no_names_at_all(self, toy_folder: Path, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="holds no names"):
            load_pair(self.given(toy_folder, write(tmp_path / "n.tsv", "entity\tname\n")))
        with pytest.raises(InputError, match="wrong number of columns"):
            load_pair(self.given(toy_folder, write(tmp_path / "n.tsv", "a\tb\tc\na\tb\tc\n")))
        with pytest.raises(InputError, match="does not exist"):
            load_pair(self.given(toy_folder, tmp_path / "nowhere.tsv"))

    def test_names_of_a_folder_and_those_given_instead(self, toy_folder: Path, tmp_path: Path) -> None:
        write(toy_folder / "ent_names_1", "a\tfrom the folder\n")
        write(toy_folder / "ent_names_2", "A\tof the target\n")
        values = {row[2] for row in literals_of_pair(load_pair(DataInput(folder=toy_folder)))}
        assert values == {"from the folder", "of the target"}
        given = self.given(toy_folder, write(tmp_path / "n.tsv", "a\tgiven\n"))
        assert {row[2] for row in literals_of_pair(load_pair(given))} == {"given", "of the target"}

    def test_frames(self, tmp_path: Path) -> None:
        place = tmp_path / "source_names.parquet"
        assert as_path([["a", "Anna"]], place) == place
        assert pl.read_parquet(place).rows(named=True) == [{"entity": "a", "name": "Anna"}]


class TestTables:
    CSV = 'id,title,year,,note\n17,"Foo, bar",1999,x,\n18,Baz, ,y,"two\nlines"\n17,Foo bar,1999,x,\n19,,,,\n'

    def pair_of(self, source: Path, key: str, tmp_path: Path, form: str = "auto") -> LoadedPair:
        target = write(tmp_path / "target.tsv", "key\tname\nA\tfoo\nB\tbar\n")
        links = write(tmp_path / "links.tsv", "17\tA\n")
        settings = DataSettings(source_key=key, target_key="key", valid_share=0.0, format=form)
        return api.load(source, target, links, settings=settings)

    @pytest.mark.parametrize("key", ["id", " ID"])
    def test_rows_are_entities(self, tmp_path: Path, key: str) -> None:
        pair = self.pair_of(write(tmp_path / "s.csv", self.CSV), key, tmp_path)
        assert sorted(list(pair.names.entities)[:3]) == ["17", "18", "19"], "19 has a key alone"
        assert sorted(row[:3] for row in literals_of_pair(pair) if row[0] in "171819") == [
            ("17", "column 4", "x"),
            ("17", "title", "Foo bar"),
            ("17", "title", "Foo, bar"),
            ("17", "year", "1999"),
            ("18", "column 4", "y"),
            ("18", "note", "two\nlines"),
            ("18", "title", "Baz"),
        ]
        assert pair.summary.num_repeated_keys == (1, 0)
        assert [side.header_rows for side in pair.summary.read] == [1, 1]
        assert len(pair.task.triples) == 0

    def test_parquet_has_datatypes(self, tmp_path: Path) -> None:
        path = tmp_path / "s.parquet"
        pl.DataFrame(
            {
                "name": ["x", None],
                "no": [17, 18],
                "day": [datetime.date(2020, 1, 2), None],
                "size": [1.5, None],
                "on": [True, None],
                "all": [[1], [2]],
            }
        ).write_parquet(path)
        rows = literals_of_pair(self.pair_of(path, "no", tmp_path))
        assert sorted(row for row in rows if row[0] in ("17", "18")) == [
            ("17", "day", "2020-01-02", f"{XSD}date", ""),
            ("17", "name", "x", "", ""),
            ("17", "on", "true", f"{XSD}boolean", ""),
            ("17", "size", "1.5", f"{XSD}double", ""),
        ]
        with pytest.raises(InputError, match="holds no names"):
            self.pair_of(path, "size", tmp_path)
        pl.DataFrame({"no": ["17", None]}).write_parquet(path)
        with pytest.raises(InputError, match="key is missing") as error:
            self.pair_of(path, "no", tmp_path)
        assert error.value.where == f"{path}, row 2"

    def test_tables_without_a_suffix(self, tmp_path: Path) -> None:
        for text in ("a;b\tid\n1\t17\n", "a,id,b\n1,17,2\n"):
            assert "17" in self.pair_of(write(tmp_path / "table", text), "id", tmp_path).names.entities

    def test_what_does_not_fit(self, tmp_path: Path) -> None:
        path = write(tmp_path / "s.csv", self.CSV)
        with pytest.raises(InputError, match="no column isbn") as error:
            self.pair_of(path, "isbn", tmp_path)
        assert error.value.found == "columns id, title, year, , note"
        with pytest.raises(InputError, match="key is empty") as error:
            self.pair_of(write(tmp_path / "s.csv", "id,a\n17,x\n ,y\n"), "id", tmp_path)
        assert error.value.where == f"{path}, line 3"
        with pytest.raises(InputError, match="wrong number of columns"):
            self.pair_of(write(tmp_path / "s.csv", "id,a\n17,x\n18\n"), "id", tmp_path)
        with pytest.raises(InputError, match="a key column needs a table, and this file is nt"):
            self.pair_of(write(tmp_path / "s.nt", "<a> <b> <c> .\n"), "id", tmp_path)
        with pytest.raises(InputError, match="file is empty"):
            self.pair_of(write(tmp_path / "s.csv", "\n\n"), "id", tmp_path)

    def test_without_literals_a_table_is_nothing(self, tmp_path: Path) -> None:
        source, target = write(tmp_path / "s.csv", self.CSV), write(tmp_path / "t.csv", self.CSV.replace("1", "2"))
        given = DataInput(source=source, target=target, seeds=write(tmp_path / "l.tsv", "17\t27\n"))
        with pytest.raises(InputError, match="no triples between entities") as error:
            load_pair(given, DataSettings(source_key="id", target_key="id"), keep_literals=False)
        assert error.value.found == "a table of 3 rows"

    def test_frames_keep_their_columns(self, tmp_path: Path) -> None:
        place = tmp_path / "source.parquet"
        frame = pl.DataFrame({"id": [1], "title": ["x"], "year": [None]}, schema_overrides={"year": pl.Int64})
        assert as_table(frame, place) == place
        assert pl.read_parquet(place).equals(frame)
        assert (as_table(None, place), as_table("a.csv", place)) == (None, Path("a.csv"))


class TestTablesWithoutAKey:
    MANY = "".join(f"978-{number},Title {number},{1900 + number % 90}\n" for number in range(30))

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("s.csv", "id,title,year,note\n17,Foo,1999,\n18,Bar,2000,x\n"),
            ("s.tsv", "Product No.\tname\tprice\tmaker\tx\n1\ta\t2\tb\t\n"),
            ("s.csv", "id,name\n1,a\n2,b\n"),
            ("s.csv", "id,title,year\n17,Foo,1999\n17,Bar,\n"),
            ("s.csv", "isbn10,title,year\n" + MANY),
        ],
    )
    def test_the_flag_is_named(self, tmp_path: Path, name: str, text: str) -> None:
        target, links = write(tmp_path / "t.tsv", "A\tr\tB\n"), write(tmp_path / "l.tsv", "a\tA\n")
        with pytest.raises(InputError, match="a table with a row for each entity") as error:
            api.load(write(tmp_path / name, text), target, links)
        first = text.split("\t" if name == "s.tsv" else ",")[0]
        assert f"--source-key {first}" in str(error.value.fix)
        assert f"columns {first}, " in str(error.value.found)

    @pytest.mark.parametrize(
        "text",
        [
            "a,r,b\nb,s,c\nc,t,d\n",
            "id,r,b\nb,r,c\nc,r,d\n",
            "id,name,x\nid,type,y\n",
            "head,relation,tail,graph\na,r,b,g\na,s,c,g\n",
        ],
    )
    def test_triples_are_triples(self, tmp_path: Path, text: str) -> None:
        batches = list(read_triples(write(tmp_path / "s.csv", text)))
        assert sum(len(batch.heads) for batch in batches) >= 2

    def test_a_bad_first_line_is_still_a_bad_line(self, tmp_path: Path) -> None:
        path = write(tmp_path / "s.csv", "one,two,three,four\na,r,b\nb,r,c\n")
        with pytest.raises(InputError, match="wrong number of columns"):
            api.load(path, write(tmp_path / "t.tsv", "A\tr\tB\n"), write(tmp_path / "l.tsv", "a\tA\n"))

    def test_parquet_says_it_too(self, tmp_path: Path) -> None:
        path = tmp_path / "s.parquet"
        pl.DataFrame({"id": [1], "title": ["x"]}).write_parquet(path)
        with pytest.raises(InputError, match="columns needed") as error:
            api.load(path, write(tmp_path / "t.tsv", "A\tr\tB\n"), write(tmp_path / "l.tsv", "a\tA\n"))
        assert "--source-key" in str(error.value.fix)
