"""Write `docs/reference/settings.md` from the settings themselves.

In: every setting with its default, allowed values and meaning. Out: a page with one table for each section.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from largegnn.cli.options import FLAGS
from largegnn.settings import (
    PRESETS,
    WORLD_PRESETS,
    Section,
    SettingInfo,
    Settings,
    WorldSettings,
    describe,
    toml_value,
)

PAGE = Path(__file__).parents[1] / "reference" / "settings.md"
FLAG_OF_KEY = {key: flag for flag, key in FLAGS.items()}
MAX_DEFAULT_CHARS = 90
HEAD = """# Settings

`make docs` writes this page from the program; `largegnn config > settings.toml` writes the same as a file to edit.

Later ones win: the defaults, `--preset NAME`, `--config FILE`, `--set section.key=value`, an option of its own such as
`--rounds`. A run folder keeps all settings in `config.toml`. In Python: `Settings(...)`, or a mapping such as
`{"train.epochs": 10}`. An unknown key or a wrong value is refused with what is allowed.
"""


def render() -> str:
    """The page as it has to be."""
    blocks = [HEAD, "## Presets\n\n" + _presets(PRESETS)]
    sections: dict[str, list[SettingInfo]] = {}
    for setting in describe(Settings):
        section, _, _ = setting.key.rpartition(".")
        sections.setdefault(section, []).append(setting)
    for section, settings in sections.items():
        model = Settings.model_fields[section].annotation if section else None
        title = f"## {section}\n\n{_about(model)}" if section else "## Of the whole run"
        blocks.append(f"{title}\n\n{_table(settings)}")
    blocks.append(
        "## Of `largegnn generate`\n\nA file of its own, or `--set key=value`. Presets: "
        + ", ".join(f"`{name}`" for name in WORLD_PRESETS)
        + ".\n\n"
        + _table(describe(WorldSettings))
    )
    return "\n\n".join(block.strip() for block in blocks) + "\n"


def _table(settings: Iterable[SettingInfo]) -> str:
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for setting in settings:
        flag = f"<br>`{FLAG_OF_KEY[setting.key]}`" if setting.key in FLAG_OF_KEY else ""
        default = toml_value(setting.default).replace("|", r"\|")
        default = "a list" if len(default) > MAX_DEFAULT_CHARS else f"`{default}`"
        names = _values(setting)
        rows.append(f"| `{setting.key}`{flag} | {default} | {_cell(setting.help)}{names} |")
    return "\n".join(rows)


def _values(setting: SettingInfo) -> str:
    """The values a setting may have, where its help does not name all of them."""
    if not setting.allowed.startswith("one of "):
        return ""
    values = setting.allowed.removeprefix("one of ")
    known = all(value in f"{setting.help} {setting.default}" for value in values.split(", ") if value[:2] != "or")
    return "" if known else f" One of: {_cell(values)}."


def _presets(presets: dict[str, dict[str, Any]]) -> str:
    rows = ["| preset | sets |", "|---|---|"]
    for name, values in presets.items():
        rows.append(f"| `{name}` | {', '.join(f'`{key} = {toml_value(value)}`' for key, value in _flat(values))} |")
    return "\n".join(rows)


def _flat(values: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _about(model: Any) -> str:
    assert issubclass(model, Section)
    return " ".join((model.__doc__ or "").split())


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
