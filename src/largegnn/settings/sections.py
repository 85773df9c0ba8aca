"""Every setting, in one frozen section per stage, with its default, its help and its check; and the presets."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from largegnn.artifacts import SeedsFrom

__all__ = [
    "METHODS",
    "PRESETS",
    "WORLD_PRESETS",
    "DataSettings",
    "DivisionSettings",
    "IntegrateSettings",
    "LandmarkSettings",
    "MatchSettings",
    "ProtocolSettings",
    "RoundSettings",
    "SearchSettings",
    "Section",
    "Settings",
    "TrainSettings",
    "WorldSettings",
]

FileFormat = Literal["auto", "nt", "nq", "ttl", "tsv", "csv", "parquet"]
FolderFormat = Literal["auto", "openea", "dbpedia1m", "dbp15k", "pair"]
Share = Annotated[float, Field(ge=0, lt=1)]


class Section(BaseModel):
    """A frozen group of settings that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, strict=True)


class DataSettings(Section):
    """How files become an alignment task (stage `load`)."""

    format: FileFormat = Field("auto", description="format of the two triple files; auto = from name and content")
    layout: FolderFormat = Field("auto", description="layout of a data set folder; auto = from the files in it")
    fold: int = Field(1, ge=1, description="which fold of an OpenEA folder to read")
    valid_share: Share = Field(
        0.1, description="share of the seeds held out as valid links where no valid links are given"
    )
    skip_unknown: bool = Field(
        False, description="drop seeds whose entities are in neither graph file instead of refusing them"
    )


class ProtocolSettings(Section):
    """What training may see (every stage from `merge` on)."""

    seeds_from: SeedsFrom = Field(
        "train", description="links used as seeds: train (honest), or train+valid (as the paper's tables were made)"
    )


class DivisionSettings(Section):
    """How the merged graph is divided (stage `partition`)."""

    partitioner: Literal["metis", "cps", "sbp"] = Field(
        "metis", description="metis = METIS on the merged graph; cps = LargeEA's partition; sbp = LIME's"
    )
    parts: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        "auto", description="number of subgraphs; auto = from the size of the graph and the memory of the device"
    )


class LandmarkSettings(Section):
    """Which entities are recalled into the parts they connect (stage `landmarks`)."""

    enabled: bool = Field(True, description="recall landmarks; false is the paper's `w/o CLG`")
    cap: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        "auto", description="entities a subgraph may reach with its landmarks; auto = a quarter over an even share"
    )
    eta: float = Field(0.001, gt=0, description="smoothing of the importance of an entity near a seed")
    decay: float = Field(0.01, gt=0, le=1, description="how much less an entity one hop further away is worth")
    hops: int = Field(2, ge=1, le=2, description="how far from a part its landmarks may lie")


Positive = Annotated[int, Field(ge=1)]
Weight = Annotated[float, Field(ge=0)]


class TrainSettings(Section):
    """How the encoder is trained over the subgraphs (stage `train`)."""

    encoder: Literal["dual_amn", "gcn"] = Field("dual_amn", description="the graph neural network")
    dim: Positive = Field(64, description="numbers in an input row; 128 is a little better and takes twice the time")
    epochs: Positive = Field(25, description="passes over the subgraphs")
    batch_size: Positive = Field(512, description="seeds in a step")
    negatives: int = Field(2_000, ge=0, description="nodes of the subgraph a seed is pushed away from; 0 = all")
    learning_rate: float = Field(0.005, gt=0, description="of RMSprop, at the start; it falls along a cosine")
    gamma: float = Field(1.0, ge=0, description="margin of the alignment loss")
    scale: float = Field(30.0, gt=0, description="how much harder negatives weigh more (lambda)")
    shift: float = Field(10.0, ge=0, description="shift of the alignment loss (tau)")
    dropout: Share = Field(0.3, description="share of an output hidden in training")
    reconstruction_weight: Weight = Field(20.0, description="weight of entity reconstruction (ER); 0 = off")
    reconstruction_dropout: Share = Field(0.3, description="share of a row hidden in reconstruction")
    cross_weight: Weight = Field(0.6, description="weight of cross-subgraph negatives (CNS); 0 = off")
    cross_gamma: float = Field(0.0, ge=0, description="margin of the cross-subgraph negatives")
    cross_negatives: Positive = Field(1_000, description="entities outside the subgraph drawn for a step")
    refresh_every: int = Field(
        2, ge=0, description="epochs between fresh divisions, made beside the training; 0 = never"
    )
    validate_every: Positive = Field(5, description="epochs between looks at the valid links, which choose the epoch")
    checkpoint_seconds: Weight = Field(60.0, description="seconds between checkpoints, at the end of an epoch")
    max_memory_gb: float = Field(4.0, gt=0, description="memory that sizes of chunks and caches follow from")
    precision: Literal["float32", "tf32"] = Field(
        "float32", description="of matrix products on a GPU; tf32 is faster, and made no difference at 15K"
    )


class IntegrateSettings(Section):
    """How every entity gets one vector (stage `integrate`)."""

    method: Literal["full", "average"] = Field(
        "full",
        description="full = encode the whole graph in chunks; average = mean over the subgraphs, after the paper",
    )


class RoundSettings(Section):
    """Whether confident pairs become seeds of further training (stage `rounds`)."""

    number: int = Field(0, ge=0, le=20, description="rounds of training on with confident pairs as seeds; 0 = none")
    epochs: Positive = Field(10, description="epochs of each round")
    min_confidence: float = Field(0.5, ge=0, le=1, description="confidence from which a pair becomes a seed")


class SearchSettings(Section):
    """How the nearest entities of the other graph are found (stage `search`)."""

    method: Literal["auto", "torch", "flat", "ivf", "hnsw"] = Field(
        "auto",
        description="auto = exact with torch on a GPU or for small graphs, else Faiss IVF; see docs/alignment.md",
    )
    k: Positive = Field(12, description="neighbours kept for each entity; at least match.csls_k and match.k")
    recall: float = Field(0.95, gt=0, le=1, description="share of true neighbours an approximate search must find")
    max_memory_gb: float = Field(4.0, gt=0, description="memory of the search beyond vectors and results")


class MatchSettings(Section):
    """How neighbours become pairs with a confidence (stage `match`)."""

    scoring: Literal["cosine", "csls", "transport"] = Field(
        "csls", description="score of a pair; transport suits graphs where nearly every entity has a counterpart"
    )
    csls_k: Positive = Field(10, description="neighbourhood of CSLS")
    support_weight: Weight = Field(0.15, description="cosine that one supporting neighbour pair is worth; 0 = off")
    temperature: float = Field(0.02, gt=0, description="of transport (Sinkhorn)")
    iterations: Positive = Field(30, description="of transport")
    selection: Literal["mutual_top1", "mutual_knn", "one_to_one"] = Field(
        "mutual_top1", description="which pairs may be put out; mutual_knn with k = 5 is the paper's"
    )
    k: Positive = Field(5, description="candidates kept for each entity, and the k of mutual_knn")
    threshold: Literal["f1", "none"] = Field(
        "f1", description="f1 = cut where the F1 expected from the valid links is best; none = put out all selected"
    )
    min_precision: float = Field(
        0.0, ge=0, le=1, description="put out as many pairs as keep this expected precision; 0 = as threshold says"
    )


class Settings(Section):
    """All settings of a run."""

    seed: int = Field(0, ge=0, lt=2**32, description="random seed; every stage derives its own generator from it")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where to compute; auto = a GPU if there is one")
    data: DataSettings = DataSettings()
    protocol: ProtocolSettings = ProtocolSettings()
    division: DivisionSettings = DivisionSettings()
    landmarks: LandmarkSettings = LandmarkSettings()
    train: TrainSettings = TrainSettings()
    integrate: IntegrateSettings = IntegrateSettings()
    rounds: RoundSettings = RoundSettings()
    search: SearchSettings = SearchSettings()
    match: MatchSettings = MatchSettings()

    @model_validator(mode="after")
    def _check_neighbors(self) -> Self:
        if self.search.k < max(self.match.csls_k, self.match.k):
            raise ValueError("search.k must be at least match.csls_k and match.k")
        return self


class WorldSettings(Section):
    """Size and difficulty of a generated pair (`largegnn generate`)."""

    source_entities: int = Field(3_000, ge=10, description="entities of the source graph")
    target_entities: int = Field(3_000, ge=10, description="entities of the target graph")
    links: int = Field(2_400, ge=3, description="entities both graphs describe; the others have no counterpart")
    source_relations: int = Field(60, ge=1, description="relations of the source graph")
    target_relations: int = Field(50, ge=1, description="relations of the target graph")
    source_triples: int = Field(12_000, ge=10, description="triples of the source graph")
    target_triples: int = Field(10_500, ge=10, description="triples of the target graph")
    missing: Share = Field(
        0.2, description="share of the facts about linked entities that the richer graph lacks; the poorer lacks more"
    )
    wrong: Share = Field(0.02, description="share of each graph's triples that state something false")
    degree_exponent: float = Field(
        2.2, gt=1.5, le=5, description="exponent of the power law of entity degrees; smaller = heavier hubs"
    )
    relation_exponent: float = Field(1.0, ge=0, le=3, description="exponent of the Zipf law of relation frequencies")
    community_size: int = Field(60, ge=2, description="mean number of entities in a community")
    inside: Share = Field(0.7, description="share of the facts whose two ends lie in one community")
    train_share: Share = Field(0.2, description="share of the links written as train links")
    valid_share: Share = Field(0.1, description="share of the links written as valid links; the rest are test links")

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.links > min(self.source_entities, self.target_entities):
            raise ValueError("links must not exceed source_entities or target_entities")
        for side in ("source", "target"):
            entities, triples = getattr(self, f"{side}_entities"), getattr(self, f"{side}_triples")
            if 2 * triples < entities:
                raise ValueError(f"{side}_triples must be at least half of {side}_entities, or some stay isolated")
            if getattr(self, f"{side}_relations") > triples:
                raise ValueError(f"{side}_relations must not exceed {side}_triples")
        if self.train_share + self.valid_share > 1:
            raise ValueError("train_share and valid_share must not exceed 1 together")
        return self


# The paper's sizes, for 15 thousand, 100 thousand and a million entities a side.
PRESETS: dict[str, dict[str, Any]] = {
    "15k": {"division": {"parts": 5}, "landmarks": {"cap": 7_500}},
    "100k": {"division": {"parts": 10}, "landmarks": {"cap": 25_000}},
    "1m": {"division": {"parts": 40}, "landmarks": {"cap": 90_000}},
}

# The paper's names for a partitioner with landmarks or without; landmarks go over any partitioner.
METHODS: dict[str, dict[str, dict[str, Any]]] = {
    "csg": {"division": {"partitioner": "metis"}, "landmarks": {"enabled": True}},
    "metis": {"division": {"partitioner": "metis"}, "landmarks": {"enabled": False}},
    "cps": {"division": {"partitioner": "cps"}, "landmarks": {"enabled": False}},
    "sbp": {"division": {"partitioner": "sbp"}, "landmarks": {"enabled": False}},
}

WORLD_PRESETS: dict[str, dict[str, Any]] = {
    "small": {"missing": 0.12},
    "15k": {
        "source_entities": 15_000,
        "target_entities": 15_000,
        "links": 15_000,
        "source_relations": 267,
        "target_relations": 210,
        "source_triples": 47_334,
        "target_triples": 40_864,
        "missing": 0.24,
        "degree_exponent": 1.8,
        "community_size": 60,
        "inside": 0.98,
    },
    "100k": {
        "source_entities": 100_000,
        "target_entities": 100_000,
        "links": 100_000,
        "source_relations": 400,
        "target_relations": 300,
        "source_triples": 309_607,
        "target_triples": 258_285,
        "missing": 0.32,
        "degree_exponent": 1.9,
        "community_size": 80,
        "inside": 0.97,
    },
    "dbpedia1m": {
        "source_entities": 1_211_270,
        "target_entities": 1_176_869,
        "links": 488_563,
        "source_relations": 595,
        "target_relations": 400,
        "source_triples": 8_150_656,
        "target_triples": 4_268_719,
        "missing": 0.5,
        "degree_exponent": 2.0,
        "community_size": 400,
        "inside": 0.94,
    },
}
