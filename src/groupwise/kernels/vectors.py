"""The vector loops, written out in LLVM because nothing less keeps the sums in registers.

Left to itself the compiler checks at every turn whether the arrays overlap, and writes each partial
sum to memory; that doubles the time of a round. Here a tile of sums stays in registers while the
rows go by. Every product enters its sum by a fused multiply-add, in the order of the rows: the
result depends neither on the tiling nor on how many numbers a vector of the processor holds.
"""

from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import RequireLiteralValue

from groupwise.kernels.addresses import WORD, array_at
from groupwise.kernels.emitter import DOUBLE, WIDTH, Emitter, loop, parts_of
from groupwise.kernels.layout import LANES

LARGE = 64
"""Columns from which on a matrix is worth blocks of eight rows: what is above the diagonal is then
written a whole cache line at a time."""


@loop
def fma(typing_context, a, b, c):
    """a·b + c with a single rounding, in every driver and on every machine alike."""

    def generate(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@loop
def prefetch(typing_context, array, start, size):
    """Ask for cells ``start`` to ``start + size`` of an array, counted in row-major order."""
    line = 8

    def generate(context, builder, signature, arguments):
        emit = Emitter(context, builder)
        cells = emit.data(signature.args[0], arguments[0])
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        fetch = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0i8")
        lines = builder.sdiv(builder.add(arguments[2], emit.word(line - 1)), emit.word(line))
        with emit.count_to(lines) as i:
            place = builder.add(arguments[1], builder.mul(i, emit.word(line)))
            address = builder.bitcast(builder.gep(cells, [place]), byte)
            write, near, data = (ir.Constant(flag, value) for value in (0, 3, 1))
            builder.call(fetch, [address, write, near, data])
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@loop
def combine_rows(typing_context, out, matrix, xi, xv, width):
    """out = Σ_k xv[k] · matrix[xi[k]], over the first ``width`` columns."""

    def body(emit, out, cells, stride, indices, values, count, width):
        keep = ir.Constant(ir.IntType(1), 0)
        emit.combine(out, keep, cells, stride, indices, values, count, width)

    def generate(context, builder, signature, arguments):
        emit = Emitter(context, builder)
        kinds = signature.args
        out, cells, indices, values = (emit.data(kinds[i], arguments[i]) for i in range(4))
        stride = emit.length(kinds[1], arguments[1], 1)
        count = emit.length(kinds[2], arguments[2], 0)
        parts = out, cells, stride, indices, values, count, arguments[4]
        return emit.call("combine_rows", body, parts)

    return types.void(out, matrix, xi, xv, types.int64), generate


@loop
def combine_first(typing_context, out, keep, matrix, values, count, width):
    """out = (out if keep else 0) + Σ_k values[k] · matrix[k], over the first ``count`` rows."""

    def body(emit, out, keep, cells, stride, values, count, width):
        emit.combine(out, keep, cells, stride, None, values, count, width)

    def generate(context, builder, signature, arguments):
        emit = Emitter(context, builder)
        kinds = signature.args
        out, cells, values = (emit.data(kinds[i], arguments[i]) for i in (0, 2, 3))
        stride = emit.length(kinds[2], arguments[2], 1)
        parts = out, arguments[1], cells, stride, values, *arguments[4:]
        return emit.call("combine_first", body, parts)

    return types.void(out, types.boolean, matrix, values, types.int64, types.int64), generate


@loop
def dense_products(typing_context, out, matrix, values, starts, count, width):
    """out[r] = Σ_k values[starts[r] + k] · matrix[k] for four dense rows at once.

    The same sums in the same order as ``combine_first`` row by row, but the matrix passes by once
    instead of four times.
    """
    rows = 4
    # Twelve sums and four registers for what enters them; AVX-512 has twice as many registers.
    vectors = 4 if WIDTH > LANES else 3

    def body(emit, out, out_stride, cells, stride, values, starts, count, width):
        b = emit.builder
        offsets = [emit.element(starts, emit.word(r)) for r in range(rows)]

        def tile(first: Any, columns: int) -> None:
            parts = parts_of(columns)
            sums = [[emit.sum(lanes) for _, lanes in parts] for _ in range(rows)]
            with emit.count_to(count) as k:
                start = b.add(b.mul(k, stride), first)
                loaded = [emit.load(cells, emit.offset(start, c), lanes) for c, lanes in parts]
                for row_sums, offset in zip(sums, offsets, strict=True):
                    factor = emit.element(values, b.add(offset, k))
                    for part, total in zip(loaded, row_sums, strict=True):
                        emit.add_product(emit.splat(factor, part.type.count), part, total)
            for r, row_sums in enumerate(sums):
                place = b.add(b.mul(emit.word(r), out_stride), first)
                for (column, _), total in zip(parts, row_sums, strict=True):
                    emit.store(b.load(total), out, emit.offset(place, column))

        emit.tiles(width, tile, vectors * WIDTH)

    def generate(context, builder, signature, arguments):
        emit = Emitter(context, builder)
        kinds = signature.args
        out, cells, values, starts = (emit.data(kinds[i], arguments[i]) for i in range(4))
        out_stride, stride = (emit.length(kinds[i], arguments[i], 1) for i in range(2))
        parts = out, out_stride, cells, stride, values, starts, *arguments[4:]
        return emit.call("dense_products", body, parts)

    return types.void(out, matrix, values, starts, types.int64, types.int64), generate


def _outer(name: str, matrix: Any, rows: Any, whole: bool) -> Any:
    """Add outer products to the lower triangle, or subtract them from the whole matrix.

    A block of four or eight rows by two vectors stays in registers while all rows go by. Above the
    diagonal are the same numbers: a product does not depend on the order of its factors. What is
    added is summed up first, and so enters the matrix with one rounding.
    """

    def body(emit, cells, stride, numbers, row_stride, count, width):
        b = emit.builder

        def place(row: Any, i: int, column: Any) -> Any:
            return b.add(b.mul(emit.offset(row, i), stride), column)

        def tile(top: Any, height: int, first: Any, columns: int) -> None:
            """Add to ``height`` rows from ``top`` on, in these columns."""
            parts = parts_of(columns)
            cell = [[place(top, i, emit.offset(first, c)) for c, _ in parts] for i in range(height)]
            sums = [
                [
                    emit.sum(lanes, emit.load(cells, at, lanes) if whole else None)
                    for at, (_, lanes) in zip(row, parts, strict=True)
                ]
                for row in cell
            ]
            with emit.count_to(count) as k:
                start = b.mul(k, row_stride)
                across, down = b.add(start, first), b.add(start, top)
                loaded = [emit.load(numbers, emit.offset(across, c), lanes) for c, lanes in parts]
                signed = [b.fneg(part) if whole else part for part in loaded]
                for i, row_sums in enumerate(sums):
                    factor = emit.element(numbers, emit.offset(down, i))
                    for part, total in zip(signed, row_sums, strict=True):
                        emit.add_product(emit.splat(factor, part.type.count), part, total)
            new = [[b.load(total) for total in row_sums] for row_sums in sums]
            for at, row in zip(cell, new, strict=True):
                for offset, vector in zip(at, row, strict=True):
                    old = None if whole else emit.load(cells, offset, vector.type.count)
                    emit.store(vector if whole else b.fadd(old, vector), cells, offset)
            for (c, lanes), block in zip(parts, zip(*new, strict=True), strict=True):
                for half in range(0, lanes if whole else 0, height):
                    left = emit.offset(first, c + half)
                    order = range(half, half + height)
                    square = [emit.shuffle(row, row, order) for row in block]
                    with b.if_then(b.icmp_signed("<", left, top)):
                        for i, column in enumerate(emit.transposed(square)):
                            emit.store(column, cells, place(left, i, top))

        with emit.count_to(b.sdiv(width, emit.word(LANES))) as block:
            top = b.mul(block, emit.word(LANES))
            done = emit.word(0)
            if WIDTH > LANES:
                # With the next four rows, if there are that many, up to the block on the diagonal.
                even = b.and_(top, emit.word(-WIDTH))
                together = b.and_(
                    b.icmp_signed(">=", width, emit.word(LARGE)),
                    b.icmp_signed("<=", emit.offset(even, WIDTH), width),
                )
                done = b.select(together, even, done)
                with b.if_then(b.icmp_signed("==", top, done)):
                    emit.tiles(top, partial(tile, top, WIDTH), 2 * WIDTH, WIDTH)
            emit.tiles(
                b.sub(emit.offset(top, LANES), done),
                lambda first, columns: tile(top, LANES, b.add(done, first), columns),
                2 * WIDTH,
            )

    def generate(context, builder, signature, arguments):
        emit = Emitter(context, builder)
        kinds = signature.args
        cells, numbers = (emit.data(kinds[i], arguments[i]) for i in range(2))
        stride, row_stride = (emit.length(kinds[i], arguments[i], 1) for i in range(2))
        count = emit.length(kinds[1], arguments[1], 0)
        parts = cells, stride, numbers, row_stride, count, arguments[2]
        return emit.call(name, body, parts)

    return types.void(matrix, rows, types.int64), generate


@loop
def add_outer(typing_context, matrix, rows, width):
    """matrix += Σ_k rows[k] rows[k]ᵀ in the lower triangle."""
    return _outer("add_outer", matrix, rows, whole=False)


@loop
def subtract_outer(typing_context, matrix, rows, width):
    """matrix −= Σ_k rows[k] rows[k]ᵀ, a symmetric matrix."""
    return _outer("subtract_outer", matrix, rows, whole=True)


@loop
def dense_dot(typing_context, first, second, width):
    """⟨first, second⟩ over whole vectors."""

    def generate(context, builder, signature, arguments):
        emit = Emitter(context, builder)
        parts = (emit.data(signature.args[i], arguments[i]) for i in range(2))
        return emit.dot(*parts, arguments[2])

    return types.float64(first, second, types.int64), generate


@loop
def dense_dots(typing_context, out, rows, count, vector, width):
    """out[j] = −⟨rows[j], vector⟩ over whole vectors, for the first ``count`` rows."""

    def generate(context, builder, signature, arguments):
        emit = Emitter(context, builder)
        kinds = signature.args
        out_data, numbers, values = (emit.data(kinds[i], arguments[i]) for i in (0, 1, 3))
        stride = emit.length(kinds[1], arguments[1], 1)
        with emit.count_to(arguments[2]) as j:
            row = builder.gep(numbers, [builder.mul(j, stride)])
            total = builder.fneg(emit.dot(row, values, arguments[4]))
            builder.store(total, builder.gep(out_data, [j]))
        return context.get_dummy_value()

    return types.void(out, rows, types.int64, vector, types.int64), generate


@loop
def add_and_scale(typing_context, total, step, scaled, factor, vector, width):
    """total += step · vector and scaled = factor · vector, over whole vectors."""

    def generate(context, builder, signature, arguments):
        emit = Emitter(context, builder)
        kinds = signature.args
        sums, copies, values = (emit.data(kinds[i], arguments[i]) for i in (0, 2, 4))

        def tile(first: Any, columns: int) -> None:
            for column, lanes in parts_of(columns):
                place = emit.offset(first, column)
                step, factor = (emit.splat(arguments[i], lanes) for i in (1, 3))
                part = emit.load(values, place, lanes)
                emit.store(emit.fma(step, part, emit.load(sums, place, lanes)), sums, place)
                emit.store(builder.fmul(factor, part), copies, place)

        emit.tiles(arguments[5], tile, WIDTH)
        return context.get_dummy_value()

    return (
        types.void(total, types.float64, scaled, types.float64, vector, types.int64),
        generate,
    )


@loop
def scale(typing_context, out, factor, vector, width):
    """out = factor · vector, over whole vectors."""

    def generate(context, builder, signature, arguments):
        emit = Emitter(context, builder)
        kinds = signature.args
        copies, values = (emit.data(kinds[i], arguments[i]) for i in (0, 2))

        def tile(first: Any, columns: int) -> None:
            for column, lanes in parts_of(columns):
                place = emit.offset(first, column)
                part = builder.fmul(
                    emit.splat(arguments[1], lanes), emit.load(values, place, lanes)
                )
                emit.store(part, copies, place)

        emit.tiles(arguments[3], tile, WIDTH)
        return context.get_dummy_value()

    return types.void(out, types.float64, vector, types.int64), generate


@loop
def scratch(typing_context, size):
    """Room for a known number of numbers, gone when the function that asks for it returns."""
    if not isinstance(size, types.IntegerLiteral):
        raise RequireLiteralValue("The size must be a constant.")
    count = size.literal_value
    kind = types.Array(types.float64, 1, "C")

    def generate(context, builder, signature, arguments):
        room = cgutils.alloca_once(builder, DOUBLE, size=ir.Constant(WORD, count))
        return array_at(context, builder, kind, room, [ir.Constant(WORD, count)])

    return kind(size), generate


@loop
def dense_power(typing_context, weights, vector, width):
    """Σ_j weights_j · vector_j², over whole vectors."""

    def generate(context, builder, signature, arguments):
        emit = Emitter(context, builder)
        parts = (emit.data(signature.args[i], arguments[i]) for i in range(2))
        return emit.dot(*parts, arguments[2], squared=True)

    return types.float64(weights, vector, types.int64), generate
