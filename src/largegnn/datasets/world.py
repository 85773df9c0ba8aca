"""The made-up world that two generated graphs describe: entities, communities, relations and facts.

In: `WorldSettings` and random generators. Out: a `World` (how popular each entity is, where it lives, which relation it
attracts), a `PairSampler` that draws distinct facts among any of its entities, and two repairs of the facts one graph
states: `rescue` (every entity is described) and `rewire` (false triples).

The idea follows what DBpedia looks like. Every entity states a few facts (a light tail of out-degrees), but what facts
point at is a power law (a heavy tail of in-degrees). Most facts stay inside the head's community, whose sizes follow a
power law too. A tail attracts mostly one relation (countries are what `country` points at), and relations follow Zipf's
law. A fact is an ordered pair of entities with one relation, so naming relations coarser never makes two facts equal.
Cost: a binary search per drawn fact and a few sorts of 8-byte keys; everything is vectorised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import IntArray
from largegnn.errors import InputError
from largegnn.settings import WorldSettings

__all__ = ["FloatArray", "PairSampler", "World", "absent", "attract", "distinct", "draw_world", "rescue", "rewire"]

FloatArray = npt.NDArray[np.float64]

# Linked entities take better ranks of popularity: the u-th quantile of a uniform draw becomes u ** this.
LINKED_POPULARITY = 1.5
# Community sizes fall with their rank to this power.
COMMUNITY_EXPONENT = 0.5
# The world tells apart this many more relations than the graph that names most of them.
RELATION_SURPLUS = 0.25
# Share of the facts that use the relation their tail attracts; the others use any.
ATTRACTED = 0.6
# Rounds of draws by popularity before the rest is filled uniformly, since a dense community may have no popular pair
# left; as long as this share of the draws is new, there are more.
POPULAR_ROUNDS = 12
WORTHWHILE = 0.2
# Pairs drawn at once, to bound the temporary arrays.
MOST_DRAWS = 8_000_000
# Rounds of redrawing false triples before the graph counts as too dense for them.
REWIRE_ROUNDS = 100


@dataclass(frozen=True, eq=False)
class World:
    """Entities in the order linked, source only, target only; one value per entity or per relation.

    `popularity` weighs an entity as tail, `activity` as head; `attracted` is the relation it attracts as tail;
    `relation_ladder` (num_relations,) is the cumulative frequency of the relations.
    """

    popularity: FloatArray
    activity: FloatArray
    community: IntArray
    attracted: IntArray
    relation_ladder: FloatArray
    num_communities: int

    @property
    def num_relations(self) -> int:
        """Relations the world tells apart."""
        return len(self.relation_ladder)


def draw_world(settings: WorldSettings, rng: np.random.Generator) -> World:
    """Draw every entity's popularity, activity, community and attracted relation."""
    num_entities = settings.source_entities + settings.target_entities - settings.links
    quantile = rng.random(num_entities)
    quantile[: settings.links] **= LINKED_POPULARITY
    rank = np.empty(num_entities, dtype=np.int64)
    rank[np.argsort(quantile, kind="stable")] = np.arange(1, num_entities + 1)
    num_communities = max(1, round(num_entities / settings.community_size))
    community = _pick(_ladder(num_communities, COMMUNITY_EXPONENT), rng.random(num_entities))
    most_relations = max(settings.source_relations, settings.target_relations)
    relation_ladder = _ladder(most_relations + int(most_relations * RELATION_SURPLUS), settings.relation_exponent)
    return World(
        # Degrees with a tail of exponent g come from weights that fall with the rank to the power 1 / (g - 1).
        popularity=np.power(rank.astype(np.float64), -1.0 / (settings.degree_exponent - 1.0)),
        activity=rng.standard_exponential(num_entities),
        community=community.astype(np.int32),
        attracted=_pick(relation_ladder, rng.random(num_entities)).astype(np.int32),
        relation_ladder=relation_ladder,
        num_communities=len(np.unique(community)),
    )


def attract(world: World, attracted: IntArray, rng: np.random.Generator) -> IntArray:
    """The relation of facts whose tails attract `attracted`, (m,) int32."""
    anything = _pick(world.relation_ladder, rng.random(len(attracted))).astype(np.int32)
    return np.where(rng.random(len(attracted)) < ATTRACTED, attracted, anything)


class PairSampler:
    """Draws ordered pairs among some entities, numbered 0 .. n - 1; a pair is the key head * n + tail."""

    def __init__(self, popularity: FloatArray, activity: FloatArray, community: IntArray, inside: float) -> None:
        self.num_entities = len(popularity)
        self.inside = inside
        # Entities are laid out community by community, so that one ladder of weights serves both kinds of draw.
        self.layout = np.argsort(community, kind="stable").astype(np.int32)
        laid_out = community[self.layout]
        self.first = np.searchsorted(laid_out, community).astype(np.int32)
        self.last = np.searchsorted(laid_out, community, side="right").astype(np.int32)
        self.tail_ladder = np.concatenate([[0.0], np.cumsum(popularity[self.layout])])
        self.head_ladder = np.cumsum(activity[self.layout])

    def heads(self, count: int, rng: np.random.Generator) -> IntArray:
        """Draw heads by activity, (count,) int32, community by community: the searches that follow stay in cache."""
        return self.layout[_pick(self.head_ladder, np.sort(rng.random(count)))]

    def tails(self, heads: IntArray, rng: np.random.Generator, inside: float | None = None) -> IntArray:
        """Draw a tail for each head by popularity, from its community or from anywhere; never the head itself."""
        stay = rng.random(len(heads)) < (self.inside if inside is None else inside)
        low = np.where(stay, self.tail_ladder[self.first[heads]], 0.0)
        high = np.where(stay, self.tail_ladder[self.last[heads]], self.tail_ladder[-1])
        low += (high - low) * rng.random(len(heads))
        index = np.searchsorted(self.tail_ladder, low, side="right") - 1
        tails = self.layout[np.minimum(index, self.num_entities - 1)]
        own = np.flatnonzero(tails == heads)
        tails[own] = self.any_tails(heads[own], rng)
        return tails

    def any_tails(self, heads: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a tail for each head uniformly; never the head itself."""
        return (heads + rng.integers(1, self.num_entities, len(heads))) % self.num_entities

    def keys(self, heads: IntArray, tails: IntArray) -> IntArray:
        """Pairs as int64 keys."""
        return heads.astype(np.int64) * self.num_entities + tails

    def ends(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        """Heads and tails of keys."""
        heads, tails = np.divmod(keys, self.num_entities)
        return heads.astype(np.int32), tails.astype(np.int32)

    def draw(self, count: int, rng: np.random.Generator, num_linked: int = 0) -> IntArray:
        """Draw `count` distinct pairs, (count,) int64 keys, none of them between the first `num_linked` entities.

        The other entities are each the head of a pair first, so that all are described if `count` allows.
        """
        described = num_linked + rng.permutation(self.num_entities - num_linked)[:count].astype(np.int32)
        keys = np.sort(self.keys(described, self.tails(described, rng)))
        rounds, accepted = 0, 1.0
        while len(keys) < count:
            lacking = count - len(keys)
            num_draws = int(min(1.1 * lacking / accepted, MOST_DRAWS)) + 64
            by_popularity = rounds < POPULAR_ROUNDS or accepted > WORTHWHILE
            heads, tails = self._draw_once(num_draws, rng, by_popularity)
            allowed = (heads >= num_linked) | (tails >= num_linked)
            new = distinct(self.keys(heads[allowed], tails[allowed]))
            new = new[absent(keys, new)]
            accepted = max(len(new), 0.5) / num_draws
            if len(new) > lacking:
                new = rng.permutation(new)[:lacking]
            keys = np.sort(np.concatenate([keys, new]))
            rounds += 1
        return keys

    def _draw_once(self, count: int, rng: np.random.Generator, by_popularity: bool) -> tuple[IntArray, IntArray]:
        """Draw `count` pairs that may repeat: by activity and popularity, or uniformly."""
        if by_popularity:
            heads = self.heads(count, rng)
            return heads, self.tails(heads, rng)
        heads = rng.integers(0, self.num_entities, count)
        return heads, self.any_tails(heads, rng)


def rescue(sampler: PairSampler, right: IntArray, lacking: IntArray, rng: np.random.Generator) -> tuple[IntArray, int]:
    """Exchange facts nobody depends on for facts about entities without any; the facts, and how many are new."""
    heads, tails = sampler.ends(right)
    lonely = np.ones(sampler.num_entities, dtype=np.bool_)
    lonely[heads] = lonely[tails] = False
    if not lonely.any():
        return right, 0
    # A fact the world already has is better than a new one: the other graph may state it too.
    lacking_of_entity = np.full(sampler.num_entities, -1)
    for ends in sampler.ends(lacking):
        lacking_of_entity[ends] = np.arange(len(lacking))
    known = lonely & (lacking_of_entity >= 0)
    unknown = np.flatnonzero(lonely & ~known).astype(np.int32)
    new = sampler.keys(unknown, sampler.tails(unknown, rng))
    added = np.concatenate([lacking[np.unique(lacking_of_entity[known])], new])
    # Every described entity depends on one of its facts, chosen at random; the others are spare.
    order = rng.permutation(len(right))
    needed_by_entity = np.full(sampler.num_entities, -1)
    needed_by_entity[heads[order]] = order
    needed_by_entity[tails[order]] = order
    spare = np.ones(len(right), dtype=np.bool_)
    spare[needed_by_entity[needed_by_entity >= 0]] = False
    spares = np.flatnonzero(spare)
    if len(spares) < len(added):
        return _pair_up(sampler, right, rng), (sampler.num_entities + 1) // 2
    dropped = rng.permutation(spares)[: len(added)]
    return np.sort(np.concatenate([np.delete(right, dropped), added])), len(added)


def _pair_up(sampler: PairSampler, right: IntArray, rng: np.random.Generator) -> IntArray:
    """Describe every entity of a very sparse graph with the fewest facts: neighbours in a community pair up."""
    first, second = sampler.layout[::2], sampler.layout[1::2]
    if len(second) < len(first):
        second = np.append(second, sampler.layout[0])
    pairs = np.sort(sampler.keys(first, second))
    others = rng.permutation(right[absent(pairs, right)])[: len(right) - len(pairs)]
    return np.sort(np.concatenate([pairs, others]))


def rewire(
    sampler: PairSampler, right: IntArray, relations: IntArray, facts: IntArray, count: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw `count` false triples, each a fact with another tail: their keys and world relations."""
    keys, copied = right[:0], relations[:0]
    for turn in range(REWIRE_ROUNDS):
        lacking = count - len(keys)
        if not lacking:
            return keys, copied
        model = rng.integers(0, len(right), lacking + lacking // 4 + 16)
        heads, _ = sampler.ends(right[model])
        tails = sampler.tails(heads, rng, inside=0.0) if turn < POPULAR_ROUNDS else sampler.any_tails(heads, rng)
        drawn, first = np.unique(sampler.keys(heads, tails), return_index=True)
        new = rng.permutation(np.flatnonzero(absent(right, drawn) & absent(facts, drawn) & absent(keys, drawn)))
        new = new[:lacking]
        keys, copied = np.concatenate([keys, drawn[new]]), np.concatenate([copied, relations[model[first[new]]]])
        order = np.argsort(keys)
        keys, copied = keys[order], copied[order]
    raise InputError(
        "the graph is too dense to find enough false triples",
        expected=f"{count} false triples among {sampler.num_entities} entities",
        found=f"{len(keys)} after {REWIRE_ROUNDS} rounds",
        fix="lower wrong or the number of triples, or raise the number of entities",
    )


def distinct(keys: IntArray) -> IntArray:
    """`keys` sorted and without repetition; `np.unique` hashes, which takes far longer on millions of keys."""
    ordered = np.sort(keys)
    return np.asarray(ordered[np.diff(ordered, prepend=-1) != 0])


def absent(known: IntArray, keys: IntArray) -> npt.NDArray[np.bool_]:
    """Which of `keys` the sorted array `known` does not hold."""
    if not len(known):
        return np.ones(len(keys), dtype=np.bool_)
    index = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.asarray(known[index] != keys)


def _ladder(count: int, exponent: float) -> FloatArray:
    """Cumulative weights of ranks 1 .. count that fall with the rank to the power `exponent`."""
    return np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -exponent)


def _pick(ladder: FloatArray, uniform: FloatArray) -> IntArray:
    """The step of a ladder of cumulative weights on which each number of [0, 1) falls."""
    index = np.searchsorted(ladder, uniform * ladder[-1], side="right")
    return np.asarray(np.minimum(index, len(ladder) - 1))
