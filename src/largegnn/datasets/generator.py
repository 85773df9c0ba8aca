"""Generate two graphs that describe one synthetic world, with all links between them.

In: `WorldSettings` and a seed. Out: a `GeneratedPair`: the task, names, literals where requested, and a report of what
was drawn. The same settings and seed always give the same pair, and every size is met exactly.

The world follows DBpedia. Entities state a few facts each (a light tail of out-degrees), but what facts point at is a
power law. Most facts stay inside the head's community, whose sizes follow a power law too; a tail attracts mostly one
relation, and relations follow Zipf's law. The facts between linked entities are shared: each graph states a random part
of them. To these come facts that only one graph describes and false triples, so that every entity has a triple. Each
graph divides the world's relations in its own way. Ids and the numbers in names are random and independent.
Cost: about 2 s and 100 MB per million triples; keys of 8 bytes are drawn and sorted, never rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from largegnn.artifacts import AlignmentTask, IntArray, StringTable, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.data.vocabulary import sorted_distinct, to_strings
from largegnn.datasets.generated_literals import draw_literals
from largegnn.errors import InputError
from largegnn.settings import WorldSettings

__all__ = ["GeneratedPair", "WorldReport", "generate_pair"]

_FloatArray = npt.NDArray[np.float64]

# Linked entities have better ranks of popularity: the u-th quantile of a uniform draw becomes u to this power.
_LINKED_POPULARITY = 1.5
# Community sizes fall with their rank to this power.
_COMMUNITY_EXPONENT = 0.5
# The world has this many more relations than the graph that has most of them.
_RELATION_SURPLUS = 0.25
# Share of the facts that use the relation their tail attracts; the others use any.
_ATTRACTED = 0.6
# A dense community may have no popular pair left: after these rounds, once fewer than this share of the draws is new,
# pairs are drawn uniformly.
_POPULAR_ROUNDS, _FEW_NEW = 12, 0.2
# Pairs drawn at once, to bound the temporary arrays.
_MOST_DRAWS = 8_000_000


@dataclass(frozen=True)
class WorldReport:
    """Counts of a generated pair; facts are those between linked entities, of which each graph states a part."""

    facts: int
    facts_in_both: int
    source_missing: float
    target_missing: float
    source_wrong: int
    target_wrong: int
    source_max_degree: int
    target_max_degree: int
    world_relations: int
    communities: int


@dataclass(frozen=True, eq=False)
class GeneratedPair:
    """A task with all its links, its names, a report of what was drawn, and literals where requested."""

    task: AlignmentTask
    names: TaskNames
    report: WorldReport
    literals: Literals


@dataclass(frozen=True, eq=False)
class _World:
    """Entities in the order linked, source only, target only; `relation_ladder` (r,) cumulates frequencies."""

    popularity: _FloatArray
    activity: _FloatArray
    community: IntArray
    attracted: IntArray
    relation_ladder: _FloatArray


@dataclass(frozen=True)
class _Counts:
    """Sizes of one graph; its triples are shared facts, private facts and false ones."""

    entities: int
    relations: int
    linked: int
    shared: int
    private: int
    wrong: int


@dataclass(frozen=True, eq=False)
class _Facts:
    """Triples with entities numbered among those of a graph, linked ones first, and relations of the world."""

    heads: IntArray
    relations: IntArray
    tails: IntArray


@dataclass(frozen=True, eq=False)
class _Graph:
    """One graph: the id of each of its entities, `triples` (m, 3), which of the shared facts it states."""

    ids: IntArray
    triples: IntArray
    is_stated: npt.NDArray[np.bool_]


def generate_pair(settings: WorldSettings, seed: int) -> GeneratedPair:
    """Draw a world and two graphs of it that have exactly the sizes of `settings`."""
    *children, literal_child = np.random.SeedSequence(seed).spawn(6)
    world_rng, source_rng, target_rng, name_rng, link_rng = map(np.random.default_rng, children)
    world = _draw_world(settings, world_rng)
    links, num_source, num_target = settings.links, settings.source_entities, settings.target_entities
    members = (np.arange(num_source), np.r_[np.arange(links), np.arange(num_source, len(world.popularity))])
    source_counts = _count(settings, world, members[0], "source")
    target_counts = _count(settings, world, members[1], "target")
    facts = _draw_facts(settings, world, max(source_counts.shared, target_counts.shared), world_rng)
    source = _draw_graph(source_counts, settings.inside, world, members[0], facts, source_rng)
    target = _draw_graph(target_counts, settings.inside, world, members[1], facts, target_rng)
    ids = (source.ids, target.ids + num_source)
    offset = np.array([num_source, settings.source_relations, num_source], dtype=np.int32)
    task = AlignmentTask(
        num_source,
        num_target,
        settings.source_relations,
        settings.target_relations,
        np.concatenate([source.triples, target.triples + offset]),
        *_split(np.column_stack([side[:links] for side in ids]), settings, link_rng),
    )
    names = TaskNames(
        _numbered_names(("source.example.org/resource/Q", "target.example.org/resource/E"), ids, name_rng),
        _numbered_names(
            ("source.example.org/property/p", "target.example.org/property/p"),
            (np.arange(settings.source_relations), np.arange(settings.target_relations)),
            name_rng,
        ),
    )
    literals = draw_literals(members, ids, settings.noise, literal_child) if settings.literals else Literals.empty()
    source_degree, target_degree = (int(np.bincount(graph.triples[:, ::2].ravel()).max()) for graph in (source, target))
    report = WorldReport(
        facts=len(facts.heads),
        facts_in_both=int((source.is_stated & target.is_stated).sum()),
        source_missing=1 - source_counts.shared / max(len(facts.heads), 1),
        target_missing=1 - target_counts.shared / max(len(facts.heads), 1),
        source_wrong=source_counts.wrong,
        target_wrong=target_counts.wrong,
        source_max_degree=source_degree,
        target_max_degree=target_degree,
        world_relations=len(world.relation_ladder),
        communities=len(np.unique(world.community)),
    )
    return GeneratedPair(task, names, report, literals)


def _draw_world(settings: WorldSettings, rng: np.random.Generator) -> _World:
    """Draw every entity's popularity as tail, activity as head, community, and the relation it attracts as tail."""
    num_entities = settings.source_entities + settings.target_entities - settings.links
    quantile = rng.random(num_entities)
    quantile[: settings.links] **= _LINKED_POPULARITY
    popularity = np.empty(num_entities)
    # Degrees with a tail of exponent g come from weights that fall with the rank to the power 1 / (g - 1).
    weights = np.arange(1.0, num_entities + 1) ** (-1.0 / (settings.degree_exponent - 1.0))
    popularity[np.argsort(quantile, kind="stable")] = weights
    communities = _ladder(max(1, round(num_entities / settings.community_size)), _COMMUNITY_EXPONENT)
    num_relations = int(max(settings.source_relations, settings.target_relations) * (1 + _RELATION_SURPLUS))
    relations = _ladder(num_relations, settings.relation_exponent)
    return _World(
        popularity=popularity,
        activity=rng.standard_exponential(num_entities),
        community=_pick(communities, rng.random(num_entities)),
        attracted=_pick(relations, rng.random(num_entities)),
        relation_ladder=relations,
    )


def _count(settings: WorldSettings, world: _World, members: IntArray, side: str) -> _Counts:
    """Divide the triples of one graph into shared, private and false ones, or refuse the sizes."""
    num_triples: int = getattr(settings, f"{side}_triples")
    entities, linked = len(members), settings.links
    wrong = round(settings.wrong * num_triples)
    right = num_triples - wrong
    if right < entities:
        raise InputError(
            f"too few true triples to describe every entity of the {side}",
            expected=f"at least {entities} true triples for {entities} entities",
            found=f"{right} (wrong = {settings.wrong} of {num_triples})",
            fix=f"lower wrong or raise {side}_triples",
        )
    most_shared, most_private = int(_room(linked) * (1 - settings.missing)), _room(entities) - _room(linked)
    if num_triples > _room(entities) or right > most_shared + most_private:
        most = min(_room(entities), int((most_shared + most_private) / (1 - settings.wrong)))
        raise InputError(
            f"the {side} graph is too dense",
            expected=f"at most {most} triples among {entities} entities, {linked} of them linked",
            found=f"{side}_triples = {num_triples}, missing = {settings.missing}, wrong = {settings.wrong}",
            fix=f"lower {side}_triples, missing or wrong, or raise {side}_entities",
        )
    as_head = world.activity[:linked].sum() / world.activity[members].sum()
    as_tail = world.popularity[:linked].sum() / world.popularity[members].sum()
    # Every entity that is not linked has a private fact.
    shared = min(round(right * as_head * as_tail), most_shared, right - (entities - linked))
    shared = max(shared, right - most_private)
    return _Counts(entities, getattr(settings, f"{side}_relations"), linked, shared, right - shared, wrong)


def _room(num_entities: int) -> int:
    """Ordered pairs that may be used: half of all, so that a free one is drawn quickly."""
    return num_entities * (num_entities - 1) // 2


class _Sampler:
    """Draws ordered pairs among some entities of the world, numbered 0 .. n - 1; a pair is the key head * n + tail."""

    def __init__(self, world: _World, members: IntArray, inside: float) -> None:
        community = world.community[members]
        self.num_entities, self.inside = len(members), inside
        # Entities are laid out community by community, so that one ladder of weights serves both kinds of draw.
        self.layout = np.argsort(community, kind="stable").astype(np.int32)
        laid_out = community[self.layout]
        self.first = np.searchsorted(laid_out, community).astype(np.int32)
        self.last = np.searchsorted(laid_out, community, side="right").astype(np.int32)
        self.tail_ladder = np.append(0.0, np.cumsum(world.popularity[members][self.layout]))
        self.head_ladder = np.cumsum(world.activity[members][self.layout])

    def pairs(self, count: int, rng: np.random.Generator, is_popular: bool) -> tuple[IntArray, IntArray]:
        """Draw heads and tails of pairs that may repeat: by activity and popularity, or uniformly."""
        if not is_popular:
            heads = rng.integers(0, self.num_entities, count)
            return heads, self.other_tails(heads, rng)
        # Community by community: the searches that follow stay in the processor's cache.
        active = self.layout[_pick(self.head_ladder, np.sort(rng.random(count)))]
        return active, self.tails(active, rng, self.inside)

    def tails(self, heads: IntArray, rng: np.random.Generator, inside: float) -> IntArray:
        """Draw a tail for each head by popularity, from its community or from anywhere; never the head itself."""
        stay = rng.random(len(heads)) < inside
        low = np.where(stay, self.tail_ladder[self.first[heads]], 0.0)
        high = np.where(stay, self.tail_ladder[self.last[heads]], self.tail_ladder[-1])
        index = np.searchsorted(self.tail_ladder, low + (high - low) * rng.random(len(heads)), side="right") - 1
        tails = self.layout[np.minimum(index, self.num_entities - 1)]
        own = np.flatnonzero(tails == heads)
        tails[own] = self.other_tails(heads[own], rng)
        return tails

    def other_tails(self, heads: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a tail for each head uniformly; never the head itself."""
        return (heads + rng.integers(1, self.num_entities, len(heads))) % self.num_entities

    def keys(self, heads: IntArray, tails: IntArray) -> IntArray:
        """Pairs as int64 keys."""
        return heads.astype(np.int64) * self.num_entities + tails

    def ends(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        """Heads and tails of keys, int32."""
        heads, tails = np.divmod(keys, self.num_entities)
        return heads.astype(np.int32), tails.astype(np.int32)


def _draw_new(
    count: int,
    begun: IntArray,
    known: IntArray,
    draw: Callable[[int, bool], IntArray],
    rng: np.random.Generator,
) -> IntArray:
    """`count` distinct keys, ascending: those of `begun`, then what `draw` gives and the sorted `known` lacks."""
    keys, rounds, accepted = np.sort(begun), 0, 1.0
    while len(keys) < count:
        lacking = count - len(keys)
        num_draws = int(min(1.1 * lacking / accepted, _MOST_DRAWS)) + 64
        new = np.sort(draw(num_draws, rounds < _POPULAR_ROUNDS or accepted > _FEW_NEW))
        new = new[(np.diff(new, prepend=-1) != 0) & _absent(keys, new) & _absent(known, new)]
        accepted = max(len(new), 0.5) / num_draws
        keys = np.sort(np.concatenate([keys, rng.permutation(new)[:lacking]]), kind="stable")  # merges sorted runs
        rounds += 1
    return keys


def _draw_facts(settings: WorldSettings, world: _World, most_stated: int, rng: np.random.Generator) -> _Facts:
    """Draw as many facts between linked entities as leave the richer graph with the requested share missing."""
    sampler = _Sampler(world, np.arange(settings.links), settings.inside)
    count = min(math.ceil(most_stated / (1 - settings.missing)), _room(settings.links))
    first = rng.permutation(settings.links)[:count]  # each entity is the head of a fact, if there are enough
    keys = _draw_new(
        count,
        sampler.keys(first, sampler.tails(first, rng, settings.inside)),
        np.empty(0, dtype=np.int64),
        lambda number, is_popular: sampler.keys(*sampler.pairs(number, rng, is_popular)),
        rng,
    )
    heads, tails = sampler.ends(keys)
    return _Facts(heads, _draw_relations(world, world.attracted[tails], rng), tails)


def _draw_graph(
    counts: _Counts, inside: float, world: _World, members: IntArray, facts: _Facts, rng: np.random.Generator
) -> _Graph:
    """Draw one graph: the facts it states, its private facts, its false triples, and its ids."""
    sampler = _Sampler(world, members, inside)
    known = sampler.keys(facts.heads, facts.tails)
    is_stated = _choose_stated(facts, counts, rng)
    lonely = np.ones(counts.entities, dtype=np.bool_)
    lonely[facts.heads[is_stated]] = lonely[facts.tails[is_stated]] = False
    first = np.flatnonzero(lonely)

    def draw_private(number: int, is_popular: bool) -> IntArray:
        heads, tails = sampler.pairs(number, rng, is_popular)
        is_private = (heads >= counts.linked) | (tails >= counts.linked)
        return sampler.keys(heads[is_private], tails[is_private])

    def draw_false(number: int, is_popular: bool) -> IntArray:
        if not is_popular:
            return sampler.keys(*sampler.pairs(number, rng, is_popular=False))
        heads = right_heads[rng.integers(0, len(right_heads), number)]
        return sampler.keys(heads, sampler.tails(heads, rng, inside=0.0))

    begun = sampler.keys(first, sampler.tails(first, rng, inside))
    private = _draw_new(counts.private, begun, known, draw_private, rng)
    right_heads = np.concatenate([facts.heads[is_stated], sampler.ends(private)[0]])
    known = np.sort(np.concatenate([known, private]), kind="stable")
    false = _draw_new(counts.wrong, np.empty(0, dtype=np.int64), known, draw_false, rng)
    heads, tails = sampler.ends(np.concatenate([private, false]))
    relations = _draw_relations(world, world.attracted[members[tails]], rng)
    relations = np.concatenate([facts.relations[is_stated], relations])
    relations = _name_relations(relations, len(world.relation_ladder), counts.relations, rng)
    ids = rng.permutation(counts.entities).astype(np.int32)
    heads = ids[np.concatenate([facts.heads[is_stated], heads])]
    tails = ids[np.concatenate([facts.tails[is_stated], tails])]
    triples = np.column_stack([heads, relations, tails])
    return _Graph(ids, sorted_distinct(triples, (counts.entities, counts.relations, counts.entities)), is_stated)


def _choose_stated(facts: _Facts, counts: _Counts, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """The shared facts that a graph states, (facts,): at random, but one of each linked entity as far as they go."""
    order = rng.permutation(len(facts.heads))
    fact_of_entity = np.full(counts.linked, -1)
    for fact in (order[counts.shared :], order[: counts.shared]):  # of two facts of an entity, the later one stays
        fact_of_entity[facts.heads[fact]] = fact
        fact_of_entity[facts.tails[fact]] = fact
    needed = np.unique(fact_of_entity[fact_of_entity >= 0])
    is_stated = np.zeros(len(order), dtype=np.bool_)
    is_stated[rng.permutation(needed)[: counts.shared]] = True
    others = order[~is_stated[order]]
    is_stated[others[: max(counts.shared - len(needed), 0)]] = True
    return is_stated


def _draw_relations(world: _World, attracted: IntArray, rng: np.random.Generator) -> IntArray:
    """The world's relation of facts by what their tails attract, (m,) int32."""
    anything = _pick(world.relation_ladder, rng.random(len(attracted)))
    return np.where(rng.random(len(attracted)) < _ATTRACTED, attracted, anything)


def _name_relations(relations: IntArray, num_world: int, num_named: int, rng: np.random.Generator) -> IntArray:
    """Map the world's relations to one graph's own, fewer ones, (m,) int32; each is used at least once."""
    surplus = rng.integers(0, num_named, num_world - num_named)
    named = rng.permutation(np.append(np.arange(num_named), surplus))[relations].astype(np.int32)
    used, first = np.unique(named, return_index=True)
    unused = np.setdiff1d(np.arange(num_named, dtype=np.int32), used)
    if len(unused):
        # Any triple may change its relation: no two triples share head and tail, so none can become equal.
        free = np.delete(np.arange(len(named)), first)
        named[rng.choice(free, len(unused), replace=False)] = unused
    return named


def _split(links: IntArray, settings: WorldSettings, rng: np.random.Generator) -> list[IntArray]:
    """Divide the links at random into train, valid and test links, each sorted."""
    num_train = round(settings.train_share * len(links))
    num_valid = min(round(settings.valid_share * len(links)), len(links) - num_train)
    parts = np.split(rng.permutation(links), [num_train, num_train + num_valid])
    return [part[np.argsort(part[:, 0])] for part in parts]


def _numbered_names(prefixes: tuple[str, str], ids: tuple[IntArray, IntArray], rng: np.random.Generator) -> StringTable:
    """The names of both sides: a prefix and a random number of fixed width."""
    columns = []
    for prefix, side in zip(prefixes, ids, strict=True):
        numbers = 10 ** len(str(len(side))) + rng.permutation(len(side))
        columns.append("http://" + prefix + pl.Series(numbers).cast(pl.String))
    return to_strings(pl.concat(columns))


def _absent(known: IntArray, keys: IntArray) -> npt.NDArray[np.bool_]:
    """Which of `keys` the sorted array `known` lacks."""
    if not len(known):
        return np.ones(len(keys), dtype=np.bool_)
    return np.asarray(known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] != keys)


def _ladder(count: int, exponent: float) -> _FloatArray:
    """Cumulative weights of ranks 1 .. count that fall with the rank to the power `exponent`."""
    return np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -exponent)


def _pick(ladder: _FloatArray, uniform: _FloatArray) -> IntArray:
    """The step of a ladder of cumulative weights on which each number of [0, 1) falls, int32."""
    index = np.searchsorted(ladder, uniform * ladder[-1], side="right")
    steps: IntArray = np.minimum(index, len(ladder) - 1).astype(np.int32)
    return steps
