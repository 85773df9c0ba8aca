"""From polars frames to a frame: align two small tables of triples and explain one pair.

Columns are found by their names (`head`, `relation`, `tail`; `source`, `target`), else taken from left to right. Arrays
and lists of rows will do as well. Without `out` the run has a temporary folder; `result.save(folder)` keeps it.
"""

from __future__ import annotations

import polars as pl

import largegnn


def family(people: int, prefix: str, parent: str, spouse: str) -> pl.DataFrame:
    """Return the triples of a synthetic family with this many people."""
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

    # A quarter of the known links are held out as valid links: they calibrate the confidence.
    settings = {"data.valid_share": 0.25, "train.dim": 32, "train.epochs": 10}
    result = largegnn.align(source, target, known, settings=settings)

    pairs = result.pairs.sort("confidence", descending=True)
    print(pairs.select("source", "target", "confidence", "margin").head(5))

    # Why are these two the same? Because of whom they are related to.
    best = pairs["source"][0]
    why = result.explain(best).candidates[0]
    print(f"{why.source} = {why.target}: cosine {why.evidence['cosine']:.2f}, confidence {why.confidence:.2f}")
    for near in why.matched_neighbors:
        print(f"  because of {near.source} = {near.target}, by {', '.join(near.source_relations)}")
    print(result.nearest(best).head(3))

    # Measure by links that were not given.
    truth = pl.DataFrame({"source": [f"en:{i}" for i in range(1, 280, 2)]})
    truth = truth.with_columns(target=pl.col("source").str.replace("en:", "fr:"))
    figures = result.evaluate(truth)
    print(f"precision {figures.partial_precision:.2f} of {figures.judged} judged pairs, recall {figures.recall:.2f}")


if __name__ == "__main__":
    main()
