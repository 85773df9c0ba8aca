"""From polars frames to a frame, all in memory: align two small tables of triples and explain one pair.

Columns are told by their names (`head`, `relation`, `tail`; `source`, `target`) or taken from left to right; arrays and
lists of rows do as well.
"""

from __future__ import annotations

import polars as pl

import largegnn
from largegnn.settings import TrainSettings


def family(people: int, prefix: str, parent: str, spouse: str) -> pl.DataFrame:
    """Triples of a made-up family, as a register with so many people knows it."""
    parents = [(i, parent, i // 3) for i in range(1, people)]
    spouses = [(i, spouse, (i * i + 7) % 300) for i in range(people)]
    triples = [(f"{prefix}{one}", what, f"{prefix}{other}") for one, what, other in parents + spouses if other < people]
    return pl.DataFrame(triples, schema=["head", "relation", "tail"], orient="row")


def main() -> None:
    """Align the same family as two registers know it."""
    source = family(300, "en:", "has parent", "married to")
    target = family(280, "fr:", "a pour parent", "conjoint de")  # it lacks the youngest twenty
    known = pl.DataFrame({"source": [f"en:{i}" for i in range(0, 240, 2)]})
    known = known.with_columns(target=pl.col("source").str.replace("en:", "fr:"))

    # A quarter of the known links is held back: by them the confidence is calibrated.
    settings = largegnn.Settings(data=largegnn.DataSettings(valid_share=0.25), train=TrainSettings(dim=32, epochs=10))
    result = largegnn.align(source, target, known, settings=settings)

    pairs = result.pairs.sort("confidence", descending=True)
    print(pairs.select("source", "target", "confidence", "margin").head(5))

    # Why are these two the same? Because of whom they are related to.
    best = pairs["source"][0]
    why = result.explain(best)[0]
    print(f"{why['source']} = {why['target']}: cosine {why['cosine']:.2f}, confidence {why['confidence']:.2f}")
    for one, other in why["matched_neighbors"]:
        print(f"  because of {one} = {other}")
    print(result.neighbors(best).head(3))

    # Links that come to be known later measure it.
    truth = pl.DataFrame({"source": [f"en:{i}" for i in range(1, 280, 2)]})
    truth = truth.with_columns(target=pl.col("source").str.replace("en:", "fr:"))
    figures = result.evaluate(truth)
    print(", ".join(f"{name} {value:.2f}" for name, value in figures.items() if value is not None))


if __name__ == "__main__":
    main()
