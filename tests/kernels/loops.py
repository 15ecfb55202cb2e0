"""The vector loops as functions that can be called from Python, and what they make of random input.

Run as a script it prints a digest of that, so that processes with other settings can be compared.
"""

import hashlib

import numpy as np
from numba import njit

from groupwise.kernels import emitter, triangles, vectors


@njit
def fma(a, b, c):
    return vectors.fma(a, b, c)


@njit
def combine_rows(out, matrix, xi, xv, width):
    vectors.combine_rows(out, matrix, xi, xv, width)


@njit
def combine_first(out, keep, matrix, values, count, width):
    vectors.combine_first(out, keep, matrix, values, count, width)


@njit
def dense_products(out, matrix, values, starts, count, width):
    vectors.dense_products(out, matrix, values, starts, count, width)


@njit
def add_outer(matrix, rows, width):
    vectors.add_outer(matrix, rows, width)


@njit
def subtract_outer(matrix, rows, width):
    vectors.subtract_outer(matrix, rows, width)


@njit
def dense_dot(first, second, width):
    return vectors.dense_dot(first, second, width)


@njit
def dense_dots(out, rows, count, vector, width):
    vectors.dense_dots(out, rows, count, vector, width)


@njit
def add_and_scale(total, step, scaled, factor, vector, width):
    vectors.add_and_scale(total, step, scaled, factor, vector, width)


@njit
def dense_power(weights, vector, width):
    return vectors.dense_power(weights, vector, width)


@njit
def substitute(matrix, rest, solved, first, width):
    triangles.substitute(matrix, rest, solved, first, width)


@njit
def absorb(matrix, right, rest, solved, weight, label, first, width):
    triangles.absorb(matrix, right, rest, solved, weight, label, first, width)


@njit
def prefetch(array, start, size):
    vectors.prefetch(array, start, size)


def numbers(generator, *shape):
    """Numbers of all magnitudes, with zeros of either sign, subnormal and whole ones."""
    found = generator.normal(size=shape) * 2.0 ** generator.integers(-30, 30, size=shape)
    kind = generator.integers(0, 12, size=shape)
    found[kind == 0] = 0.0
    found[kind == 1] = -0.0
    found[kind == 2] *= 2.0**-1050
    found[kind == 3] = np.round(found[kind == 3])
    return found


def cases(widths, seed=0):
    """Pairs of a loop's name and its arguments."""
    generator = np.random.default_rng(seed)
    for width in widths:
        room = width + 4 * int(generator.integers(0, 3))
        count = int(generator.integers(0, 12))
        matrix, rows = numbers(generator, width + 4, room), numbers(generator, count, room)
        half = numbers(generator, room, room)
        square = np.tril(half) + np.tril(half, -1).T
        values, out = numbers(generator, 6 * width), numbers(generator, room)
        xi = np.sort(generator.choice(width, size=min(width, count), replace=False))
        yield "combine_rows", (out.copy(), matrix, xi, values[: xi.size].copy(), width)
        for keep in (True, False):
            some = min(count, width)
            yield "combine_first", (out.copy(), keep, matrix, values, some, width)
        for name in ("add_outer", "subtract_outer"):
            yield name, (square.copy(), rows, width)
            yield name, (half.copy(), rows, width)
        starts = generator.integers(0, 5 * width, size=4)
        yield "dense_products", (np.zeros((4, room)), matrix, values, starts, width, width)
        yield "dense_dot", (values[:room].copy(), out, width)
        yield "dense_dots", (np.zeros(count + 1), rows, count, out, width)
        step, factor = numbers(generator, 2).tolist()
        yield "add_and_scale", (out.copy(), step, np.ones(room), factor, values[:room], width)
        yield "dense_power", (values[:room].copy(), out, width)
        first = 4 * int(generator.integers(0, width // 4))
        triangle = np.triu(generator.normal(size=(room, room)) / room, 1)
        triangle += np.diag(1.0 + generator.random(room))
        row, solved, right = (numbers(generator, room) for _ in range(3))
        yield "substitute", (triangle, row.copy(), solved, first, width)
        yield "absorb", (triangle, right, row, solved, 0.7, 0.3, first, width)


def digest(widths, seed=0):
    """What all loops make of their cases, every bit of it."""
    found = hashlib.sha256()
    for name, arguments in cases(widths, seed):
        result = globals()[name](*arguments)
        for part in (*arguments, result):
            found.update(np.asarray(0.0 if part is None else part).tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    print(emitter.WIDTH, digest([*range(4, 84, 4), 100, 128, 132, 200, 204, 256]))
