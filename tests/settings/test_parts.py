from __future__ import annotations

import pytest

from largegnn.division.partition import sbp
from largegnn.errors import InputError
from largegnn.parts import ENCODERS, PARTITIONERS
from largegnn.settings import (
    DEFAULT_LOSSES,
    DataSettings,
    DivisionSettings,
    MatchSettings,
    ReportSettings,
    SearchSettings,
    Settings,
    TrainSettings,
)


class Encoder:
    """Stands for an encoder of a user's."""


def test_a_part_is_named_by_its_name_its_address_or_itself() -> None:
    assert TrainSettings(encoder="gcn").encoder == "gcn"
    assert TrainSettings(encoder="tests.settings.test_parts:Encoder").encoder == "tests.settings.test_parts:Encoder"
    assert TrainSettings(encoder=Encoder).encoder == "tests.settings.test_parts:Encoder"  # type: ignore[arg-type]
    assert DivisionSettings(partitioner=sbp).partitioner == "sbp"  # type: ignore[arg-type]


def test_a_part_made_on_the_spot_is_known_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def divide() -> None: ...

    monkeypatch.setattr(PARTITIONERS, "_registered", {})
    settings = DivisionSettings(partitioner=divide)  # type: ignore[arg-type]
    assert settings.partitioner == "divide"
    assert PARTITIONERS.is_local("divide")
    found: object = PARTITIONERS[settings.partitioner]
    assert found is divide
    assert Settings(division=settings) == Settings.of({"division": {"partitioner": "divide"}})


def test_losses_are_named_or_given_by_address() -> None:
    weights = TrainSettings(losses={"my_module:my_loss": 0.5, "alignment": 2}).losses
    assert weights["my_module:my_loss"] == 0.5
    assert weights["alignment"] == 2
    assert weights["reconstruction"] == DEFAULT_LOSSES["reconstruction"]
    with pytest.raises(InputError, match="no loss is called 'aligment'") as error:
        TrainSettings(losses={"aligment": 1})
    assert "alignment, reconstruction" in str(error.value.expected)
    with pytest.raises(InputError, match="every loss is off"):
        TrainSettings(losses=dict.fromkeys(DEFAULT_LOSSES, 0))


def test_unknown_names_say_where_and_what_is_known() -> None:
    with pytest.raises(InputError, match="no encoder is called 'dual-amn'") as error:
        TrainSettings(encoder="dual-amn")
    assert error.value.where == "the setting train.encoder"
    assert error.value.expected == "one of dual_amn, gcn, or module:name"
    assert error.value.fix == "did you mean dual_amn?"
    with pytest.raises(InputError, match="no channel is called 'rule'") as error:
        Settings(channels=("structure", "rule"))
    assert error.value.where == "the setting channels"
    with pytest.raises(InputError, match="cannot be imported"):
        MatchSettings(scoring="no_such_module:score")


@pytest.mark.parametrize("value", [5, 1.5, None, True, b"gcn", ["gcn"], {"gcn": 1}, pytest])
def test_plain_values_are_no_parts(value: object) -> None:
    with pytest.raises(InputError, match=r"train\.encoder has an impossible value"):
        TrainSettings(encoder=value)  # type: ignore[arg-type]
    assert list(ENCODERS) == ["dual_amn", "gcn"]


def test_auto_is_allowed_where_it_is_meant() -> None:
    assert DataSettings(format="auto").format == "auto"
    assert SearchSettings(method="auto").method == "auto"
    with pytest.raises(InputError, match="no scoring is called 'auto'"):
        MatchSettings(scoring="auto")


def test_lists_of_parts() -> None:
    assert Settings(channels=["rules"]).channels == ("rules",)  # type: ignore[arg-type]
    assert Settings().plain()["channels"] == ["auto"]
    assert Settings(channels="rules, structure").channels == ("rules", "structure")  # type: ignore[arg-type]
    assert ReportSettings(pages=()).pages == ()
    with pytest.raises(InputError, match="no channel is named"):
        Settings(channels=())
    with pytest.raises(InputError, match="the channel rules is named twice"):
        Settings(channels=("rules", "structure", "rules"))
    with pytest.raises(InputError, match="channels has an impossible value"):
        Settings(channels=(5,))  # type: ignore[arg-type]
