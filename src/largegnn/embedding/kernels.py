"""Triton kernels for sums over neighbours and for elementwise work; imported only by `fused`, if Triton is installed.

In and out: pointers to arrays in the layout of `pair_graph`. Rows have `dim` numbers; a kernel's registers have `width`
numbers, the next power of two. A kernel over a pattern runs once for each piece, at most 128 entries of one row. The
result of a row with one piece is stored, the results of a row with several pieces are added up, so the output must be
zero before. Hidden rows are the arrays of `blocks` blocks of an encoder, one after another; a kernel computes all
blocks, since their pairs and sets are equal.
The idea: neighbours' rows and relation vectors fit into the cache of a GPU, so reading both for each pair costs less
than computing and storing a value for each pair or slot.
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
def _put(out, values, offsets, inside, alone):
    """Store the values if the row has no other piece (`alone`), otherwise add them."""
    if alone != 0:
        tl.store(out + offsets, values, mask=inside)
    else:
        tl.atomic_add(out + offsets, values, mask=inside)


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
        for first_entry in range(start, stop, tile):
            entries = first_entry + tl.arange(0, tile)
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
        for first_entry in range(start, stop, tile):
            entries = first_entry + tl.arange(0, tile)
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
    """out[block, i] = sum over i's pairs of a (h - 2 (h . R) R); with `some` only for nodes with a place, at it."""
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
        for first_entry in range(start, stop, tile):
            entries = first_entry + tl.arange(0, tile)
            present = entries < stop
            column = tl.load(neighbors + entries, mask=present, other=0)
            chosen = tl.load(sets + entries, mask=present, other=0)
            weight = tl.load(powers + chosen[:, None] + block[None, :] * num_sets, mask=present[:, None], other=0.0)
            mask = present[:, None] & inside[None, :]
            unit = tl.load(relations + chosen[:, None] * dim + numbers[None, :], mask=mask, other=0.0)[:, None, :]
            row = block[None, :] * num_nodes + column[:, None]
            neighbor = tl.load(rows + row[:, :, None] * dim + numbers[None, None, :], mask=mask[:, None, :], other=0.0)
            along = 2.0 * tl.sum(neighbor * unit, axis=2)
            total += tl.sum(weight[:, :, None] * (neighbor - along[:, :, None] * unit), axis=0)
        total = total / tl.load(totals + block * num_nodes + node)[:, None]
        offsets = (block * num_out + place)[:, None] * dim + numbers[None, :]
        _put(out, total, offsets, inside[None, :] & (block >= 0)[:, None], alone)


@triton.jit
def pull_back(
    out, grads, relations, powers, totals, neighbors, sets, inverse, pieces, places, num_out, num_pieces, num_nodes,
    num_sets, dim, blocks: tl.constexpr, width: tl.constexpr, tile: tl.constexpr, some: tl.constexpr,
):  # fmt: skip
    """out[block, j] = sum over j's receivers i of a_ij (g - 2 (g . R) R); with `some`, only receivers with a place."""
    piece = tl.program_id(0)
    node = tl.load(pieces + piece)
    start = tl.load(pieces + num_pieces + piece)
    stop = tl.load(pieces + 2 * num_pieces + piece)
    alone = tl.load(pieces + 3 * num_pieces + piece)
    if start < stop:
        numbers, block = tl.arange(0, width), tl.arange(0, blocks).to(tl.int64)
        inside = numbers < dim
        total = tl.zeros((blocks, width), tl.float32)
        for first_entry in range(start, stop, tile):
            entries = first_entry + tl.arange(0, tile)
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
        offsets = (block * num_nodes + node)[:, None] * dim + numbers[None, :]
        _put(out, total, offsets, inside[None, :] & (block >= 0)[:, None], alone)


@triton.jit
def to_sets(
    out, out_logits, rows, grads, relations, powers, totals, centers, receivers, neighbors, pieces, places, num_out,
    num_pieces, num_nodes, num_sets, dim, width: tl.constexpr, tile: tl.constexpr, some: tl.constexpr,
):  # fmt: skip
    """Gradients of the relation vectors and of the logits, by set, with a program for each piece and block."""
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
        for first_entry in range(start, stop, tile):
            entries = first_entry + tl.arange(0, tile)
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
            neighbor = tl.load(rows + (base + column)[:, None] * dim + numbers[None, :], mask=mask, other=0.0)
            grad = tl.load(grads + (grad_base + place)[:, None] * dim + numbers[None, :], mask=mask, other=0.0)
            neighbor_along = tl.sum(neighbor * unit[None, :], axis=1)
            grad_along = tl.sum(grad * unit[None, :], axis=1)
            both = tl.sum(neighbor * grad, axis=1)
            gain += weight * (both - 2.0 * neighbor_along * grad_along - center)
            turned = neighbor_along[:, None] * grad + grad_along[:, None] * neighbor
            total += tl.sum(weight[:, None] * turned, axis=0)
        tl.atomic_add(out + own_set * dim + numbers, -2.0 * total, mask=inside)
        tl.atomic_add(out_logits + block * num_sets + own_set, tl.sum(gain, axis=0))


# Elementwise kernels. Dropout is a function of the seed `noise` on the device and of a value's index, so the backward
# pass drops the same values and no mask is kept. In `_difference`, one half of a random 32-bit word decides on the
# value of the row and the other half on the value of the mean.


@triton.jit
def _tanh(x):
    """Hyperbolic tangent; the exponent is never positive, so nothing overflows."""
    power = tl.exp(-2.0 * tl.abs(x))
    size = (1.0 - power) / (1.0 + power)
    return tl.where(x < 0, -size, size)


@triton.jit
def _difference(rows, sums, degrees, noise, offsets, row, inside, hidden, scale):
    """Row minus mean of the neighbours' rows after dropout, with its inputs and the factors of dropout."""
    own = tl.load(rows + offsets, mask=inside, other=0.0)
    neighbor = tl.load(sums + offsets, mask=inside, other=0.0)
    degree = tl.load(degrees + row, mask=inside, other=0.0)
    word = tl.randint(tl.load(noise), offsets)
    keep_own = tl.where((word & 0xFFFF) >= hidden, scale, 0.0)
    keep_neighbor = tl.where(((word >> 16) & 0xFFFF) >= hidden, scale, 0.0)
    has_neighbors = tl.where(degree > 0, 1.0, 0.0)
    difference = (keep_own * own - keep_neighbor * neighbor / tl.maximum(degree, 1.0)) * has_neighbors
    return own, neighbor, degree, difference, keep_own, keep_neighbor


@triton.jit
def first_layers(
    out, loss, rows, sums, relation_sums, degrees, num_incident, noise, count, dim, hidden, scale, size: tl.constexpr
):  # fmt: skip
    """The first hidden rows of both blocks, and each program's part of the reconstruction loss."""
    offsets = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    inside = offsets < count
    row = offsets // dim
    own, neighbor, degree, difference, _, _ = _difference(
        rows, sums, degrees, noise, offsets, row, inside, hidden, scale
    )
    of_relations = tl.load(relation_sums + offsets, mask=inside, other=0.0)
    incident = tl.load(num_incident + row, mask=inside, other=0.0)
    tl.store(out + offsets, _tanh((own + neighbor) / (degree + 1.0)), mask=inside)
    tl.store(out + count + offsets, _tanh(of_relations / tl.maximum(incident, 1.0)), mask=inside)
    tl.store(loss + tl.program_id(0), tl.sum(tl.where(inside, difference * difference, 0.0), axis=0))


@triton.jit
def first_layers_back(
    out_rows, out_sums, out_relations, grads, loss_grad, first, rows, sums, degrees, num_incident, noise,
    count, dim, hidden, scale, size: tl.constexpr,
):  # fmt: skip
    """Gradients of `first_layers` with respect to rows, sums over neighbours and sums over relation rows."""
    offsets = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    inside = offsets < count
    row = offsets // dim
    _, _, degree, difference, keep_own, keep_neighbor = _difference(
        rows, sums, degrees, noise, offsets, row, inside, hidden, scale
    )
    value = tl.load(first + offsets, mask=inside, other=0.0)
    through = tl.load(grads + offsets, mask=inside, other=0.0) * (1.0 - value * value) / (degree + 1.0)
    pull = 2.0 * tl.load(loss_grad) * difference
    tl.store(out_rows + offsets, through + pull * keep_own, mask=inside)
    tl.store(out_sums + offsets, through - pull * keep_neighbor / tl.maximum(degree, 1.0), mask=inside)
    value = tl.load(first + count + offsets, mask=inside, other=0.0)
    incident = tl.load(num_incident + row, mask=inside, other=0.0)
    through = tl.load(grads + count + offsets, mask=inside, other=0.0) * (1.0 - value * value)
    tl.store(out_relations + offsets, through / tl.maximum(incident, 1.0), mask=inside)


@triton.jit
def hide(out, values, noise, count, hidden, scale, size: tl.constexpr):
    """Dropout: some values are set to zero and the others scaled up; the gradient is computed by the same kernel."""
    offsets = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    inside = offsets < count
    word = tl.randint(tl.load(noise) + 1, offsets)
    value = tl.load(values + offsets, mask=inside, other=0.0)
    tl.store(out + offsets, tl.where((word & 0xFFFF) >= hidden, value * scale, 0.0), mask=inside)


@triton.jit
def rmsprop(rows, squares, grads, rate, count, alpha, eps, size: tl.constexpr):
    """One step of RMSprop without momentum, in place."""
    offsets = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    inside = offsets < count
    grad = tl.load(grads + offsets, mask=inside, other=0.0)
    square = alpha * tl.load(squares + offsets, mask=inside, other=0.0) + (1.0 - alpha) * grad * grad
    value = tl.load(rows + offsets, mask=inside, other=0.0)
    tl.store(squares + offsets, square, mask=inside)
    tl.store(rows + offsets, value - tl.load(rate) * grad / (tl.sqrt(square) + eps), mask=inside)


@triton.jit
def weigh(
    z, losses, slopes, means, missing, counts, left, right, stride, num_columns, scale, shift, width: tl.constexpr
):
    """Compute `losses._weigh` for one row: the centred z become weights, in place; store loss and slope."""
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
    sharpness = scale / tl.maximum(deviation, 1.0842022e-19)
    zero = -mean * sharpness
    largest = tl.maximum(tl.max(tl.where(inside, value, float("-inf")), axis=0) * sharpness, zero)
    value = tl.exp(value * sharpness - largest)
    value = tl.where(own | (columns >= num_columns), 0.0, value)
    power = tl.sum(value, axis=0) + 2.0 * tl.exp(zero - largest)
    tl.store(place, value, mask=inside)
    tl.store(losses + row, tl.log(power) + largest + shift)
    tl.store(slopes + row, sharpness / power)
