"""Declare all settings of a run, in sections; each section names the step that uses it.

The descriptions become the help of the command line and the reference. Every number has both bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from largegnn.artifacts import SeedsFrom
from largegnn.parts import ENCODERS, PARTITIONERS, READERS, SCORINGS, SEARCHERS, address_of
from largegnn.settings.parts import NamesOf, PartOf, WeightsOf
from largegnn.settings.section import MemoryGB, Section, Share, Weight

__all__ = [
    "CHANNELS",
    "DEFAULT_LOSSES",
    "LOSSES",
    "MEASURES",
    "PAGES",
    "STEPS",
    "ClusterSettings",
    "CompareSettings",
    "DataSettings",
    "DivisionSettings",
    "EvaluateSettings",
    "IntegrateSettings",
    "LandmarkSettings",
    "MatchSettings",
    "ProtocolSettings",
    "ReportSettings",
    "RoundSettings",
    "SearchSettings",
    "Settings",
    "TrainSettings",
]


class DataSettings(Section):
    """How files become an alignment task (step `load`)."""

    format: Annotated[str, PartOf(READERS, "auto")] = Field(
        "auto", description="Format of the two triple files. auto: by name and content."
    )
    layout: Literal["auto", "openea", "dbpedia1m", "dbp15k", "pair"] = Field(
        "auto", description="Layout of a data set folder. auto: by the files in it."
    )
    fold: int = Field(1, ge=1, le=1_000, description="Fold of an OpenEA folder.")
    valid_share: Share | Literal["auto"] = Field(
        "auto",
        description="Share of seeds held out as valid links if none are given. auto: a tenth, a third of few.",
    )
    source_key: str = Field(
        "", max_length=1_000, description="Key column of a source that is a table of entities. Empty: a triple file."
    )
    target_key: str = Field(
        "", max_length=1_000, description="Key column of a target that is a table of entities. Empty: a triple file."
    )
    skip_unknown: bool = Field(
        False, description="Skip seeds with an entity that is in neither graph. false: such a seed is an error."
    )


class ProtocolSettings(Section):
    """What training may see (every step from `merge` on)."""

    seeds_from: SeedsFrom = Field(
        "train", description="Links used as seeds. train+valid is how the paper's tables were made."
    )


class CompareSettings(Section):
    """How names and values are compared (step `literals`)."""

    k: int = Field(10, ge=1, le=1_000, description="Nearest texts of the other side that become candidates.")
    identifiers: Literal["auto", "off"] = Field(
        "auto", description="Names from IRIs for entities without another. auto: where IRIs are words, not opaque ids."
    )
    text_encoder: Annotated[str, BeforeValidator(address_of)] = Field(
        "off",
        min_length=1,
        max_length=1_000,
        description="Texts as vectors: model2vec, sentence_transformers, module:function. off: compare letters alone.",
    )
    text_model: str = Field("", max_length=4_096, description="Folder of the text encoder's model.")
    odds_weight: float = Field(
        0.02, ge=0, le=1, description="Weight of the log odds of values in the similarity of a pair."
    )


class DivisionSettings(Section):
    """How the merged graph is divided (step `partition`)."""

    partitioner: Annotated[str, PartOf(PARTITIONERS)] = Field(
        "auto",
        description="auto: KaMinPar, or METIS without it. metis: the paper's. cps: LargeEA's. sbp: LIME's.",
    )
    parts: Annotated[int, Field(ge=1, le=100_000)] | Literal["auto"] = Field(
        "auto", description="Number of subgraphs. auto: by the size of the graph and the memory of the device."
    )


class LandmarkSettings(Section):
    """Which entities are recalled into the parts they connect (step `landmarks`)."""

    enabled: bool = Field(True, description="Recall landmarks. false: the paper's `w/o CLG`.")
    cap: Annotated[int, Field(ge=1, le=1_000_000_000)] | Literal["auto"] = Field(
        "auto",
        description="Maximum size of a subgraph, landmarks included. auto: a quarter above an even share.",
    )
    eta: float = Field(0.001, ge=1e-9, le=1, description="Smoothing of the importance of an entity near a seed.")
    decay: float = Field(0.01, ge=1e-9, le=1, description="Factor on the importance of an entity for each hop.")
    hops: int = Field(2, ge=1, le=2, description="Greatest distance of a landmark from its part.")


# Paper: reconstruction is ER, cross_subgraph is CNS.
LOSSES = ("alignment", "reconstruction", "cross_subgraph", "cross_subgraph_printed")
DEFAULT_LOSSES = {"alignment": 1.0, "reconstruction": 20.0, "cross_subgraph": 0.6}
EpochCount = Annotated[int, Field(ge=1, le=10_000)]
NodeCount = Annotated[int, Field(ge=0, le=1_000_000)]


class TrainSettings(Section):
    """How the encoder is trained over the subgraphs (step `train`)."""

    encoder: Annotated[str, PartOf(ENCODERS)] = Field("dual_amn", description="The graph neural network.")
    dim: int = Field(
        64,
        ge=1,
        le=4_096,
        description="Dimension of an input vector. 128 is slightly better and takes twice the time.",
    )
    epochs: EpochCount = Field(25, description="Passes over the subgraphs.")
    batch_size: int = Field(512, ge=1, le=1_000_000, description="Seeds in a training step.")
    negatives: NodeCount = Field(2_000, description="Negatives of a seed, drawn from its subgraph. 0: all nodes.")
    learning_rate: float = Field(0.005, ge=1e-8, le=1, description="Learning rate of RMSprop at the start.")
    schedule: Literal["cosine", "constant"] = Field(
        "cosine", description="Learning rate schedule. cosine: it falls to 0 along a cosine. constant: it stays."
    )
    losses: Annotated[Mapping[str, Weight], WeightsOf("loss", LOSSES, DEFAULT_LOSSES, 10_000)] = Field(
        DEFAULT_LOSSES, description="Weight of each loss. 0: off. A loss that is not named keeps its default."
    )
    gamma: float = Field(1.0, ge=0, le=100, description="Margin of the alignment loss.")
    scale: float = Field(30.0, ge=0.01, le=1_000, description="How much more hard negatives count (lambda).")
    shift: float = Field(10.0, ge=0, le=1_000, description="Shift of the alignment loss (tau).")
    dropout: Share = Field(0.3, description="Dropout of the encoder's output.")
    reconstruction_dropout: Share = Field(0.3, description="Dropout of the input vector in reconstruction.")
    cross_gamma: float = Field(0.0, ge=0, le=100, description="Margin of the cross-subgraph loss.")
    cross_negatives: int = Field(
        1_000, ge=1, le=1_000_000, description="Entities outside the subgraph drawn in a training step."
    )
    repartition_every: int = Field(
        2, ge=0, le=10_000, description="Epochs between repartitionings, which run in the background. 0: never."
    )
    members: int = Field(
        1,
        ge=1,
        le=20,
        description="Models trained one after the other, each with its own divisions; their cosines are added.",
    )
    validate_every: EpochCount = Field(
        5, description="Epochs between evaluations on the valid links. The best of these epochs is kept."
    )
    checkpoint_seconds: float = Field(
        60.0,
        ge=0,
        le=86_400,
        description="Minimum seconds between checkpoints, written at the end of an epoch.",
    )
    max_memory_gb: MemoryGB = Field(4.0, description="Memory in GB for chunks and caches.")
    precision: Literal["float32", "tf32"] = Field(
        "float32", description="Precision of matrix products on a GPU. tf32 is faster."
    )
    step: Literal["auto", "plain"] = Field(
        "auto", description="Training step on a GPU. auto: captured and fused where possible. plain: as on a CPU."
    )
    tables: Literal["auto", "device", "host", "file"] = Field(
        "auto",
        description="Where entity vectors and optimiser state lie. file: in the run folder. auto: where there is room.",
    )

    @property
    def memory_bytes(self) -> int:
        """Bytes that chunks and caches may take."""
        return int(self.max_memory_gb * 2**30)


class IntegrateSettings(Section):
    """How every entity gets one vector (step `integrate`)."""

    method: Literal["full", "average", "plain_average"] = Field(
        "full",
        description="full: whole graph encoded. average: mean over subgraphs by neighbours. plain_average: all alike.",
    )


class RoundSettings(Section):
    """Self-training: confident pairs become pseudo-seeds of further training (step `rounds`)."""

    number: int = Field(0, ge=0, le=20, description="Number of self-training rounds. 0: none.")
    epochs: EpochCount = Field(10, description="Epochs of a self-training round.")
    min_confidence: float = Field(0.5, ge=0, le=1, description="Minimum confidence of a pseudo-seed.")


CHANNELS = ("structure", "literals", "rules")
MEASURES = ("hits@1", "hits@5", "hits@10", "mrr")
PAGES = (
    "alignment.tsv",
    "alignment.parquet",
    "unmatched.tsv",
    "relations.tsv",
    "duplicates.tsv",
    "report.json",
    "report.html",
)
NeighborCount = Annotated[int, Field(ge=1, le=10_000)]
DEFAULT_WEIGHTS = {"support": 0.3}


class SearchSettings(Section):
    """How the nearest entities of the other graph are found (step `search`)."""

    method: Annotated[str, PartOf(SEARCHERS, "auto")] = Field(
        "auto", description="Search method. auto: exact with torch on a GPU or for small graphs, else Faiss IVF."
    )
    k: NeighborCount = Field(12, description="Neighbours kept for each entity. At least match.csls_k and match.k.")
    recall: float = Field(0.95, ge=0.01, le=1, description="Recall that an approximate search must reach.")
    max_memory_gb: MemoryGB = Field(4.0, description="Memory in GB of the search, without vectors and results.")


class MatchSettings(Section):
    """How candidates become accepted pairs with a confidence (step `match`)."""

    scoring: Annotated[str, PartOf(SCORINGS)] = Field(
        "csls", description="Score of a pair. transport needs graphs where nearly every entity has a counterpart."
    )
    csls_k: NeighborCount = Field(10, description="Neighbours in the mean of CSLS.")
    weights: Annotated[Mapping[str, Weight], WeightsOf("evidence", None, DEFAULT_WEIGHTS, 100)] = Field(
        DEFAULT_WEIGHTS, description="What one unit of each evidence adds to the cosine of a pair. 0: nothing."
    )
    rule_candidates: int = Field(
        10, ge=0, le=1_000, description="Pairs next to matched pairs that rules propose for each source entity."
    )
    temperature: float = Field(0.02, ge=0.001, le=10, description="Temperature of transport (Sinkhorn).")
    iterations: int = Field(30, ge=1, le=10_000, description="Iterations of transport (Sinkhorn).")
    selection: Literal["mutual_top1", "mutual_knn", "one_to_one", "many_to_one"] = Field(
        "mutual_top1", description="Which pairs may be accepted. mutual_knn with k = 5 is the paper's."
    )
    k: NeighborCount = Field(5, description="Candidates kept for each entity, and the k of mutual_knn.")
    threshold: Literal["f1", "none"] = Field(
        "f1", description="f1: the threshold with the highest expected F1. none: accept all selected pairs."
    )
    min_precision: float = Field(
        0.0, ge=0, le=1, description="Accept as many pairs as keep this expected precision. 0: as threshold says."
    )


class EvaluateSettings(Section):
    """What is measured on the test links (step `evaluate`)."""

    gold: Literal["auto", "full", "partial"] = Field(
        "auto",
        description="full: test links are complete. partial: judge only pairs that touch one. auto: as the links look.",
    )
    measures: Annotated[tuple[str, ...], NamesOf("measure", MEASURES)] = Field(
        MEASURES, description="Measures of the ranks of the test links."
    )


class ReportSettings(Section):
    """Which files a finished run leaves in its folder (step `report`)."""

    pages: Annotated[tuple[str, ...], NamesOf("page", PAGES, least=0)] = Field(
        PAGES,
        description="Files written into the run folder.",
    )


class ClusterSettings(Section):
    """Which machines work on a run together. Like the device, this is no part of what a step is computed from."""

    address: str = Field(
        "none",
        min_length=1,
        max_length=300,
        description="Ray cluster. none: this process. local: one started here. auto: the one running here. HOST:PORT.",
    )
    workers: Annotated[int, Field(ge=1, le=100_000)] | Literal["auto"] = Field(
        "auto",
        description="Workers of the training. auto: one for each processor, or for each GPU where there are any.",
    )
    staleness: Annotated[int, Field(ge=0, le=100_000)] | Literal["auto"] = Field(
        "auto",
        description="Maximum visits by others during one visit. 0: one at a time. auto: about one for each worker.",
    )


# The steps of a run in order, as `--from`, `--to` and `--force` name them.
STEPS = (
    "load",
    "literals",
    "merge",
    "partition",
    "landmarks",
    "subgraphs",
    "train",
    "integrate",
    "rounds",
    "search",
    "match",
    "evaluate",
    "report",
)


class Settings(Section):
    """All settings of a run."""

    seed: int = Field(0, ge=0, le=2**32 - 1, description="Random seed. Every step derives its own from it.")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="Device. auto: a GPU if there is one.")
    channels: Annotated[tuple[str, ...], NamesOf("channel", CHANNELS, word="auto")] = Field(
        ("auto",),
        description="Sources of candidate pairs. auto: all that the data allow. structure alone is the paper's system.",
    )
    data: DataSettings = DataSettings()
    compare: CompareSettings = CompareSettings()
    protocol: ProtocolSettings = ProtocolSettings()
    division: DivisionSettings = DivisionSettings()
    landmarks: LandmarkSettings = LandmarkSettings()
    train: TrainSettings = TrainSettings()
    integrate: IntegrateSettings = IntegrateSettings()
    rounds: RoundSettings = RoundSettings()
    search: SearchSettings = SearchSettings()
    match: MatchSettings = MatchSettings()
    evaluate: EvaluateSettings = EvaluateSettings()
    report: ReportSettings = ReportSettings()
    cluster: ClusterSettings = ClusterSettings()

    @property
    def keep_literals(self) -> bool:
        """Whether names and values are read; without them, entities that have nothing else are dropped."""
        return bool({"auto", "literals"} & set(self.channels))

    def only(self, *sections: str) -> Settings:
        """These sections, and the defaults in place of all others: what a step that takes several depends on."""
        return Settings(**{name: getattr(self, name) for name in sections})

    @model_validator(mode="after")
    def _check_neighbors(self) -> Self:
        if self.search.k < max(self.match.csls_k, self.match.k):
            raise ValueError("search.k must be at least match.csls_k and match.k")
        return self
