"""From the files of two graphs to an alignment in files, kept in a run folder.

Two graphs and their links are made up here; with graphs of your own start at `largegnn.align`. Files may be N-Triples,
Turtle, TSV, CSV or Parquet, packed or not; seeds are the links you know, test links only measure.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import largegnn
from largegnn.settings import TrainSettings


def main() -> None:
    """Align two N-Triples files and write what was found."""
    with tempfile.TemporaryDirectory() as scratch:
        data, run = Path(scratch) / "data", Path(scratch) / "run"
        world = largegnn.WorldSettings(
            source_entities=500,
            target_entities=450,
            links=400,
            source_triples=2_400,
            target_triples=2_200,
            missing=0.05,
        )
        largegnn.generate(world, folder=data, form="nt", packing="gzip")

        # Few and short epochs: this is an example. Leave `settings` out for the defaults.
        settings = largegnn.Settings(train=TrainSettings(dim=32, epochs=8, repartition_every=0))
        result = largegnn.align(
            data / "source.nt.gz",
            data / "target.nt.gz",
            data / "train_links.nt.gz",
            valid_links=data / "valid_links.nt.gz",
            test_links=data / "test_links.nt.gz",
            out=run,  # an interrupted run goes on when it is called again
            settings=settings,
        )

        # What to expect of the pairs is learnt from the valid links, what became of it is measured by the test links.
        print(result.pairs.select("source", "target", "confidence").head(3))
        measured = result.report["real"]["threshold"]
        print(f"{len(result.pairs)} pairs, expected precision {result.report['threshold']['expected_precision']:.2f}")
        print(f"by the test links: precision {measured['precision']:.2f}, recall {measured['recall']:.2f}")
        print(result.left_out.group_by("reason").len())

        # Any of these can also be written later: `largegnn export RUN --form sameas --form sssom`.
        print(result.to_sameas(run / "sameas.nt"), "owl:sameAs links")
        print(result.to_sssom(run / "alignment.sssom.tsv"), "SSSOM mappings")
        print(result.to_embeddings(run / "embeddings.safetensors"), "vectors")

        # A finished run is opened again without its input.
        assert largegnn.open_run(run).pairs.equals(result.pairs)


if __name__ == "__main__":
    main()
