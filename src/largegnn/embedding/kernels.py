"""Triton kernels for sums over neighbours and for rows; imported on a machine that has Triton, by `fused` alone.

In and out are pointers to arrays as `pair_graph` lays them out; rows have `dim` numbers, of which a kernel holds
`width`, the next power of two. Every kernel runs once for each piece of a pattern: at most 128 entries of one row. A
row in one piece is stored, a row in several is added up, so the output must be zero before. Hidden rows are those of
`blocks` blocks of an encoder, one array after another; a kernel works on all, since pairs and sets are the same.
The idea: neighbours' rows and relation vectors are small and in the cache of a GPU: to read both for each pair
costs less than to compute and keep a value for each pair or slot.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = [
    "first_layers",
    "first_layers_back",
    "hide",
    "pull_back",
    "reflect",
    "rmsprop",
    "sum_powers",
    "sum_rows",
    "to_sets",
    "weigh",
]


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
            present = entries < stop
            column = tl.load(columns + entries, mask=present, other=0).to(tl.int64)
            mask = present[:, None] & inside[None, :]
            total += tl.sum(tl.load(table + column[:, None] * dim + numbers[None, :], mask=mask, other=0.0), axis=0)
        _put(out, total, row * dim + numbers, inside, alone)


@triton.jit
def sum_powers(out, powers, sets, pieces, num_pieces, num_nodes, num_sets, columns: tl.constexpr, tile: tl.constexpr):
    """out[column, node] = sum of powers[column, set] over the node's pairs."""
    piece = tl.program_id(0)
    node = tl.load(pieces + piece)
    start = tl.load(pieces + num_pieces + piece)
    stop = tl.load(pieces + 2 * num_pieces + piece)
    alone = tl.load(pieces + 3 * num_pieces + piece)
    if start < stop:
        column = tl.arange(0, columns)
        total = tl.zeros((columns,), tl.float32)
        for at in range(start, stop, tile):
            entries = at + tl.arange(0, tile)
            present = entries < stop
            chosen = tl.load(sets + entries, mask=present, other=0)
            total += tl.sum(
                tl.load(powers + chosen[:, None] + column[None, :] * num_sets, mask=present[:, None], other=0.0), axis=0
            )
        _put(out, total, column.to(tl.int64) * num_nodes + node, column < columns, alone)


@triton.jit
def reflect(
    out, rows, relations, powers, totals, neighbors, sets, pieces, places, num_out, num_pieces, num_nodes, num_sets,
    dim, blocks: tl.constexpr, width: tl.constexpr, tile: tl.constexpr, some: tl.constexpr,
):  # fmt: skip
    """out[block, i] = sum over i's pairs of a (h - 2 (h . R) R); with `some` only of nodes with a place, at it."""
    piece = tl.program_id(0)
    node = tl.load(pieces + piece)
    start = tl.load(pieces + num_pieces + piece)
    stop = tl.load(pieces + 2 * num_pieces + piece)
    alone = tl.load(pieces + 3 * num_pieces + piece)
    place = node
    if some:
        place = tl.load(places + node)
        stop = tl.where(place >= 0, stop, start)
    if start < stop:
        numbers, block = tl.arange(0, width), tl.arange(0, blocks).to(tl.int64)
        inside = numbers < dim
        total = tl.zeros((blocks, width), tl.float32)
        for at in range(start, stop, tile):
            entries = at + tl.arange(0, tile)
            present = entries < stop
            column = tl.load(neighbors + entries, mask=present, other=0)
            chosen = tl.load(sets + entries, mask=present, other=0)
            weight = tl.load(powers + chosen[:, None] + block[None, :] * num_sets, mask=present[:, None], other=0.0)
            mask = present[:, None] & inside[None, :]
            unit = tl.load(relations + chosen[:, None] * dim + numbers[None, :], mask=mask, other=0.0)[:, None, :]
            row = block[None, :] * num_nodes + column[:, None]
            near = tl.load(rows + row[:, :, None] * dim + numbers[None, None, :], mask=mask[:, None, :], other=0.0)
            along = 2.0 * tl.sum(near * unit, axis=2)
            total += tl.sum(weight[:, :, None] * (near - along[:, :, None] * unit), axis=0)
        total = total / tl.load(totals + block * num_nodes + node)[:, None]
        at = (block * num_out + place)[:, None] * dim + numbers[None, :]
        _put(out, total, at, inside[None, :] & (block >= 0)[:, None], alone)


@triton.jit
def pull_back(
    out, grads, relations, powers, totals, neighbors, sets, inverse, pieces, places, num_out, num_pieces, num_nodes,
    num_sets, dim, blocks: tl.constexpr, width: tl.constexpr, tile: tl.constexpr, some: tl.constexpr,
):  # fmt: skip
    """out[block, j] = sum over the receivers i of j of a_ij (g - 2 (g . R) R); with `some` only those with a place."""
    piece = tl.program_id(0)
    node = tl.load(pieces + piece)
    start = tl.load(pieces + num_pieces + piece)
    stop = tl.load(pieces + 2 * num_pieces + piece)
    alone = tl.load(pieces + 3 * num_pieces + piece)
    if start < stop:
        numbers, block = tl.arange(0, width), tl.arange(0, blocks).to(tl.int64)
        inside = numbers < dim
        total = tl.zeros((blocks, width), tl.float32)
        for at in range(start, stop, tile):
            entries = at + tl.arange(0, tile)
            present = entries < stop
            column = tl.load(neighbors + entries, mask=present, other=0)
            place = column
            if some:
                place = tl.load(places + column, mask=present, other=-1)
                present = place >= 0
            # The set of the pair as the receiver sees it.
            own = tl.load(sets + entries, mask=present, other=0)
            chosen = tl.load(inverse + own, mask=present, other=0)
            both = present[:, None] & (block >= 0)[None, :]
            weight = tl.load(powers + chosen[:, None] + block[None, :] * num_sets, mask=both, other=0.0)
            weight = weight / tl.load(totals + block[None, :] * num_nodes + column[:, None], mask=both, other=1.0)
            mask = present[:, None] & inside[None, :]
            unit = tl.load(relations + chosen[:, None] * dim + numbers[None, :], mask=mask, other=0.0)[:, None, :]
            row = block[None, :] * num_out + place[:, None]
            grad = tl.load(grads + row[:, :, None] * dim + numbers[None, None, :], mask=mask[:, None, :], other=0.0)
            along = 2.0 * tl.sum(grad * unit, axis=2)
            total += tl.sum(weight[:, :, None] * (grad - along[:, :, None] * unit), axis=0)
        at = (block * num_nodes + node)[:, None] * dim + numbers[None, :]
        _put(out, total, at, inside[None, :] & (block >= 0)[:, None], alone)


@triton.jit
def to_sets(
    out, out_logits, rows, grads, relations, powers, totals, centers, receivers, neighbors, pieces, places, num_out,
    num_pieces, num_nodes, num_sets, dim, width: tl.constexpr, tile: tl.constexpr, some: tl.constexpr,
):  # fmt: skip
    """Gradients of the relation vectors and of the logits, from pairs in the order of their sets, block by block."""
    piece, block = tl.program_id(0), tl.program_id(1)
    own_set = tl.load(pieces + piece)
    start = tl.load(pieces + num_pieces + piece)
    stop = tl.load(pieces + 2 * num_pieces + piece)
    if start < stop:
        base, grad_base = block.to(tl.int64) * num_nodes, block.to(tl.int64) * num_out
        numbers = tl.arange(0, width)
        inside = numbers < dim
        unit = tl.load(relations + own_set * dim + numbers, mask=inside, other=0.0)
        power = tl.load(powers + block * num_sets + own_set)
        total = tl.zeros((width,), tl.float32)
        gain = tl.zeros((tile,), tl.float32)
        for at in range(start, stop, tile):
            entries = at + tl.arange(0, tile)
            present = entries < stop
            receiver = tl.load(receivers + entries, mask=present, other=0)
            place = receiver
            if some:
                place = tl.load(places + receiver, mask=present, other=-1)
                present = place >= 0
            column = tl.load(neighbors + entries, mask=present, other=0)
            weight = power / tl.load(totals + base + receiver, mask=present, other=1.0)
            weight = tl.where(present, weight, 0.0)
            center = tl.load(centers + grad_base + place, mask=present, other=0.0)
            mask = present[:, None] & inside[None, :]
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


# Work on rows, number by number. What dropout drops follows from a number `noise` on the device and from where a value
# stands, so that the gradient drops the same without anything being kept: half of a random word of 32 bits decides on a
# value of the rows, the other half on one of the means.


@triton.jit
def _tanh(x):
    """Between -1 and 1 also where the exponential is infinite."""
    power = tl.exp(-2.0 * tl.abs(x))
    size = (1.0 - power) / (1.0 + power)
    return tl.where(x < 0, -size, size)


@triton.jit
def _apart(rows, sums, degrees, noise, at, row, inside, hidden, scale):
    """Row minus mean of neighbours after dropout, and the factors of dropout."""
    own = tl.load(rows + at, mask=inside, other=0.0)
    near = tl.load(sums + at, mask=inside, other=0.0)
    degree = tl.load(degrees + row, mask=inside, other=0.0)
    word = tl.randint(tl.load(noise), at)
    keep_own = tl.where((word & 0xFFFF) >= hidden, scale, 0.0)
    keep_near = tl.where(((word >> 16) & 0xFFFF) >= hidden, scale, 0.0)
    has_neighbors = tl.where(degree > 0, 1.0, 0.0)
    apart = (keep_own * own - keep_near * near / tl.maximum(degree, 1.0)) * has_neighbors
    return own, near, degree, apart, keep_own, keep_near


@triton.jit
def first_layers(
    out, loss, rows, sums, relation_sums, degrees, num_incident, noise, count, dim, hidden, scale, size: tl.constexpr
):  # fmt: skip
    """The first hidden rows of both blocks, and for each program its part of the reconstruction loss."""
    at = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    inside = at < count
    row = at // dim
    own, near, degree, apart, _, _ = _apart(rows, sums, degrees, noise, at, row, inside, hidden, scale)
    of_relations = tl.load(relation_sums + at, mask=inside, other=0.0)
    incident = tl.load(num_incident + row, mask=inside, other=0.0)
    tl.store(out + at, _tanh((own + near) / (degree + 1.0)), mask=inside)
    tl.store(out + count + at, _tanh(of_relations / tl.maximum(incident, 1.0)), mask=inside)
    tl.store(loss + tl.program_id(0), tl.sum(tl.where(inside, apart * apart, 0.0), axis=0))


@triton.jit
def first_layers_back(
    out_rows, out_sums, out_relations, grads, loss_grad, first, rows, sums, degrees, num_incident, noise,
    count, dim, hidden, scale, size: tl.constexpr,
):  # fmt: skip
    """Gradients of rows, of sums over neighbours and of sums over relation rows."""
    at = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    inside = at < count
    row = at // dim
    _, _, degree, apart, keep_own, keep_near = _apart(rows, sums, degrees, noise, at, row, inside, hidden, scale)
    value = tl.load(first + at, mask=inside, other=0.0)
    through = tl.load(grads + at, mask=inside, other=0.0) * (1.0 - value * value) / (degree + 1.0)
    pull = 2.0 * tl.load(loss_grad) * apart
    tl.store(out_rows + at, through + pull * keep_own, mask=inside)
    tl.store(out_sums + at, through - pull * keep_near / tl.maximum(degree, 1.0), mask=inside)
    value = tl.load(first + count + at, mask=inside, other=0.0)
    incident = tl.load(num_incident + row, mask=inside, other=0.0)
    through = tl.load(grads + count + at, mask=inside, other=0.0) * (1.0 - value * value)
    tl.store(out_relations + at, through / tl.maximum(incident, 1.0), mask=inside)


@triton.jit
def hide(out, values, noise, count, hidden, scale, size: tl.constexpr):
    """Values with some set to zero and the others scaled up; the gradient is the same."""
    at = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    inside = at < count
    word = tl.randint(tl.load(noise) + 1, at)
    value = tl.load(values + at, mask=inside, other=0.0)
    tl.store(out + at, tl.where((word & 0xFFFF) >= hidden, value * scale, 0.0), mask=inside)


@triton.jit
def rmsprop(rows, squares, grads, rate, count, alpha, eps, size: tl.constexpr):
    """One step of RMSprop without momentum."""
    at = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    inside = at < count
    grad = tl.load(grads + at, mask=inside, other=0.0)
    square = alpha * tl.load(squares + at, mask=inside, other=0.0) + (1.0 - alpha) * grad * grad
    value = tl.load(rows + at, mask=inside, other=0.0)
    tl.store(squares + at, square, mask=inside)
    tl.store(rows + at, value - tl.load(rate) * grad / (tl.sqrt(square) + eps), mask=inside)


@triton.jit
def weigh(
    z, losses, slopes, means, missing, counts, left, right, stride, num_columns, sharp, shift, width: tl.constexpr
):
    """`losses._weigh` of one row: centred z become weights, in place; its loss and slope."""
    row = tl.program_id(0)
    columns = tl.arange(0, width)
    inside = columns < num_columns
    mean = tl.load(means + row)
    absent = tl.load(missing + row)
    own = (columns == tl.load(left + row)) | (columns == tl.load(right + row))
    place = z + row.to(tl.int64) * stride + columns
    value = tl.load(place, mask=inside, other=0.0)
    value = tl.where(own, -mean, value)
    square_sum = tl.sum(tl.where(inside, value * value, 0.0), axis=0) + absent * mean * mean
    deviation = tl.sqrt(square_sum / tl.load(counts + row))
    sharpness = sharp / tl.maximum(deviation, 1.0842022e-19)
    zero = -mean * sharpness
    largest = tl.maximum(tl.max(tl.where(inside, value, float("-inf")), axis=0) * sharpness, zero)
    value = tl.exp(value * sharpness - largest)
    value = tl.where(own | (columns >= num_columns), 0.0, value)
    power = tl.sum(value, axis=0) + 2.0 * tl.exp(zero - largest)
    tl.store(place, value, mask=inside)
    tl.store(losses + row, tl.log(power) + largest + shift)
    tl.store(slopes + row, sharpness / power)
