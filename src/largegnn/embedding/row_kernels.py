"""Triton kernels for work on rows, number by number; imported on a machine that has Triton, by `fused_rows` alone.

In and out are pointers to arrays. What dropout hides follows from a number `noise` on the device and from where a value
stands, so that the gradient hides the same without anything being kept: half of a random word of 32 bits decides on a
value of the rows, the other half on one of the means.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["first_layers", "first_layers_back", "hide", "rmsprop", "weigh"]


@triton.jit
def _tanh(x):
    """Between -1 and 1 also where the exponential is infinite."""
    power = tl.exp(-2.0 * tl.abs(x))
    size = (1.0 - power) / (1.0 + power)
    return tl.where(x < 0, -size, size)


@triton.jit
def _apart(rows, sums, degrees, noise, at, row, inside, hidden, scale):
    """Row minus mean of neighbours after dropout, and what dropout multiplied the two by."""
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
