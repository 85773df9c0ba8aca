"""The plain setting beside the paper's: what departs is bold, what is the paper's or open is not."""

from __future__ import annotations

from lab import CONFIGS, RESULTS
from lab.departures import departures_section
from lab.records import read_results
from lab.systems import PLAIN, SYSTEMS, read_systems

SYSTEMS_THERE = read_systems(CONFIGS)


def rows() -> dict[str, dict[str, str]]:
    """The table: by setting, then by column."""
    section = departures_section(SYSTEMS_THERE, read_results(RESULTS))
    head, _, *lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines()]
    return {line[0].split("`")[1]: dict(zip(head, line, strict=True)) for line in lines}


def test_what_departs_is_bold_by_hand() -> None:
    found = rows()
    both = "EN_FR_15K_V1, EN_DE_15K_V1"
    assert found["train.dim"] == {
        "setting": "dimension, `train.dim`",
        "the paper": "128",
        both: "128",
        "ContEA_FR_EN": "128",
        "DEBIAN_FILES_1M": "**64**",
        "dbpedia1m": "**64**",
        "the paper's way": "LargeGNN, d = 128",
    }
    caps = [found["landmarks.cap"][name] for name in (both, "ContEA_FR_EN", "dbpedia1m")]
    assert caps == ["7,500", "**30,000**", "90,000"]
    assert found["train.epochs"]["the paper"] == "not named"
    assert found["train.epochs"]["dbpedia1m"] == "10"
    assert found["train.losses.cross_subgraph"][both] == "**0.6, our form**"


def test_only_sets_with_records_have_a_column() -> None:
    some = [record for record in read_results(RESULTS) if record.dataset == "EN_DE_15K_V1"]
    head = departures_section(SYSTEMS_THERE, some).splitlines()[0]
    assert head.count("|") == 5
    assert "EN_DE_15K_V1" in head


def test_whoever_goes_the_papers_way_is_a_system_with_that_setting_alone() -> None:
    for key, row in rows().items():
        name = row["the paper's way"]
        if name != "–":
            assert name in SYSTEMS
            for system in (one for one in SYSTEMS_THERE if one.name == name):
                plain = next(one for one in SYSTEMS_THERE if (one.dataset, one.name) == (system.dataset, PLAIN))
                section, _, setting = key.rpartition(".")
                if section == "train":
                    expected = plain.settings.train.model_copy(
                        update={setting: getattr(system.settings.train, setting)}
                    )
                    assert system.settings.train == expected
                    assert system.settings.train != plain.settings.train
