"""All tables of swappable parts: what can be named in settings, handed over in Python, or come from another package.

Each line names where a part stands; nothing is imported until it is used. The types say what a part must be; each is
described where it is declared, and `docs/extending.md` shows one of each kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from largegnn.seams.table import Table

if TYPE_CHECKING:
    from largegnn.data.batch import Reader
    from largegnn.division.partition import Partitioner
    from largegnn.embedding.encoders import EncoderFactory
    from largegnn.embedding.losses import Loss
    from largegnn.evaluation.metrics import Measure
    from largegnn.export.info import Exporter
    from largegnn.literals.comparators import Comparator
    from largegnn.literals.encoders import TextEncoder
    from largegnn.matching.channels import Channel
    from largegnn.matching.scorings import Scoring
    from largegnn.matching.search import Searcher
    from largegnn.matching.selection import Selection
    from largegnn.review.pages import Page

__all__ = [
    "CHANNELS",
    "COMPARATORS",
    "ENCODERS",
    "EXPORTERS",
    "LOSSES",
    "MEASURES",
    "PAGES",
    "PARTITIONERS",
    "READERS",
    "SCORINGS",
    "SEARCHERS",
    "SELECTIONS",
    "TABLES",
    "TEXT_ENCODERS",
]

READERS: Table[Reader] = Table(
    "readers",
    "format",
    {
        "nt": "largegnn.data.rdf:NT",
        "nq": "largegnn.data.rdf:NQ",
        "ttl": "largegnn.data.rdf:TURTLE",
        "tsv": "largegnn.data.tables:TSV",
        "csv": "largegnn.data.tables:CSV",
        "parquet": "largegnn.data.parquet:PARQUET",
    },
)
PARTITIONERS: Table[Partitioner] = Table(
    "partitioners",
    "partitioner",
    {
        "auto": "largegnn.division.partition:auto",
        "metis": "largegnn.division.partition:metis",
        "kaminpar": "largegnn.division.partition:kaminpar",
        "kaminpar_parallel": "largegnn.division.partition:kaminpar_parallel",
        "cps": "largegnn.division.partition:cps",
        "sbp": "largegnn.division.partition:sbp",
    },
)
ENCODERS: Table[EncoderFactory] = Table(
    "encoders",
    "encoder",
    {"dual_amn": "largegnn.embedding.dual_amn:DualAMN", "gcn": "largegnn.embedding.gcn:GCN"},
)
LOSSES: Table[Loss] = Table(
    "losses",
    "loss",
    {
        "alignment": "largegnn.embedding.losses:alignment",
        "reconstruction": "largegnn.embedding.losses:reconstruction",
        "cross_subgraph": "largegnn.embedding.losses:cross_subgraph",
        "cross_subgraph_printed": "largegnn.embedding.losses:cross_subgraph_printed",
    },
)
SEARCHERS: Table[Searcher] = Table(
    "searchers",
    "searcher",
    {
        "torch": "largegnn.matching.search:torch_exact",
        "flat": "largegnn.matching.search:faiss_flat",
        "ivf": "largegnn.matching.search:faiss_ivf",
        "hnsw": "largegnn.matching.search:faiss_hnsw",
    },
)
CHANNELS: Table[Channel] = Table(
    "channels",
    "channel",
    {
        "structure": "largegnn.matching.channels:structure",
        "literals": "largegnn.matching.channels:literals",
        "rules": "largegnn.matching.channels:rules",
    },
)
COMPARATORS: Table[Comparator] = Table(
    "comparators",
    "comparator",
    {
        "name": "largegnn.literals.comparators:names",
        "text": "largegnn.literals.comparators:texts",
        "number": "largegnn.literals.comparators:numbers",
        "date": "largegnn.literals.comparators:dates",
        "code": "largegnn.literals.comparators:codes",
        "coordinate": "largegnn.literals.comparators:coordinates",
        "truth_value": "largegnn.literals.comparators:truth_values",
    },
)
TEXT_ENCODERS: Table[TextEncoder] = Table(
    "text_encoders",
    "text encoder",
    {
        "model2vec": "largegnn.literals.encoders:model2vec",
        "sentence_transformers": "largegnn.literals.encoders:sentence_transformers",
    },
)
SCORINGS: Table[Scoring] = Table(
    "scorings",
    "scoring",
    {
        "cosine": "largegnn.matching.scorings:COSINE",
        "csls": "largegnn.matching.scorings:CSLS",
        "transport": "largegnn.matching.scorings:TRANSPORT",
        "partial_transport": "largegnn.matching.scorings:PARTIAL_TRANSPORT",
        "reciprocal": "largegnn.matching.scorings:RECIPROCAL",
    },
)
SELECTIONS: Table[Selection] = Table(
    "selections",
    "selection",
    {
        "mutual_top1": "largegnn.matching.selection:mutual_top1",
        "mutual_knn": "largegnn.matching.selection:mutual_knn",
        "one_to_one": "largegnn.matching.selection:one_to_one",
        "many_to_one": "largegnn.matching.selection:many_to_one",
    },
)
MEASURES: Table[Measure] = Table(
    "measures",
    "measure",
    {
        "hits@1": "largegnn.evaluation.metrics:hits_at_1",
        "hits@5": "largegnn.evaluation.metrics:hits_at_5",
        "hits@10": "largegnn.evaluation.metrics:hits_at_10",
        "mrr": "largegnn.evaluation.metrics:mrr",
    },
)
EXPORTERS: Table[Exporter] = Table(
    "exporters",
    "export form",
    {
        "tsv": "largegnn.export.tabular:TSV",
        "parquet": "largegnn.export.tabular:PARQUET",
        "sameas": "largegnn.export.rdf:SAME_AS",
        "sssom": "largegnn.export.sssom:SSSOM",
        "alignment-api": "largegnn.export.rdf:ALIGNMENT_API",
        "rdf12": "largegnn.export.rdf:ANNOTATIONS",
        "neo4j": "largegnn.export.tabular:NEO4J",
        "quickstatements": "largegnn.export.quickstatements:QUICKSTATEMENTS",
    },
)
PAGES: Table[Page] = Table(
    "pages",
    "page",
    {
        "alignment.tsv": "largegnn.review.pages:alignment_tsv",
        "alignment.parquet": "largegnn.review.pages:alignment_parquet",
        "unmatched.tsv": "largegnn.review.pages:unmatched_tsv",
        "relations.tsv": "largegnn.review.pages:relations_tsv",
        "duplicates.tsv": "largegnn.review.pages:duplicates_tsv",
        "report.json": "largegnn.review.pages:report_json",
        "report.html": "largegnn.review.report_page:report_html",
    },
)
TABLES: dict[str, Table[Any]] = {
    table.name: table
    for table in (
        READERS,
        PARTITIONERS,
        ENCODERS,
        LOSSES,
        SEARCHERS,
        CHANNELS,
        COMPARATORS,
        TEXT_ENCODERS,
        SCORINGS,
        SELECTIONS,
        MEASURES,
        EXPORTERS,
        PAGES,
    )
}
