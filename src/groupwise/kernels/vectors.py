"""The vector loops, written out in LLVM because nothing less keeps the sums in registers.

Left to itself the compiler checks at every turn whether the arrays overlap, and writes each partial
sum to memory; that doubles the time of a round. Here a tile of sums stays in registers while the
rows go by. Every product enters its sum by a fused multiply-add, in the order of the rows: the
result does not depend on the tiling. Vectors hold four numbers; arrays have room for whole ones.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from groupwise.kernels.layout import LANES

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_WORD = ir.IntType(64)
_ZERO = ir.Constant(_VECTOR, [0.0] * LANES)


class _Emitter:
    """Short names for the few instructions needed."""

    def __init__(self, context: Any, builder: ir.IRBuilder) -> None:
        self.context = context
        self.builder = builder
        shape = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        self._fma = cgutils.get_or_insert_function(builder.module, shape, f"llvm.fma.v{LANES}f64")

    def word(self, value: int) -> ir.Constant:
        return ir.Constant(_WORD, value)

    def data(self, kind: Any, value: Any) -> Any:
        return self.context.make_array(kind)(self.context, self.builder, value).data

    def stride(self, kind: Any, value: Any) -> Any:
        """The length of a matrix's rows."""
        matrix = self.context.make_array(kind)(self.context, self.builder, value)
        return self.builder.extract_value(matrix.shape, 1)

    def load(self, pointer: Any, offset: Any) -> Any:
        place = self.builder.bitcast(self.builder.gep(pointer, [offset]), _VECTOR.as_pointer())
        return self.builder.load(place, align=8)

    def store(self, value: Any, pointer: Any, offset: Any) -> None:
        place = self.builder.bitcast(self.builder.gep(pointer, [offset]), _VECTOR.as_pointer())
        self.builder.store(value, place, align=8)

    def element(self, pointer: Any, offset: Any) -> Any:
        return self.builder.load(self.builder.gep(pointer, [offset]))

    def splat(self, number: Any) -> Any:
        start = self.builder.insert_element(
            ir.Constant(_VECTOR, ir.Undefined), number, ir.Constant(ir.IntType(32), 0)
        )
        return self.shuffle(start, start, (0,) * LANES)

    def shuffle(self, a: Any, b: Any, order: tuple[int, ...]) -> Any:
        mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), list(order))
        return self.builder.shuffle_vector(a, b, mask)

    def transposed(self, rows: list[Any]) -> list[Any]:
        """The columns of a block of four rows."""
        orders = (0, 4, 2, 6), (1, 5, 3, 7)
        above = [self.shuffle(rows[0], rows[1], order) for order in orders]
        below = [self.shuffle(rows[2], rows[3], order) for order in orders]
        halves = (0, 1, 4, 5), (2, 3, 6, 7)
        return [self.shuffle(above[i], below[i], half) for half in halves for i in range(2)]

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        return self.builder.call(self._fma, [a, b, c])

    def sums(self, *shape: int) -> Any:
        """Room for sums in registers: a list for every dimension."""
        if not shape:
            return cgutils.alloca_once(self.builder, _VECTOR)
        return [self.sums(*shape[1:]) for _ in range(shape[0])]

    def add_product(self, a: Any, b: Any, total: Any) -> None:
        self.builder.store(self.fma(a, b, self.builder.load(total)), total)

    @contextmanager
    def count_to(self, stop: Any) -> Iterator[Any]:
        with cgutils.for_range(self.builder, stop, intp=_WORD) as loop:
            yield loop.index

    def tiles(self, width: Any, body: Callable[[Any, int], None], largest: int) -> None:
        """Emit ``body(first column, vectors)`` for every tile: whole ones, then what is left."""
        b = self.builder
        vectors = b.sdiv(width, self.word(LANES))
        whole = b.sdiv(vectors, self.word(largest))
        with self.count_to(whole) as tile:
            body(b.mul(tile, self.word(largest * LANES)), largest)
        first = b.mul(whole, self.word(largest * LANES))
        rest = b.srem(vectors, self.word(largest))
        for size in range(1, largest):
            with b.if_then(b.icmp_signed("==", rest, self.word(size))):
                body(first, size)

    def offset(self, first: Any, vector: int) -> Any:
        return self.builder.add(first, self.word(vector * LANES))

    def combine(
        self,
        out: Any,
        keep: Any,
        matrix: tuple[Any, Any],
        row_of: Callable[[Any], Any],
        values: Any,
        count: Any,
        width: Any,
    ) -> None:
        """out = (out if keep else 0) + Σ_k values[k] · matrix[row_of(k)]."""
        b = self.builder
        cells, stride = matrix

        def tile(first: Any, size: int) -> None:
            sums = self.sums(size)
            for v in range(size):
                old = self.load(out, self.offset(first, v))
                b.store(b.select(keep, old, _ZERO), sums[v])
            with self.count_to(count) as k:
                factor = self.splat(self.element(values, k))
                start = b.add(b.mul(row_of(k), stride), first)
                for v in range(size):
                    self.add_product(factor, self.load(cells, self.offset(start, v)), sums[v])
            for v in range(size):
                self.store(b.load(sums[v]), out, self.offset(first, v))

        self.tiles(width, tile, 8)

    def dot(self, first: Any, second: Any, width: Any) -> Any:
        """The sum of products of two rows of whole vectors, in eight interleaved sums."""
        b = self.builder
        totals = self.sums(2)
        for total in totals:
            b.store(_ZERO, total)

        def tile(place: Any, size: int) -> None:
            for v in range(size):
                part = self.offset(place, v)
                self.add_product(self.load(first, part), self.load(second, part), totals[v])

        self.tiles(width, tile, 2)
        whole = b.fadd(*(b.load(total) for total in totals))
        pairs = b.fadd(whole, self.shuffle(whole, whole, (2, 3, 0, 1)))
        ends = [b.extract_element(pairs, ir.Constant(ir.IntType(32), i)) for i in range(2)]
        return b.fadd(*ends)


@intrinsic
def prefetch(typing_context, array, start, size):
    """Ask for cells ``start`` to ``start + size`` of an array, counted in row-major order."""
    line = 8

    def generate(context, builder, signature, arguments):
        emit = _Emitter(context, builder)
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


@intrinsic
def combine_rows(typing_context, out, matrix, xi, xv, width):
    """out = Σ_k xv[k] · matrix[xi[k]], over the first ``width`` columns."""

    def generate(context, builder, signature, arguments):
        emit = _Emitter(context, builder)
        kinds = signature.args
        out_data, cells, indices, values = (emit.data(kinds[i], arguments[i]) for i in range(4))
        chosen = context.make_array(kinds[2])(context, builder, arguments[2])
        emit.combine(
            out_data,
            ir.Constant(ir.IntType(1), 0),
            (cells, emit.stride(kinds[1], arguments[1])),
            lambda k: emit.element(indices, k),
            values,
            builder.extract_value(chosen.shape, 0),
            arguments[4],
        )
        return context.get_dummy_value()

    return types.void(out, matrix, xi, xv, types.int64), generate


@intrinsic
def combine_first(typing_context, out, keep, matrix, values, count, width):
    """out = (out if keep else 0) + Σ_k values[k] · matrix[k], over the first ``count`` rows."""

    def generate(context, builder, signature, arguments):
        emit = _Emitter(context, builder)
        kinds = signature.args
        out_data, cells, numbers = (emit.data(kinds[i], arguments[i]) for i in (0, 2, 3))
        matrix = cells, emit.stride(kinds[2], arguments[2])
        emit.combine(
            out_data, arguments[1], matrix, lambda k: k, numbers, arguments[4], arguments[5]
        )
        return context.get_dummy_value()

    return types.void(out, types.boolean, matrix, values, types.int64, types.int64), generate


@intrinsic
def dense_products(typing_context, out, matrix, values, starts, count, width):
    """out[r] = Σ_k values[starts[r] + k] · matrix[k] for four dense rows at once.

    The same sums in the same order as ``combine_first`` row by row, but the matrix passes by once
    instead of four times.
    """
    rows, vectors = 4, 3  # twelve sums, and four registers for what enters them

    def generate(context, builder, signature, arguments):
        emit = _Emitter(context, builder)
        kinds = signature.args
        out_data, cells, numbers, places = (emit.data(kinds[i], arguments[i]) for i in range(4))
        count, width = arguments[4], arguments[5]
        out_stride, stride = (emit.stride(kinds[i], arguments[i]) for i in range(2))
        offsets = [emit.element(places, emit.word(r)) for r in range(rows)]

        def tile(first: Any, size: int) -> None:
            sums = emit.sums(rows, size)
            for row_sums in sums:
                for total in row_sums:
                    builder.store(_ZERO, total)
            with emit.count_to(count) as k:
                start = builder.add(builder.mul(k, stride), first)
                parts = [emit.load(cells, emit.offset(start, v)) for v in range(size)]
                for row_sums, offset in zip(sums, offsets, strict=True):
                    factor = emit.splat(emit.element(numbers, builder.add(offset, k)))
                    for part, total in zip(parts, row_sums, strict=True):
                        emit.add_product(factor, part, total)
            for r, row_sums in enumerate(sums):
                place = builder.add(builder.mul(emit.word(r), out_stride), first)
                for v, total in enumerate(row_sums):
                    emit.store(builder.load(total), out_data, emit.offset(place, v))

        emit.tiles(width, tile, vectors)
        return context.get_dummy_value()

    return types.void(out, matrix, values, starts, types.int64, types.int64), generate


@intrinsic
def add_outer(typing_context, matrix, sign, rows, width, mirror):
    """matrix += sign · Σ_k rows[k] rows[k]ᵀ in the lower triangle, and above it if ``mirror``.

    A block of four rows by three vectors stays in registers while all rows go by. Above the
    diagonal are the same numbers: a product does not depend on the order of its factors.
    """
    vectors = 3

    def generate(context, builder, signature, arguments):
        emit = _Emitter(context, builder)
        kinds = signature.args
        cells, numbers = (emit.data(kinds[i], arguments[i]) for i in (0, 2))
        stride, row_stride = (emit.stride(kinds[i], arguments[i]) for i in (0, 2))
        all_rows = context.make_array(kinds[2])(context, builder, arguments[2])
        count = builder.extract_value(all_rows.shape, 0)
        sign, width, mirror = emit.splat(arguments[1]), arguments[3], arguments[4]

        with emit.count_to(builder.sdiv(width, emit.word(LANES))) as block:
            top = builder.mul(block, emit.word(LANES))

            def place(row: Any, i: int, column: Any) -> Any:
                return builder.add(builder.mul(builder.add(row, emit.word(i)), stride), column)

            def tile(first: Any, size: int) -> None:
                sums = emit.sums(LANES, size)
                cell = [(i, v) for i in range(LANES) for v in range(size)]
                for i, v in cell:
                    old = emit.load(cells, place(top, i, emit.offset(first, v)))
                    builder.store(old, sums[i][v])
                with emit.count_to(count) as k:
                    start = builder.mul(k, row_stride)
                    across, down = builder.add(start, first), builder.add(start, top)
                    parts = [
                        builder.fmul(sign, emit.load(numbers, emit.offset(across, v)))
                        for v in range(size)
                    ]
                    for i in range(LANES):
                        factor = emit.splat(emit.element(numbers, builder.add(down, emit.word(i))))
                        for v in range(size):
                            emit.add_product(factor, parts[v], sums[i][v])
                for i, v in cell:
                    new = builder.load(sums[i][v])
                    emit.store(new, cells, place(top, i, emit.offset(first, v)))
                with builder.if_then(mirror):
                    for v in range(size):
                        left = emit.offset(first, v)
                        with builder.if_then(builder.icmp_signed("<", left, top)):
                            columns = emit.transposed(
                                [builder.load(sums[i][v]) for i in range(LANES)]
                            )
                            for i in range(LANES):
                                emit.store(columns[i], cells, place(left, i, top))

            emit.tiles(builder.add(top, emit.word(LANES)), tile, vectors)
        return context.get_dummy_value()

    return (
        types.void(matrix, types.float64, rows, types.int64, types.boolean),
        generate,
    )


@intrinsic
def dense_dot(typing_context, first, second, width):
    """⟨first, second⟩ over whole vectors."""

    def generate(context, builder, signature, arguments):
        emit = _Emitter(context, builder)
        parts = (emit.data(signature.args[i], arguments[i]) for i in range(2))
        return emit.dot(*parts, arguments[2])

    return types.float64(first, second, types.int64), generate


@intrinsic
def dense_dots(typing_context, out, rows, count, vector, width):
    """out[j] = −⟨rows[j], vector⟩ over whole vectors, for the first ``count`` rows."""

    def generate(context, builder, signature, arguments):
        emit = _Emitter(context, builder)
        kinds = signature.args
        out_data, numbers, values = (emit.data(kinds[i], arguments[i]) for i in (0, 1, 3))
        stride = emit.stride(kinds[1], arguments[1])
        with emit.count_to(arguments[2]) as j:
            row = builder.gep(numbers, [builder.mul(j, stride)])
            total = builder.fneg(emit.dot(row, values, arguments[4]))
            builder.store(total, builder.gep(out_data, [j]))
        return context.get_dummy_value()

    return types.void(out, rows, types.int64, vector, types.int64), generate


@intrinsic
def add_and_scale(typing_context, total, step, scaled, factor, vector, width):
    """total += step · vector and scaled = factor · vector, over whole vectors."""

    def generate(context, builder, signature, arguments):
        emit = _Emitter(context, builder)
        kinds = signature.args
        sums, copies, values = (emit.data(kinds[i], arguments[i]) for i in (0, 2, 4))
        step, factor = emit.splat(arguments[1]), emit.splat(arguments[3])
        with emit.count_to(builder.sdiv(arguments[5], emit.word(LANES))) as v:
            place = builder.mul(v, emit.word(LANES))
            part = emit.load(values, place)
            emit.store(emit.fma(step, part, emit.load(sums, place)), sums, place)
            emit.store(builder.fmul(factor, part), copies, place)
        return context.get_dummy_value()

    return (
        types.void(total, types.float64, scaled, types.float64, vector, types.int64),
        generate,
    )
