"""What the documents say is what the program does: pages are up to date, links lead somewhere, words agree."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

import largegnn
from lab.quickstart import commands
from largegnn.settings import Settings, WorldSettings, describe

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]


def script(name: str) -> ModuleType:
    """One of docs/scripts, as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_scripts_{name}", DOCS / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["commands_page", "settings_page"])
def test_a_generated_page_is_up_to_date(name: str) -> None:
    generator = script(name)
    assert generator.PAGE.read_text(encoding="utf-8") == generator.render(), "run `make docs`"


def test_the_readme_shows_the_commands_of_the_demo_and_five_pairs() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    demo = re.findall(
        r"^\t\$\(BIN\)/(largegnn .*)$", makefile.split("\ndemo: $(RUN_READY)")[1].split("\n\n")[0], flags=re.MULTILINE
    )
    assert commands() == demo
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    output = readme.split("<!-- output:quickstart -->")[1].split("<!-- /output -->")[0]
    assert len(re.findall(r"^  \S+ = \S+   confidence 0\.\d{3}\n    \d+ matched neighbours", output, flags=re.M)) == 5


def test_the_readme_has_its_parts_in_order() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    titles = re.findall(r"^## (.*)$", readme, flags=re.MULTILINE)
    assert titles == [
        "Install and first run",
        "What it can do",
        "How good and how fast",
        "Documents",
        "Citation",
    ]
    assert readme.index("idea.svg") < readme.index("## Install")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_that_are_there(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not link.startswith("http"):
            assert (path.parent / link).exists(), link


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_named_in_the_text_are_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:src|tests|docs|lab|examples)/[\w./-]+)`", text):
        assert (ROOT / name).exists(), name


def test_documents_for_users_are_short() -> None:
    words = {path: len(path.read_text(encoding="utf-8").split()) for path in DOCS.rglob("*.md")}
    assert sum(words.values()) <= 20_000
    assert words[DOCS / "architecture.md"] <= 1_500


def test_every_page_is_in_the_site() -> None:
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r": ([\w/-]+\.md)$", site, flags=re.MULTILINE))
    assert named == {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}


def commands_of(path: Path) -> list[list[str]]:
    """The words of every `largegnn COMMAND ...` in a page's examples."""
    blocks = re.findall(r"^```(\w*).*?\n(.*?)^```", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    lines = [line for language, block in blocks if language in ("", "sh") for line in block.splitlines()]
    found = [re.match(r"(?:[A-Z]+=\S+ )?largegnn (?=[a-z])(.*)", line) for line in lines]
    # What stands in columns of two spaces, or in brackets, is no part of the command.
    texts = [re.split(r"\s{3,}", one[1])[0] for one in found if one is not None]
    return [shlex.split(text.replace("[", " ").replace("]", " "), comments=True) for text in texts]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_options_and_settings_of_the_examples_exist(path: Path) -> None:
    commands = {name: command for name, (command, _) in script("commands_page").all_commands().items()}
    known = {setting.key for model in (Settings, WorldSettings) for setting in describe(model)}
    for name, *words in commands_of(path):
        command = commands.get(name) or commands.get(f"{name} {words[0]}")
        assert command is not None, f"largegnn {name}"
        options = {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"--help"}
        for index, word in enumerate(words):
            assert not word.startswith("--") or word in options, f"largegnn {name} {word}"
            if word == "--set" and "=" in words[index + 1]:
                key = words[index + 1].rpartition("=")[0]
                assert any(key == one or key.startswith(f"{one}.") for one in known), f"--set {key}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_of_the_examples_names_what_is_there(path: Path) -> None:
    for code in re.findall(r"```python\b[^\n]*\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id == "largegnn":
                    assert node.attr in largegnn.__all__
                elif node.value.id == "result":
                    assert hasattr(largegnn.AlignmentResult, node.attr)


def test_the_citation_names_this_version() -> None:
    assert f"\nversion: {largegnn.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
