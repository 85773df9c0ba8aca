"""Generate two graphs that describe one synthetic world, with all links between them.

In: `WorldSettings` and a seed. Out: a `GeneratedPair`: the task, names, literals where requested, and a report of what
was drawn. The same settings and seed always give the same pair, and every size is met exactly.

The world follows DBpedia. Each entity is the head of a few facts (a light tail of out-degrees); the number of facts
that point at an entity follows a power law. Most facts stay inside the head's community, and community sizes follow a
power law too. A fact mostly uses the relation its tail prefers, and relations follow Zipf's law. The facts between
linked entities are shared: each graph states a random part of them. Each graph adds private facts and wrong triples, so
that every entity has a triple, and maps the world's relations to relations of its own. Ids and the numbers in names are
random and independent. Cost: about 2 s and 100 MB per million triples, since pairs are drawn and sorted as 8-byte keys.
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

# Linked entities are more popular: a uniform draw in [0, 1) decides the rank, and theirs is raised to this power.
_LINKED_POPULARITY = 1.5
# Community sizes fall with their rank to this power.
_COMMUNITY_EXPONENT = 0.5
# The world has more relations than either graph, by this share of the larger number.
_RELATION_SURPLUS = 0.25
# Share of the facts that use the relation their tail prefers; the other facts use a relation drawn by frequency.
_PREFERRED_SHARE = 0.6
# A dense community may have no popular pair left: after this number of rounds, if the share of new pairs among the
# draws is not above this minimum, pairs are drawn uniformly.
_POPULAR_ROUNDS, _MIN_NEW_SHARE = 12, 0.2
# Surplus of a round of draws over the pairs that are lacking, because some draws repeat: a share and a constant.
_DRAW_SURPLUS, _EXTRA_DRAWS = 1.1, 64
# Maximum number of pairs drawn at once, to bound the temporary arrays.
_MAX_DRAWS = 8_000_000


@dataclass(frozen=True)
class WorldReport:
    """Counts of a generated pair; `facts` are the facts between linked entities; each graph states a part of them."""

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
    """Properties of entities, ordered linked, source only, target only; `relation_cumulative` (r,) sums frequencies."""

    popularity: _FloatArray
    activity: _FloatArray
    community: IntArray
    preferred_relation: IntArray
    relation_cumulative: _FloatArray


@dataclass(frozen=True)
class _Counts:
    """Sizes of one graph; its triples are shared facts, private facts and wrong triples."""

    entities: int
    relations: int
    linked: int
    shared: int
    private: int
    wrong: int


@dataclass(frozen=True, eq=False)
class _Facts:
    """Triples with relations of the world; entities are numbered within a graph, linked entities first."""

    heads: IntArray
    relations: IntArray
    tails: IntArray


@dataclass(frozen=True, eq=False)
class _Graph:
    """One graph: the ids of its entities, `triples` (m, 3), and which of the shared facts it states."""

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
        world_relations=len(world.relation_cumulative),
        communities=len(np.unique(world.community)),
    )
    return GeneratedPair(task, names, report, literals)


def _draw_world(settings: WorldSettings, rng: np.random.Generator) -> _World:
    """Draw every entity's popularity as tail, activity as head, community, and the relation it prefers as tail."""
    num_entities = settings.source_entities + settings.target_entities - settings.links
    quantile = rng.random(num_entities)
    quantile[: settings.links] **= _LINKED_POPULARITY
    popularity = np.empty(num_entities)
    # Degrees with a tail of exponent g come from weights that fall with the rank to the power 1 / (g - 1).
    weights = np.arange(1.0, num_entities + 1) ** (-1.0 / (settings.degree_exponent - 1.0))
    popularity[np.argsort(quantile, kind="stable")] = weights
    num_communities = max(1, round(num_entities / settings.community_size))
    community_cumulative = _zipf_cumulative(num_communities, _COMMUNITY_EXPONENT)
    num_relations = int(max(settings.source_relations, settings.target_relations) * (1 + _RELATION_SURPLUS))
    relation_cumulative = _zipf_cumulative(num_relations, settings.relation_exponent)
    return _World(
        popularity=popularity,
        activity=rng.standard_exponential(num_entities),
        community=_sample_from_cumulative(community_cumulative, rng.random(num_entities)),
        preferred_relation=_sample_from_cumulative(relation_cumulative, rng.random(num_entities)),
        relation_cumulative=relation_cumulative,
    )


def _count(settings: WorldSettings, world: _World, members: IntArray, side: str) -> _Counts:
    """Divide the triples of one graph into shared facts, private facts and wrong triples, or refuse the sizes."""
    num_triples: int = getattr(settings, f"{side}_triples")
    entities, linked = len(members), settings.links
    wrong = round(settings.wrong * num_triples)
    num_correct = num_triples - wrong
    if num_correct < entities:
        raise InputError(
            f"too few correct triples to describe every entity of the {side}",
            expected=f"at least {entities} correct triples for {entities} entities",
            found=f"{num_correct} (wrong = {settings.wrong} of {num_triples})",
            fix=f"lower wrong or raise {side}_triples",
        )
    max_shared = int(_max_pairs(linked) * (1 - settings.missing))
    max_private = _max_pairs(entities) - _max_pairs(linked)
    if num_triples > _max_pairs(entities) or num_correct > max_shared + max_private:
        max_triples = min(_max_pairs(entities), int((max_shared + max_private) / (1 - settings.wrong)))
        raise InputError(
            f"the {side} graph is too dense",
            expected=f"at most {max_triples} triples among {entities} entities, {linked} of them linked",
            found=f"{side}_triples = {num_triples}, missing = {settings.missing}, wrong = {settings.wrong}",
            fix=f"lower {side}_triples, missing or wrong, or raise {side}_entities",
        )
    as_head = world.activity[:linked].sum() / world.activity[members].sum()
    as_tail = world.popularity[:linked].sum() / world.popularity[members].sum()
    # At least one private fact is left for every entity without a link.
    shared = min(round(num_correct * as_head * as_tail), max_shared, num_correct - (entities - linked))
    shared = max(shared, num_correct - max_private)
    return _Counts(entities, getattr(settings, f"{side}_relations"), linked, shared, num_correct - shared, wrong)


def _max_pairs(num_entities: int) -> int:
    """Maximum number of ordered pairs with a triple: half of all, so that an unused pair is drawn quickly."""
    return num_entities * (num_entities - 1) // 2


class _Sampler:
    """Draws ordered pairs of the `members`, renumbered 0 .. n - 1; the key of a pair is head * n + tail."""

    def __init__(self, world: _World, members: IntArray, inside: float) -> None:
        community = world.community[members]
        self.num_entities, self.inside = len(members), inside
        # Entities are laid out community by community, so that the tails of one community are a range of one array of
        # cumulative weights, which also serves draws from all entities.
        self.layout = np.argsort(community, kind="stable").astype(np.int32)
        laid_out = community[self.layout]
        self.first = np.searchsorted(laid_out, community).astype(np.int32)
        self.last = np.searchsorted(laid_out, community, side="right").astype(np.int32)
        self.tail_cumulative = np.append(0.0, np.cumsum(world.popularity[members][self.layout]))
        self.head_cumulative = np.cumsum(world.activity[members][self.layout])

    def pairs(self, count: int, rng: np.random.Generator, is_popular: bool) -> tuple[IntArray, IntArray]:
        """Draw heads and tails of pairs that may repeat: by activity and popularity, or uniformly."""
        if not is_popular:
            heads = rng.integers(0, self.num_entities, count)
            return heads, self.uniform_tails(heads, rng)
        # Sorted draws go through the layout in order, so that the searches for tails stay in the processor's cache.
        active_heads = self.layout[_sample_from_cumulative(self.head_cumulative, np.sort(rng.random(count)))]
        return active_heads, self.tails(active_heads, rng, self.inside)

    def tails(self, heads: IntArray, rng: np.random.Generator, inside: float) -> IntArray:
        """Draw a tail for each head by popularity, from its community or from all entities; never the head itself."""
        stay = rng.random(len(heads)) < inside
        low = np.where(stay, self.tail_cumulative[self.first[heads]], 0.0)
        high = np.where(stay, self.tail_cumulative[self.last[heads]], self.tail_cumulative[-1])
        index = np.searchsorted(self.tail_cumulative, low + (high - low) * rng.random(len(heads)), side="right") - 1
        tails = self.layout[np.minimum(index, self.num_entities - 1)]
        loops = np.flatnonzero(tails == heads)
        tails[loops] = self.uniform_tails(heads[loops], rng)
        return tails

    def uniform_tails(self, heads: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a tail for each head uniformly; never the head itself."""
        return (heads + rng.integers(1, self.num_entities, len(heads))) % self.num_entities

    def keys(self, heads: IntArray, tails: IntArray) -> IntArray:
        """Return the int64 keys of pairs."""
        return heads.astype(np.int64) * self.num_entities + tails

    def ends(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        """Return the heads and tails of keys, int32."""
        heads, tails = np.divmod(keys, self.num_entities)
        return heads.astype(np.int32), tails.astype(np.int32)


def _draw_new(
    count: int,
    initial: IntArray,
    known: IntArray,
    draw: Callable[[int, bool], IntArray],
    rng: np.random.Generator,
) -> IntArray:
    """Extend the distinct keys `initial` to `count` keys, ascending, with draws that the sorted `known` lacks.

    `draw` returns a number of random keys, drawn by popularity or uniformly.
    """
    keys = np.sort(initial)
    rounds, new_share = 0, 1.0
    while len(keys) < count:
        lacking = count - len(keys)
        num_draws = int(min(_DRAW_SURPLUS * lacking / new_share, _MAX_DRAWS)) + _EXTRA_DRAWS
        new = np.sort(draw(num_draws, rounds < _POPULAR_ROUNDS or new_share > _MIN_NEW_SHARE))
        new = new[(np.diff(new, prepend=-1) != 0) & _not_in(keys, new) & _not_in(known, new)]
        new_share = max(len(new), 0.5) / num_draws  # not 0: it is a divisor
        # The stable sort finds the runs that are sorted already, and merges them.
        keys = np.sort(np.concatenate([keys, rng.permutation(new)[:lacking]]), kind="stable")
        rounds += 1
    return keys


def _draw_facts(settings: WorldSettings, world: _World, max_stated: int, rng: np.random.Generator) -> _Facts:
    """Draw the facts between linked entities: so many that `max_stated` of them leave out the share `missing`."""
    sampler = _Sampler(world, np.arange(settings.links), settings.inside)
    count = min(math.ceil(max_stated / (1 - settings.missing)), _max_pairs(settings.links))
    initial_heads = rng.permutation(settings.links)[:count]  # one fact for each entity, if there are enough facts
    keys = _draw_new(
        count,
        sampler.keys(initial_heads, sampler.tails(initial_heads, rng, settings.inside)),
        np.empty(0, dtype=np.int64),
        lambda number, is_popular: sampler.keys(*sampler.pairs(number, rng, is_popular)),
        rng,
    )
    heads, tails = sampler.ends(keys)
    return _Facts(heads, _draw_relations(world, world.preferred_relation[tails], rng), tails)


def _draw_graph(
    counts: _Counts, inside: float, world: _World, members: IntArray, facts: _Facts, rng: np.random.Generator
) -> _Graph:
    """Draw one graph: the facts it states, its private facts, its wrong triples, and its ids."""
    sampler = _Sampler(world, members, inside)
    known = sampler.keys(facts.heads, facts.tails)
    is_stated = _choose_stated(facts, counts, rng)
    stated_heads, stated_tails = facts.heads[is_stated], facts.tails[is_stated]
    isolated = np.ones(counts.entities, dtype=np.bool_)
    isolated[stated_heads] = isolated[stated_tails] = False
    private = _draw_private(counts, sampler, np.flatnonzero(isolated), known, rng)
    correct_heads = np.concatenate([stated_heads, sampler.ends(private)[0]])
    known = np.sort(np.concatenate([known, private]), kind="stable")
    wrong = _draw_wrong(counts.wrong, sampler, correct_heads, known, rng)
    heads, tails = sampler.ends(np.concatenate([private, wrong]))
    relations = _draw_relations(world, world.preferred_relation[members[tails]], rng)
    relations = np.concatenate([facts.relations[is_stated], relations])
    relations = _name_relations(relations, len(world.relation_cumulative), counts.relations, rng)
    ids = rng.permutation(counts.entities).astype(np.int32)
    triples = np.column_stack(
        [ids[np.concatenate([stated_heads, heads])], relations, ids[np.concatenate([stated_tails, tails])]]
    )
    return _Graph(ids, sorted_distinct(triples, (counts.entities, counts.relations, counts.entities)), is_stated)


def _draw_private(
    counts: _Counts, sampler: _Sampler, isolated: IntArray, known: IntArray, rng: np.random.Generator
) -> IntArray:
    """Draw the keys of private facts: one for each of the `isolated` entities, the others with an unlinked end."""

    def draw(number: int, is_popular: bool) -> IntArray:
        heads, tails = sampler.pairs(number, rng, is_popular)
        is_private = (heads >= counts.linked) | (tails >= counts.linked)
        return sampler.keys(heads[is_private], tails[is_private])

    initial = sampler.keys(isolated, sampler.tails(isolated, rng, sampler.inside))
    return _draw_new(counts.private, initial, known, draw, rng)


def _draw_wrong(
    count: int, sampler: _Sampler, correct_heads: IntArray, known: IntArray, rng: np.random.Generator
) -> IntArray:
    """Draw the keys of wrong triples: the head of a correct triple, and a tail from all entities."""

    def draw(number: int, is_popular: bool) -> IntArray:
        if not is_popular:
            return sampler.keys(*sampler.pairs(number, rng, is_popular=False))
        heads = correct_heads[rng.integers(0, len(correct_heads), number)]
        return sampler.keys(heads, sampler.tails(heads, rng, inside=0.0))

    return _draw_new(count, np.empty(0, dtype=np.int64), known, draw, rng)


def _choose_stated(facts: _Facts, counts: _Counts, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Choose which facts a graph states, (facts,) bool: at random, but one of each linked entity if possible."""
    order = rng.permutation(len(facts.heads))
    fact_of_entity = np.full(counts.linked, -1)
    # A later assignment overwrites an earlier one, so the facts that would be chosen anyway are preferred.
    for rows in (order[counts.shared :], order[: counts.shared]):
        fact_of_entity[facts.heads[rows]] = rows
        fact_of_entity[facts.tails[rows]] = rows
    needed = np.unique(fact_of_entity[fact_of_entity >= 0])
    is_stated = np.zeros(len(order), dtype=np.bool_)
    is_stated[rng.permutation(needed)[: counts.shared]] = True
    others = order[~is_stated[order]]
    is_stated[others[: max(counts.shared - len(needed), 0)]] = True
    return is_stated


def _draw_relations(world: _World, preferred: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw the relation of each fact: the one its tail prefers, or another by frequency, (m,) int32."""
    by_frequency = _sample_from_cumulative(world.relation_cumulative, rng.random(len(preferred)))
    return np.where(rng.random(len(preferred)) < _PREFERRED_SHARE, preferred, by_frequency)


def _name_relations(relations: IntArray, num_world: int, num_named: int, rng: np.random.Generator) -> IntArray:
    """Map the world's relations to the fewer relations of one graph, (m,) int32; every relation is used."""
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
    """Name the ids of both sides by a prefix and a random number of fixed width."""
    columns = []
    for prefix, side in zip(prefixes, ids, strict=True):
        numbers = 10 ** len(str(len(side))) + rng.permutation(len(side))
        columns.append("http://" + prefix + pl.Series(numbers).cast(pl.String))
    return to_strings(pl.concat(columns))


def _not_in(known: IntArray, keys: IntArray) -> npt.NDArray[np.bool_]:
    """Find which of `keys` the sorted array `known` lacks, (k,) bool."""
    if not len(known):
        return np.ones(len(keys), dtype=np.bool_)
    return np.asarray(known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] != keys)


def _zipf_cumulative(count: int, exponent: float) -> _FloatArray:
    """Return the cumulative sums of the weights rank ** -exponent, for ranks 1 .. count."""
    return np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -exponent)


def _sample_from_cumulative(cumulative: _FloatArray, uniform: _FloatArray) -> IntArray:
    """Sample indices by their cumulative weights, from uniform numbers in [0, 1), int32."""
    index = np.searchsorted(cumulative, uniform * cumulative[-1], side="right")
    sampled: IntArray = np.minimum(index, len(cumulative) - 1).astype(np.int32)  # rounding may give the end
    return sampled
