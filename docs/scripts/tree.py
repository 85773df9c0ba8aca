"""The tree in `docs/architecture.md`, one line for each file, from the first line of its docstring: `tree.py`.

What stands between `<!-- tree -->` and `<!-- /tree -->` is made again; the text around it is written by hand.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
SOURCE = ROOT / "src" / "largegnn"
BETWEEN = re.compile(r"(?<=<!-- tree -->\n).*?(?=<!-- /tree -->)", re.DOTALL)


def render() -> str:
    """The page as it has to be."""
    rooms = sorted(path.parent for path in SOURCE.rglob("*/__init__.py"))
    blocks = [_block("largegnn/", SOURCE), *(_block(f"{room.relative_to(SOURCE).as_posix()}/", room) for room in rooms)]
    return BETWEEN.sub(lambda _: "\n" + "\n\n".join(blocks) + "\n\n", PAGE.read_text(encoding="utf-8"))


def _block(title: str, folder: Path) -> str:
    files = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
    rows = [f"| `{path.name}` | {_first_line(path)} |" for path in files]
    return "\n".join(
        [f"**`{title}`** {_first_line(folder / '__init__.py')}", "", "| file | what it is |", "|---|---|", *rows]
    )


def _first_line(path: Path) -> str:
    words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return words.split("\n", 1)[0].replace("|", r"\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
