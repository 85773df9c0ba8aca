"""Triton kernels for the sums over neighbours; this file is imported on a machine that has Triton, by `fused` alone.

In and out are pointers to arrays as `pair_graph` lays them out; rows have `dim` numbers, of which a kernel holds
`width`, the next power of two. Every kernel runs once for each piece of a pattern: at most 128 entries of one row. A row
in one piece is stored, a row in several is added up, so the output must be zero before.
The idea. Neighbours' rows and relation vectors are small and lie in the cache of a GPU: to read both for each pair costs
less than to make and keep what the plain path makes for each pair or slot.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["pull_back", "reflect", "sum_powers", "sum_rows", "to_sets"]


@triton.jit
def _put(out, values, at, inside, alone):
    """Store the values of a row that has no other piece, add those of one that has."""
    if alone != 0:
        tl.store(out + at, values, mask=inside)
    else:
        tl.atomic_add(out + at, values, mask=inside)


@triton.jit
def sum_rows(out, table, columns, pieces, num_pieces, dim, width: tl.constexpr, tile: tl.constexpr):
    """out[row] = sum of table[column] over the entries of the row."""
    piece = tl.program_id(0)
    row = tl.load(pieces + piece).to(tl.int64)
    start = tl.load(pieces + num_pieces + piece)
    stop = tl.load(pieces + 2 * num_pieces + piece)
    alone = tl.load(pieces + 3 * num_pieces + piece)
    if start < stop:
        numbers = tl.arange(0, width)
        inside = numbers < dim
        total = tl.zeros((width,), tl.float32)
        for at in range(start, stop, tile):
            entries = at + tl.arange(0, tile)
            there = entries < stop
            column = tl.load(columns + entries, mask=there, other=0).to(tl.int64)
            mask = there[:, None] & inside[None, :]
            total += tl.sum(tl.load(table + column[:, None] * dim + numbers[None, :], mask=mask, other=0.0), axis=0)
        _put(out, total, row * dim + numbers, inside, alone)


@triton.jit
def sum_powers(out, powers, sets, pieces, num_pieces, num_nodes, num_sets, tile: tl.constexpr):
    """out[block, node] = sum of powers[block, set] over the node's pairs."""
    piece, block = tl.program_id(0), tl.program_id(1)
    node = tl.load(pieces + piece)
    start = tl.load(pieces + num_pieces + piece)
    stop = tl.load(pieces + 2 * num_pieces + piece)
    alone = tl.load(pieces + 3 * num_pieces + piece)
    if start < stop:
        total = tl.zeros((tile,), tl.float32)
        for at in range(start, stop, tile):
            entries = at + tl.arange(0, tile)
            there = entries < stop
            chosen = tl.load(sets + entries, mask=there, other=0)
            total += tl.load(powers + block * num_sets + chosen, mask=there, other=0.0)
        place = block.to(tl.int64) * num_nodes + node
        if alone != 0:
            tl.store(out + place, tl.sum(total, axis=0))
        else:
            tl.atomic_add(out + place, tl.sum(total, axis=0))


@triton.jit
def reflect(
    out, rows, relations, powers, totals, neighbors, sets, pieces, places, num_out,
    num_pieces, num_nodes, num_sets, dim, width: tl.constexpr, tile: tl.constexpr, some: tl.constexpr,
):  # fmt: skip
    """out[block, i] = sum over i's pairs of a (h - 2 (h . R) R); with `some` only of nodes that have a place, there."""
    piece, block = tl.program_id(0), tl.program_id(1)
    node = tl.load(pieces + piece)
    start = tl.load(pieces + num_pieces + piece)
    stop = tl.load(pieces + 2 * num_pieces + piece)
    alone = tl.load(pieces + 3 * num_pieces + piece)
    place = node
    if some:
        place = tl.load(places + node)
        stop = tl.where(place >= 0, stop, start)
    if start < stop:
        base = block.to(tl.int64) * num_nodes
        numbers = tl.arange(0, width)
        inside = numbers < dim
        total = tl.zeros((width,), tl.float32)
        for at in range(start, stop, tile):
            entries = at + tl.arange(0, tile)
            there = entries < stop
            column = tl.load(neighbors + entries, mask=there, other=0)
            chosen = tl.load(sets + entries, mask=there, other=0)
            weight = tl.load(powers + block * num_sets + chosen, mask=there, other=0.0)
            mask = there[:, None] & inside[None, :]
            near = tl.load(rows + (base + column)[:, None] * dim + numbers[None, :], mask=mask, other=0.0)
            unit = tl.load(relations + chosen[:, None] * dim + numbers[None, :], mask=mask, other=0.0)
            along = 2.0 * tl.sum(near * unit, axis=1)
            total += tl.sum(weight[:, None] * (near - along[:, None] * unit), axis=0)
        total = total / tl.load(totals + base + node)
        _put(out, total, (block.to(tl.int64) * num_out + place) * dim + numbers, inside, alone)


@triton.jit
def pull_back(
    out, grads, relations, powers, totals, neighbors, sets, inverse, pieces, places, num_out,
    num_pieces, num_nodes, num_sets, dim, width: tl.constexpr, tile: tl.constexpr, some: tl.constexpr,
):  # fmt: skip
    """out[block, j] = sum over the receivers i of j of a_ij (g - 2 (g . R) R); with `some` only those that have a place."""
    piece, block = tl.program_id(0), tl.program_id(1)
    node = tl.load(pieces + piece)
    start = tl.load(pieces + num_pieces + piece)
    stop = tl.load(pieces + 2 * num_pieces + piece)
    alone = tl.load(pieces + 3 * num_pieces + piece)
    if start < stop:
        base = block.to(tl.int64) * num_nodes
        grad_base = block.to(tl.int64) * num_out
        numbers = tl.arange(0, width)
        inside = numbers < dim
        total = tl.zeros((width,), tl.float32)
        for at in range(start, stop, tile):
            entries = at + tl.arange(0, tile)
            there = entries < stop
            column = tl.load(neighbors + entries, mask=there, other=0)
            place = column
            if some:
                place = tl.load(places + column, mask=there, other=-1)
                there = place >= 0
            # The set of the pair as the receiver sees it.
            own = tl.load(sets + entries, mask=there, other=0)
            chosen = tl.load(inverse + own, mask=there, other=0)
            weight = tl.load(powers + block * num_sets + chosen, mask=there, other=0.0)
            weight = weight / tl.load(totals + base + column, mask=there, other=1.0)
            mask = there[:, None] & inside[None, :]
            grad = tl.load(grads + (grad_base + place)[:, None] * dim + numbers[None, :], mask=mask, other=0.0)
            unit = tl.load(relations + chosen[:, None] * dim + numbers[None, :], mask=mask, other=0.0)
            along = 2.0 * tl.sum(grad * unit, axis=1)
            total += tl.sum(weight[:, None] * (grad - along[:, None] * unit), axis=0)
        _put(out, total, (base + node) * dim + numbers, inside, alone)


@triton.jit
def to_sets(
    out, out_logits, rows, grads, relations, powers, totals, centers, receivers, neighbors, pieces, places, num_out,
    num_pieces, num_nodes, num_sets, dim, width: tl.constexpr, tile: tl.constexpr, some: tl.constexpr,
):  # fmt: skip
    """Gradients of the relation vectors and of the logits of both blocks, from pairs in the order of their sets."""
    piece, block = tl.program_id(0), tl.program_id(1)
    own_set = tl.load(pieces + piece)
    start = tl.load(pieces + num_pieces + piece)
    stop = tl.load(pieces + 2 * num_pieces + piece)
    if start < stop:
        base = block.to(tl.int64) * num_nodes
        grad_base = block.to(tl.int64) * num_out
        numbers = tl.arange(0, width)
        inside = numbers < dim
        unit = tl.load(relations + own_set * dim + numbers, mask=inside, other=0.0)
        power = tl.load(powers + block * num_sets + own_set)
        total = tl.zeros((width,), tl.float32)
        gain = tl.zeros((tile,), tl.float32)
        for at in range(start, stop, tile):
            entries = at + tl.arange(0, tile)
            there = entries < stop
            receiver = tl.load(receivers + entries, mask=there, other=0)
            place = receiver
            if some:
                place = tl.load(places + receiver, mask=there, other=-1)
                there = place >= 0
            column = tl.load(neighbors + entries, mask=there, other=0)
            weight = power / tl.load(totals + base + receiver, mask=there, other=1.0)
            weight = tl.where(there, weight, 0.0)
            center = tl.load(centers + grad_base + place, mask=there, other=0.0)
            mask = there[:, None] & inside[None, :]
            near = tl.load(rows + (base + column)[:, None] * dim + numbers[None, :], mask=mask, other=0.0)
            grad = tl.load(grads + (grad_base + place)[:, None] * dim + numbers[None, :], mask=mask, other=0.0)
            near_along = tl.sum(near * unit[None, :], axis=1)
            grad_along = tl.sum(grad * unit[None, :], axis=1)
            both = tl.sum(near * grad, axis=1)
            gain += weight * (both - 2.0 * near_along * grad_along - center)
            turned = near_along[:, None] * grad + grad_along[:, None] * near
            total += tl.sum(weight[:, None] * turned, axis=0)
        tl.atomic_add(out + own_set * dim + numbers, -2.0 * total, mask=inside)
        tl.atomic_add(out_logits + block * num_sets + own_set, tl.sum(gain, axis=0))
