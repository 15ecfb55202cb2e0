"""Three vector loops written out in LLVM, because nothing less keeps the sums in registers.

Left to itself the compiler checks at every turn whether the arrays overlap, and writes each partial
sum to memory; that doubles the time of a round. Here columns are taken in tiles of up to eight
vectors of four numbers, whose sums stay in registers while the rows go by. Every product enters its
sum by a fused multiply-add, in the order of the rows: the result does not depend on the tiling.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 4
TILE = 8

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_WORD = ir.IntType(64)


class _Emitter:
    """Short names for the few instructions needed."""

    def __init__(self, context: Any, builder: ir.IRBuilder) -> None:
        self.context = context
        self.builder = builder
        shape = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        self._fma = cgutils.get_or_insert_function(
            builder.module, shape, f"llvm.fma.v{LANES}f64"
        )

    def word(self, value: int) -> ir.Constant:
        return ir.Constant(_WORD, value)

    def data(self, kind: Any, value: Any) -> Any:
        return self.context.make_array(kind)(self.context, self.builder, value).data

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
        mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(start, start, mask)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        return self.builder.call(self._fma, [a, b, c])

    @contextmanager
    def count_to(self, stop: Any) -> Iterator[Any]:
        with cgutils.for_range(self.builder, stop, intp=_WORD) as loop:
            yield loop.index

    def tiles(
        self, width: Any, body: Callable[[Any, int], None], largest: int = TILE
    ) -> None:
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


@intrinsic
def combine_rows(typing_context, out, keep, matrix, xi, xv, width):
    """out = (out if keep else 0) + Σ_k xv[k] · matrix[xi[k]], over the first ``width`` columns."""

    def generate(context, builder, signature, arguments):
        emit = _Emitter(context, builder)
        kinds = signature.args
        out_data, matrix_data, index_data, value_data = (
            emit.data(kinds[i], arguments[i]) for i in (0, 2, 3, 4)
        )
        keep, width = arguments[1], arguments[5]
        rows = context.make_array(kinds[2])(context, builder, arguments[2])
        stride = builder.extract_value(rows.shape, 1)
        chosen = context.make_array(kinds[3])(context, builder, arguments[3])
        count = builder.extract_value(chosen.shape, 0)

        def tile(first: Any, size: int) -> None:
            sums = [cgutils.alloca_once(builder, _VECTOR) for _ in range(size)]
            for v in range(size):
                old = emit.load(out_data, emit.offset(first, v))
                zero = ir.Constant(_VECTOR, [0.0] * LANES)
                builder.store(builder.select(keep, old, zero), sums[v])
            with emit.count_to(count) as k:
                factor = emit.splat(emit.element(value_data, k))
                start = builder.add(
                    builder.mul(emit.element(index_data, k), stride), first
                )
                for v in range(size):
                    cell = emit.load(matrix_data, emit.offset(start, v))
                    builder.store(emit.fma(factor, cell, builder.load(sums[v])), sums[v])
            for v in range(size):
                emit.store(builder.load(sums[v]), out_data, emit.offset(first, v))

        emit.tiles(width, tile)
        return context.get_dummy_value()

    return types.void(out, types.boolean, matrix, xi, xv, types.int64), generate


@intrinsic
def subtract_outer(typing_context, matrix, vector, width):
    """matrix −= vector vectorᵀ on the first ``width`` rows and columns; it stays symmetric."""

    def generate(context, builder, signature, arguments):
        emit = _Emitter(context, builder)
        matrix_data = emit.data(signature.args[0], arguments[0])
        vector_data = emit.data(signature.args[1], arguments[1])
        width = arguments[2]
        rows = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = builder.extract_value(rows.shape, 1)

        def tile(first: Any, size: int) -> None:
            part = [emit.load(vector_data, emit.offset(first, v)) for v in range(size)]
            with emit.count_to(width) as i:
                factor = emit.splat(builder.fneg(emit.element(vector_data, i)))
                start = builder.add(builder.mul(i, stride), first)
                for v in range(size):
                    place = emit.offset(start, v)
                    cell = emit.load(matrix_data, place)
                    emit.store(emit.fma(factor, part[v], cell), matrix_data, place)

        emit.tiles(width, tile)
        return context.get_dummy_value()

    return types.void(matrix, vector, types.int64), generate


@intrinsic
def dense_products(typing_context, out, matrix, values, starts, count, width):
    """out[r] = Σ_k values[starts[r] + k] · matrix[k] for four dense rows at once.

    The same sums in the same order as ``combine_rows`` row by row, but the matrix passes by once
    instead of four times.
    """
    rows = 4
    vectors = 2  # times four rows: as many sums as a tile of the other loops has

    def generate(context, builder, signature, arguments):
        emit = _Emitter(context, builder)
        kinds = signature.args
        out_data, matrix_data, value_data, start_data = (
            emit.data(kinds[i], arguments[i]) for i in range(4)
        )
        count, width = arguments[4], arguments[5]
        strides = [
            builder.extract_value(
                context.make_array(kinds[i])(context, builder, arguments[i]).shape, 1
            )
            for i in (0, 1)
        ]
        offsets = [emit.element(start_data, emit.word(r)) for r in range(rows)]

        def tile(first: Any, size: int) -> None:
            sums = [[cgutils.alloca_once(builder, _VECTOR) for _ in range(size)] for _ in offsets]
            zero = ir.Constant(_VECTOR, [0.0] * LANES)
            for row_sums in sums:
                for total in row_sums:
                    builder.store(zero, total)
            with emit.count_to(count) as k:
                start = builder.add(builder.mul(k, strides[1]), first)
                cells = [emit.load(matrix_data, emit.offset(start, v)) for v in range(size)]
                for row_sums, offset in zip(sums, offsets, strict=True):
                    factor = emit.splat(emit.element(value_data, builder.add(offset, k)))
                    for cell, total in zip(cells, row_sums, strict=True):
                        builder.store(emit.fma(factor, cell, builder.load(total)), total)
            for r, row_sums in enumerate(sums):
                place = builder.add(builder.mul(emit.word(r), strides[0]), first)
                for v, total in enumerate(row_sums):
                    emit.store(builder.load(total), out_data, emit.offset(place, v))

        emit.tiles(width, tile, vectors)
        return context.get_dummy_value()

    return types.void(out, matrix, values, starts, types.int64, types.int64), generate
