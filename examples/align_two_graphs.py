"""From the files of two graphs to an alignment in files, kept in a run folder.

Two graphs and their links are generated; with graphs of your own start at `largegnn.align`. Files may be N-Triples,
Turtle, TSV, CSV or Parquet, compressed or not. Seeds are the links you know; test links are for measuring alone.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import largegnn
from largegnn.settings import WorldSettings


def main() -> None:
    """Align two N-Triples files and write what was found."""
    with tempfile.TemporaryDirectory() as scratch:
        data, run = Path(scratch) / "data", Path(scratch) / "run"
        world = WorldSettings(
            source_entities=500,
            target_entities=450,
            links=400,
            source_triples=2_400,
            target_triples=2_200,
            missing=0.05,
        )
        largegnn.generate(world, folder=data, form="nt", compression="gzip")

        # Few and short epochs: this is an example. Leave `settings` out for the defaults.
        settings = {"train.dim": 32, "train.epochs": 8, "train.repartition_every": 0}
        result = largegnn.align(
            data / "source.nt.gz",
            data / "target.nt.gz",
            data / "train_links.nt.gz",
            valid_links=data / "valid_links.nt.gz",
            test_links=data / "test_links.nt.gz",
            out=run,  # an interrupted run is resumed when it is called again
            settings=settings,
        )

        # The valid links say what to expect of the pairs, the test links measure what became of it.
        print(result.pairs.select("source", "target", "confidence").head(3))
        summary = result.summary
        assert summary.match is not None
        print(f"{len(result.pairs)} pairs. {summary.match.sentence()}")
        assert summary.evaluation is not None
        assert summary.evaluation.real is not None
        accepted = summary.evaluation.real["accepted"]
        print(f"By the test links: precision {accepted.precision:.2f}, recall {accepted.recall:.2f}")
        print(result.unmatched.group_by("reason").len())

        # Any of these can also be written later: `largegnn export RUN --form sameas --form sssom`.
        print(result.export("sameas", run / "sameas.nt"), "owl:sameAs links")
        print(result.export("sssom", run / "alignment.sssom.tsv"), "SSSOM mappings")
        print(result.export("embeddings-safetensors", run / "embeddings.safetensors"), "vectors")

        # A finished run can be opened without its input.
        assert largegnn.open_run(run).pairs.equals(result.pairs)


if __name__ == "__main__":
    main()
