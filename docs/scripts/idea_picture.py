"""`docs/figures/idea.svg`, the idea in four panels: `idea_picture.py`.

Two graphs with a few seeds; merged at the seeds and divided, with a landmark recalled; trained into one space;
candidates with evidence, and one decision. Colours follow the reader's light or dark mode, background included, so
that the picture reads on any page. Sides differ in shape as well as in colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

PICTURE = Path(__file__).parents[1] / "figures" / "idea.svg"
WIDTH, HEIGHT = 1160, 324
STYLE = """
  svg { --paper: #ffffff; --ink: #1f2933; --soft: #6b7785; --line: #aab4bf; --one: #1f6fb4; --two: #c2571a;
        --part: #eef3f8; --edge: #c5d0da; --good: #1d7a46; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #14181d; --ink: #e6ebf0; --soft: #9aa7b4; --line: #5b6773; --one: #6db3f2; --two: #f0975b;
          --part: #1f262d; --edge: #3a4651; --good: #63c98d; }
  }
  .paper { fill: var(--paper); }
  .part { fill: var(--part); stroke: var(--edge); }
  text { fill: var(--ink); font: 15px system-ui, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif; }
  .title { font-weight: 600; font-size: 16px; }
  .soft { fill: var(--soft); font-size: 14px; }
  .good { fill: var(--good); font-weight: 600; }
  .end { text-anchor: end; }
  .middle { text-anchor: middle; }
  .triple { stroke: var(--line); stroke-width: 1.6; fill: none; }
  .seed { stroke: var(--good); stroke-width: 2; stroke-dasharray: 5 4; fill: none; }
  .one { fill: var(--one); }
  .two { fill: var(--two); }
  .recalled { fill: none; stroke: var(--good); stroke-width: 2; }
  .near { fill: none; stroke: var(--soft); stroke-dasharray: 3 3; }
  .arrow { stroke: var(--soft); stroke-width: 2; fill: none; }
  .head { fill: var(--soft); }
"""
Point = tuple[float, float]


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Words at a point."""
    return f'<text x="{x:g}" y="{y:g}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{words}</text>'


def line(start: Point, end: Point, kind: str) -> str:
    """A straight line."""
    return f'<path class="{kind}" d="M{start[0]:g} {start[1]:g}L{end[0]:g} {end[1]:g}"/>'


def source(x: float, y: float) -> str:
    """An entity of the source: a disc."""
    return f'<circle class="one" cx="{x:g}" cy="{y:g}" r="7"/>'


def target(x: float, y: float) -> str:
    """An entity of the target: a square."""
    return f'<rect class="two" x="{x - 6.5:g}" y="{y - 6.5:g}" width="13" height="13" rx="2"/>'


def both(x: float, y: float) -> str:
    """Two ends of a seed as one node: half a disc, half a square."""
    left = f'<path class="one" d="M{x:g} {y - 8:g}A8 8 0 0 0 {x:g} {y + 8:g}Z"/>'
    return left + f'<rect class="two" x="{x:g}" y="{y - 8:g}" width="8" height="16" rx="2"/>'


def lines(points: Sequence[Point], pairs: Iterable[tuple[int, int]], kind: str) -> str:
    """Lines between numbered points."""
    return "".join(line(points[a], points[b], kind) for a, b in pairs)


def arrow(x: float) -> str:
    """From one panel to the next."""
    return line((x - 10, 180), (x + 4, 180), "arrow") + f'<path class="head" d="M{x + 3:g} 174l9 6l-9 6z"/>'


def two_graphs() -> str:
    """Panel 1: two graphs, two seeds."""
    ones = [(48, 112), (104, 98), (152, 136), (76, 158), (196, 104), (206, 158)]
    twos = [(72, 226), (44, 274), (158, 222), (104, 278), (152, 266), (206, 252)]
    return "".join(
        (
            lines(ones, [(0, 1), (0, 3), (1, 3), (1, 2), (2, 4), (2, 5), (4, 5)], "triple"),
            lines(twos, [(0, 1), (0, 3), (1, 3), (3, 4), (2, 4), (2, 5)], "triple"),
            line(ones[3], twos[0], "seed"),
            line(ones[2], twos[2], "seed"),
            "".join(source(*point) for point in ones),
            "".join(target(*point) for point in twos),
            text(220, 136, "source", "soft"),
            text(222, 258, "target", "soft"),
            text(92, 198, "seeds", "good"),
        )
    )


def divided() -> str:
    """Panel 2: the same merged at the seeds, two parts, one landmark recalled into the first."""
    nodes = [(346, 128), (402, 120), (374, 172), (346, 234), (392, 230), (420, 190)]
    nodes += [(478, 124), (532, 140), (496, 178), (538, 214), (486, 238)]
    inner = [(0, 1), (0, 2), (1, 2), (2, 3), (2, 4), (3, 4), (4, 5), (6, 8), (7, 8), (6, 7), (8, 9), (8, 10)]
    recalled = nodes[5]
    return "".join(
        (
            '<rect class="part" x="320" y="96" width="118" height="166" rx="14"/>',
            '<rect class="part" x="446" y="96" width="118" height="166" rx="14"/>',
            lines(nodes, inner, "triple"),
            line(nodes[10], recalled, "near"),
            f'<circle class="recalled" cx="{recalled[0]}" cy="{recalled[1]}" r="12"/>',
            "".join(source(*nodes[node]) for node in (0, 1, 6, 7)),
            "".join(target(*nodes[node]) for node in (3, 4, 5, 9, 10)),
            both(*nodes[2]) + both(*nodes[8]),
            text(379, 284, "part", "soft middle"),
            text(505, 284, "part", "soft middle"),
            text(442, 304, "landmark, recalled", "good middle"),
        )
    )


def one_space() -> str:
    """Panel 3: counterparts lie near each other."""
    pairs = [((640, 132), (660, 142)), ((724, 130), (744, 138)), ((668, 206), (686, 196)), ((756, 190), (768, 208))]
    alone = [(704, 248), (648, 252)]
    parts = [
        '<rect class="part" x="610" y="96" width="190" height="186" rx="14"/>',
        *(
            f'<circle class="near" cx="{(a[0] + b[0]) / 2:g}" cy="{(a[1] + b[1]) / 2:g}" r="24"/>'
            + source(*a)
            + target(*b)
            for a, b in pairs
        ),
        target(*alone[0]),
        source(*alone[1]),
        text(705, 304, "near = alike", "soft middle"),
    ]
    return "".join(parts)


def decision() -> str:
    """Panel 4: candidates with evidence, accepted or unmatched."""
    rows = [(128, ".97", "3 neighbours match"), (172, ".91", "2 neighbours match"), (216, ".52", "near, no neighbour")]
    parts = []
    for y, sure, why in rows:
        parts.append(source(866, y - 5) + text(880, y, "=") + target(904, y - 5))
        parts.append(text(958, y, sure, "good end") + text(972, y, why, "soft"))
    parts.append(source(866, 255) + text(884, 260, "unmatched: no mutual candidate", "soft"))
    parts.append(text(866, 304, "accepted above the threshold", "soft"))
    return "".join(parts)


def render() -> str:
    """The whole picture."""
    titles = [
        (30, "1. Two graphs,", "a few known links"),
        (320, "2. Merge at the seeds,", "divide, recall landmarks"),
        (610, "3. Train one network", "subgraph by subgraph"),
        (850, "4. Candidates, evidence,", "one decision"),
    ]
    label = "Two graphs are merged at known links and divided; one network is trained; pairs get confidence and reason."
    body = "".join(text(x, 40, first, "title") + text(x, 62, second, "title") for x, first, second in titles)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">\n'
        f"<style>{STYLE}</style>\n"
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="12"/>\n'
        f"{body}\n{two_graphs()}\n{divided()}\n{one_space()}\n{decision()}\n{arrow(286)}{arrow(590)}{arrow(826)}\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(render(), encoding="utf-8")
