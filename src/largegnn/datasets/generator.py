"""Two graphs that describe one made-up world, with the truth about which entities are the same.

In: `WorldSettings` and a seed. Out: a `GeneratedPair`: the task, the names of its entities and relations, and a report
of what was really drawn. The same settings and seed always give the same pair.

The world has facts between linked entities; each graph states a random part of them, the richer one all but the share
`missing`, the poorer one fewer. To these come facts about entities only one graph describes, and false triples: a
stated fact with another tail. Each graph cuts the world's relations in its own way and under its own names, so that one
relation here may be half of another there. Ids and the numbers in names are random per side and hint at nothing.

Every size asked for is met exactly, and every entity and relation is used: an entity without a fact gets one
that the graph lacked, instead of one nobody depends on. What cannot be met is an `InputError` with advice.
Cost: about 2 s and 100 MB per million triples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from largegnn.artifacts import AlignmentTask, IntArray, StringTable, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.datasets.made_names import make_literals
from largegnn.datasets.world import PairSampler, World, absent, attract, distinct, draw_world, rescue, rewire
from largegnn.errors import InputError
from largegnn.settings import WorldSettings

__all__ = ["GeneratedPair", "WorldReport", "generate_pair"]


@dataclass(frozen=True)
class WorldReport:
    """What a pair really holds; facts are those between linked entities, rescued ones save an entity from isolation."""

    facts: int
    facts_in_both: int
    source_missing: float
    target_missing: float
    source_wrong: int
    target_wrong: int
    source_rescued: int
    target_rescued: int
    source_max_degree: int
    target_max_degree: int
    world_relations: int
    communities: int


@dataclass(frozen=True, eq=False)
class GeneratedPair:
    """A task whose every answer is known, its names, what was drawn, and names and values where asked for."""

    task: AlignmentTask
    names: TaskNames
    report: WorldReport
    literals: Literals


@dataclass(frozen=True)
class _Plan:
    """One graph to be: its sizes, and how many triples are shared facts, other facts and false."""

    num_entities: int
    num_relations: int
    num_linked: int
    shared: int
    private: int
    wrong: int


@dataclass(frozen=True, eq=False)
class _Facts:
    """The world's facts between linked entities, ascending by head and tail."""

    heads: IntArray
    relations: IntArray
    tails: IntArray


@dataclass(frozen=True, eq=False)
class _View:
    """One graph: entity ids in the order of its plan, `triples` (m, 3), the linked facts it states, facts rescued."""

    id_of_entity: IntArray
    triples: IntArray
    linked_facts: IntArray
    num_rescued: int


def generate_pair(settings: WorldSettings, seed: int) -> GeneratedPair:
    """Draw a world and two views of it that have exactly the sizes of `settings`."""
    *children, literal_child = np.random.SeedSequence(seed).spawn(6)
    world_rng, source_rng, target_rng, name_rng, link_rng = map(np.random.default_rng, children)
    world = draw_world(settings, world_rng)
    links, num_source = settings.links, settings.source_entities
    source_members = np.arange(num_source)
    target_members = np.concatenate([np.arange(links), np.arange(num_source, len(world.popularity))])
    source_plan = _plan(settings, world, source_members, "source")
    target_plan = _plan(settings, world, target_members, "target")
    facts = _draw_facts(settings, world, max(source_plan.shared, target_plan.shared), world_rng)
    source = _draw_view(source_plan, settings.inside, world, source_members, facts, source_rng)
    target = _draw_view(target_plan, settings.inside, world, target_members, facts, target_rng)
    offset = np.array([num_source, settings.source_relations, num_source], dtype=np.int32)
    linked_ids = np.column_stack([source.id_of_entity[:links], target.id_of_entity[:links] + num_source])
    task = AlignmentTask(
        settings.source_entities,
        settings.target_entities,
        settings.source_relations,
        settings.target_relations,
        np.concatenate([source.triples, target.triples + offset]),
        *_split(linked_ids, settings.train_share, settings.valid_share, link_rng),
    )
    root = "http://{}.example.org/{}"
    entities = [
        _number_names(root.format("source", "resource/Q"), settings.source_entities, name_rng),
        _number_names(root.format("target", "resource/E"), settings.target_entities, name_rng),
    ]
    relations = [
        _number_names(root.format("source", "property/p"), settings.source_relations, name_rng),
        _number_names(root.format("target", "property/p"), settings.target_relations, name_rng),
    ]
    names = TaskNames(_join(*entities), _join(*relations))
    literals = Literals.empty()
    if settings.literals:
        literals = make_literals(
            len(world.popularity),
            (source_members, target_members),
            (source.id_of_entity, target.id_of_entity + num_source),
            settings.noise,
            int(literal_child.generate_state(1)[0]),
        )
    return GeneratedPair(task, names, _report(world, facts, (source_plan, target_plan), (source, target)), literals)


def _room(num_entities: int) -> int:
    """Ordered pairs the generator dares to use: half of all, so that drawing a free one stays quick."""
    return num_entities * (num_entities - 1) // 2


def _plan(settings: WorldSettings, world: World, members: IntArray, side: str) -> _Plan:
    """Share out the triples of one graph by who would state them, or say why that cannot be done."""
    num_triples: int = getattr(settings, f"{side}_triples")
    num_entities, num_linked = len(members), settings.links
    wrong = round(settings.wrong * num_triples)
    right = num_triples - wrong
    if 2 * right < num_entities:
        raise InputError(
            f"too few true triples to describe every entity of the {side}",
            expected=f"at least {(num_entities + 1) // 2} true triples for {num_entities} entities",
            found=f"{right} (wrong = {settings.wrong} of {num_triples})",
            fix=f"lower wrong or raise {side}_triples",
        )
    most_shared = int(_room(num_linked) * (1 - settings.missing))
    most_private = _room(num_entities) - _room(num_linked)
    if num_triples > _room(num_entities) or right > most_shared + most_private:
        most = min(_room(num_entities), int((most_shared + most_private) / (1 - settings.wrong)))
        raise InputError(
            f"the {side} graph is too dense",
            expected=f"at most {most} triples among {num_entities} entities, {num_linked} of them linked",
            found=f"{side}_triples = {num_triples}, missing = {settings.missing}, wrong = {settings.wrong}",
            fix=f"lower {side}_triples, missing or wrong, or raise {side}_entities",
        )
    as_head = world.activity[:num_linked].sum() / world.activity[members].sum()
    as_tail = world.popularity[:num_linked].sum() / world.popularity[members].sum()
    shared = max(min(round(right * as_head * as_tail), most_shared), right - most_private)
    num_relations: int = getattr(settings, f"{side}_relations")
    return _Plan(num_entities, num_relations, num_linked, shared, right - shared, wrong)


def _draw_facts(settings: WorldSettings, world: World, most_stated: int, rng: np.random.Generator) -> _Facts:
    """Draw as many facts between linked entities as leave the richer graph with the asked share missing."""
    linked = slice(0, settings.links)
    sampler = PairSampler(world.popularity[linked], world.activity[linked], world.community[linked], settings.inside)
    num_facts = min(math.ceil(most_stated / (1 - settings.missing)), _room(settings.links))
    heads, tails = sampler.ends(sampler.draw(num_facts, rng))
    return _Facts(heads, attract(world, world.attracted[tails], rng), tails)


def _draw_view(
    plan: _Plan, inside: float, world: World, members: IntArray, facts: _Facts, rng: np.random.Generator
) -> _View:
    """Draw one graph: which facts it states, which false triples, and under which ids."""
    sampler = PairSampler(world.popularity[members], world.activity[members], world.community[members], inside)
    fact_keys = sampler.keys(facts.heads, facts.tails)
    stated = np.zeros(len(fact_keys), dtype=np.bool_)
    stated[rng.permutation(len(fact_keys))[: plan.shared]] = True
    right = np.sort(np.concatenate([fact_keys[stated], sampler.draw(plan.private, rng, plan.num_linked)]))
    right, num_rescued = rescue(sampler, right, fact_keys[~stated], rng)
    heads, tails = sampler.ends(right)
    relations = attract(world, world.attracted[members[tails]], rng)
    known = np.flatnonzero(~absent(fact_keys, right))
    relations[known] = facts.relations[np.searchsorted(fact_keys, right[known])]
    both_linked = (heads < plan.num_linked) & (tails < plan.num_linked)
    linked_facts = heads[both_linked].astype(np.int64) * plan.num_linked + tails[both_linked]
    wrong, wrong_relations = rewire(sampler, right, relations, fact_keys, plan.wrong, rng)
    heads, tails = sampler.ends(np.concatenate([right, wrong]))
    relations = _name_relations(np.concatenate([relations, wrong_relations]), world, plan.num_relations, rng)
    id_of_entity = rng.permutation(plan.num_entities).astype(np.int32)
    triples = _sorted_triples(id_of_entity[heads], relations, id_of_entity[tails], plan)
    return _View(id_of_entity, triples, linked_facts, num_rescued)


def _name_relations(relations: IntArray, world: World, num_names: int, rng: np.random.Generator) -> IntArray:
    """Turn world relations into one graph's own, fewer ones, (m,) int32; each is used at least once."""
    surplus = rng.integers(0, num_names, world.num_relations - num_names)
    named = rng.permutation(np.concatenate([np.arange(num_names), surplus]))[relations].astype(np.int32)
    used, first = np.unique(named, return_index=True)
    unused = np.setdiff1d(np.arange(num_names, dtype=np.int32), used)
    if len(unused):
        # Any triple may change its relation: no two triples share head and tail, so none can become equal.
        free = np.delete(np.arange(len(named)), first)
        named[rng.choice(free, len(unused), replace=False)] = unused
    return named


def _sorted_triples(heads: IntArray, relations: IntArray, tails: IntArray, plan: _Plan) -> IntArray:
    """Triples (m, 3) int32 in ascending order, sorted as single numbers: far quicker than column by column."""
    keys = (heads.astype(np.int64) * plan.num_relations + relations) * plan.num_entities + tails
    keys.sort()
    triples = np.empty((len(keys), 3), dtype=np.int32)
    keys, triples[:, 2] = np.divmod(keys, plan.num_entities)
    triples[:, 0], triples[:, 1] = np.divmod(keys, plan.num_relations)
    return triples


def _split(
    links: IntArray, train_share: float, valid_share: float, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    """Cut the links at random into train, valid and test links, each sorted."""
    num_train = round(train_share * len(links))
    num_valid = min(round(valid_share * len(links)), len(links) - num_train)
    parts = np.split(rng.permutation(links), [num_train, num_train + num_valid])
    train, valid, test = (part[np.argsort(part[:, 0])] for part in parts)
    return train, valid, test


def _number_names(prefix: str, count: int, rng: np.random.Generator) -> StringTable:
    """`prefix` followed by the numbers 1 .. count in random order, written as bytes without a loop over names."""
    numbers = rng.permutation(count) + 1
    powers = 10 ** np.arange(len(str(count)) - 1, -1, -1)
    text = np.empty((count, len(prefix) + len(powers)), dtype=np.uint8)
    text[:, : len(prefix)] = np.frombuffer(prefix.encode("ascii"), dtype=np.uint8)
    written = np.ones(text.shape, dtype=np.bool_)
    for column, power in enumerate(powers, start=len(prefix)):
        text[:, column] = numbers // power % 10 + ord("0")
        written[:, column] = numbers >= power
    return StringTable(text[written], np.concatenate([[0], np.cumsum(written.sum(axis=1))]))


def _join(first: StringTable, second: StringTable) -> StringTable:
    """The strings of `first`, then those of `second`."""
    return StringTable(
        np.concatenate([first.data, second.data]),
        np.concatenate([first.data_ptr, second.data_ptr[1:] + len(first.data)]),
    )


def _report(world: World, facts: _Facts, plans: tuple[_Plan, _Plan], views: tuple[_View, _View]) -> WorldReport:
    """Count what was drawn."""
    fact_keys = facts.heads.astype(np.int64) * plans[0].num_linked + facts.tails
    stated = [view.linked_facts for view in views]
    num_facts = len(distinct(np.concatenate([fact_keys, *stated])))
    source_missing, target_missing = (1 - len(part) / max(num_facts, 1) for part in stated)
    source_degree, target_degree = (int(np.bincount(view.triples[:, ::2].ravel()).max()) for view in views)
    return WorldReport(
        facts=num_facts,
        facts_in_both=int(np.count_nonzero(~absent(stated[0], stated[1]))),
        source_missing=source_missing,
        target_missing=target_missing,
        source_wrong=plans[0].wrong,
        target_wrong=plans[1].wrong,
        source_rescued=views[0].num_rescued,
        target_rescued=views[1].num_rescued,
        source_max_degree=source_degree,
        target_max_degree=target_degree,
        world_relations=world.num_relations,
        communities=world.num_communities,
    )
