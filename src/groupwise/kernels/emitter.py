"""The instructions that the vector loops are made of: vectors, tiles and sums in registers.

Arrays have room for whole vectors of four (``LANES``); where the processor's hold eight, the last
one of a row may be a half.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from groupwise.kernels import reference
from groupwise.kernels.addresses import INTERPRETED, WORD
from groupwise.kernels.layout import LANES

DOUBLE = ir.DoubleType()
LANE = ir.IntType(32)


def _width() -> int:
    """Eight where the processor that is compiled for has AVX-512, else four."""
    wanted = os.environ.get("GROUPWISE_VECTOR_WIDTH", "")
    if wanted not in ("", "4", "8"):
        raise ValueError(f"GROUPWISE_VECTOR_WIDTH is {wanted!r}. Set it to 4 or 8, or not at all.")
    features = cpu_target.target_context.codegen().magic_tuple()[2].split(",")
    return int(wanted or (8 if "+avx512f" in features else 4))


WIDTH = _width()
"""Numbers in a vector of the processor. ``GROUPWISE_VECTOR_WIDTH`` overrules what it has."""


def vector_of(lanes: int) -> ir.VectorType:
    return ir.VectorType(DOUBLE, lanes)


def _zero(lanes: int) -> ir.Constant:
    return ir.Constant(vector_of(lanes), [0.0] * lanes)


def parts_of(columns: int, widest: int = WIDTH) -> list[tuple[int, int]]:
    """The vectors of a tile: their first column and their size, widest ones first."""
    wide = columns - columns % widest
    parts = [(column, widest) for column in range(0, wide, widest)]
    return parts + [(column, LANES) for column in range(wide, columns, LANES)]


class Emitter:
    """Short names for the few instructions needed."""

    def __init__(self, context: Any, builder: ir.IRBuilder) -> None:
        self.context = context
        self.builder = builder

    def word(self, value: int) -> ir.Constant:
        return ir.Constant(WORD, value)

    def data(self, kind: Any, value: Any) -> Any:
        return self.context.make_array(kind)(self.context, self.builder, value).data

    def length(self, kind: Any, value: Any, axis: int) -> Any:
        """The length of an array along an axis: along the last, the distance of its rows."""
        array = self.context.make_array(kind)(self.context, self.builder, value)
        return self.builder.extract_value(array.shape, axis)

    def _place(self, pointer: Any, offset: Any, kind: ir.VectorType) -> Any:
        return self.builder.bitcast(self.builder.gep(pointer, [offset]), kind.as_pointer())

    def load(self, pointer: Any, offset: Any, lanes: int) -> Any:
        return self.builder.load(self._place(pointer, offset, vector_of(lanes)), align=8)

    def store(self, value: Any, pointer: Any, offset: Any) -> None:
        self.builder.store(value, self._place(pointer, offset, value.type), align=8)

    def element(self, pointer: Any, offset: Any) -> Any:
        return self.builder.load(self.builder.gep(pointer, [offset]))

    def splat(self, number: Any, lanes: int) -> Any:
        start = self.builder.insert_element(
            ir.Constant(vector_of(lanes), ir.Undefined), number, ir.Constant(LANE, 0)
        )
        return self.shuffle(start, start, (0,) * lanes)

    def shuffle(self, a: Any, b: Any, order: Sequence[int]) -> Any:
        mask = ir.Constant(ir.VectorType(LANE, len(order)), list(order))
        return self.builder.shuffle_vector(a, b, mask)

    def transposed(self, rows: list[Any]) -> list[Any]:
        """The columns of a block with as many rows as columns."""
        size = len(rows)
        step = 1
        while step < size:  # blocks of this size change places across their diagonal
            upper = [i if not i & step else size + i - step for i in range(size)]
            lower = [i + step if not i & step else size + i for i in range(size)]
            exchanged = list(rows)
            for i in range(size):
                if not i & step:
                    pair = rows[i], rows[i + step]
                    exchanged[i] = self.shuffle(*pair, upper)
                    exchanged[i + step] = self.shuffle(*pair, lower)
            rows, step = exchanged, 2 * step
        return rows

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        shape = ir.FunctionType(a.type, [a.type] * 3)
        name = f"llvm.fma.v{a.type.count}f64"
        function = cgutils.get_or_insert_function(self.builder.module, shape, name)
        return self.builder.call(function, [a, b, c])

    def root(self, a: Any) -> Any:
        shape = ir.FunctionType(a.type, [a.type])
        name = f"llvm.sqrt.v{a.type.count}f64"
        function = cgutils.get_or_insert_function(self.builder.module, shape, name)
        return self.builder.call(function, [a])

    def sum(self, lanes: int, start: Any = None) -> Any:
        """Room for a vector of sums in registers, 0 at first unless ``start`` is given."""
        total = cgutils.alloca_once(self.builder, vector_of(lanes))
        self.builder.store(_zero(lanes) if start is None else start, total)
        return total

    def add_product(self, a: Any, b: Any, total: Any) -> None:
        self.builder.store(self.fma(a, b, self.builder.load(total)), total)

    def call(self, name: str, body: Callable[..., None], arguments: Sequence[Any]) -> Any:
        """Call a function with this body, which stands once in what is compiled together."""
        module, name = self.builder.module, f"groupwise.{name}.{WIDTH}"
        function = module.globals.get(name)
        if function is None:
            shape = ir.FunctionType(ir.VoidType(), [value.type for value in arguments])
            function = ir.Function(module, shape, name)
            function.linkage = "linkonce_odr"
            function.attributes.add("noinline")
            inner = Emitter(self.context, ir.IRBuilder(function.append_basic_block()))
            body(inner, *function.args)
            inner.builder.ret_void()
        self.builder.call(function, arguments)
        return self.context.get_dummy_value()

    @contextmanager
    def count_to(self, stop: Any) -> Iterator[Any]:
        with cgutils.for_range(self.builder, stop, intp=WORD) as loop:
            yield loop.index

    def tiles(
        self, width: Any, body: Callable[[Any, int], None], largest: int, least: int = LANES
    ) -> None:
        """Emit ``body(first column, columns)`` for every tile: whole ones, then what is left."""
        b = self.builder
        whole = b.sdiv(width, self.word(largest))
        with self.count_to(whole) as tile:
            body(b.mul(tile, self.word(largest)), largest)
        first = b.mul(whole, self.word(largest))
        rest = b.srem(width, self.word(largest))
        for columns in range(least, largest, least):
            with b.if_then(b.icmp_signed("==", rest, self.word(columns))):
                body(first, columns)

    def offset(self, first: Any, column: int) -> Any:
        return self.builder.add(first, self.word(column))

    def combine(
        self,
        out: Any,
        keep: Any,
        cells: Any,
        stride: Any,
        indices: Any,
        values: Any,
        count: Any,
        width: Any,
    ) -> None:
        """out = (out if keep else 0) + Σ_k values[k] · matrix[indices[k]]; row k without indices.

        In vectors of four: every product needs a load of its own, and one of eight that crosses
        two cache lines takes longer than two of four.
        """
        b = self.builder

        def tile(first: Any, columns: int) -> None:
            parts = parts_of(columns, LANES)
            sums = []
            for column, lanes in parts:
                old = self.load(out, self.offset(first, column), lanes)
                sums.append(self.sum(lanes, b.select(keep, old, _zero(lanes))))
            with self.count_to(count) as k:
                row = k if indices is None else self.element(indices, k)
                factor = self.splat(self.element(values, k), LANES)
                start = b.add(b.mul(row, stride), first)
                for (column, lanes), total in zip(parts, sums, strict=True):
                    part = self.load(cells, self.offset(start, column), lanes)
                    self.add_product(factor, part, total)
            for (column, _), total in zip(parts, sums, strict=True):
                self.store(b.load(total), out, self.offset(first, column))

        self.tiles(width, tile, 8 * LANES)

    def dot(self, first: Any, second: Any, width: Any, squared: bool = False) -> Any:
        """The sum of products of two rows of whole vectors, in eight interleaved sums.

        With the squares of the second one's numbers if ``squared``.
        """
        b = self.builder

        def add(place: Any, lanes: int, total: Any) -> None:
            one, other = (self.load(row, place, lanes) for row in (first, second))
            self.add_product(one, b.fmul(other, other) if squared else other, total)

        parts = parts_of(2 * LANES)
        totals = [self.sum(lanes) for _, lanes in parts]
        turns = b.sdiv(width, self.word(2 * LANES))
        with self.count_to(turns) as turn:
            start = b.mul(turn, self.word(2 * LANES))
            for (column, lanes), total in zip(parts, totals, strict=True):
                add(self.offset(start, column), lanes, total)
        sums = [b.load(total) for total in totals]
        if WIDTH > LANES:
            sums = [self.shuffle(sums[0], sums[0], range(i, i + LANES)) for i in (0, LANES)]
        lower = self.sum(LANES, sums[0])
        rest = b.srem(width, self.word(2 * LANES))
        with b.if_then(b.icmp_signed("!=", rest, self.word(0))):
            add(b.sub(width, rest), LANES, lower)
        four = b.fadd(b.load(lower), sums[1])
        pairs = b.fadd(four, self.shuffle(four, four, (2, 3, 0, 1)))
        ends = [b.extract_element(pairs, ir.Constant(LANE, i)) for i in range(2)]
        return b.fadd(*ends)


def loop(function: Callable[..., Any]) -> Any:
    """Make an intrinsic of a function; where kernels run as plain Python, its reference."""
    return getattr(reference, function.__name__) if INTERPRETED else intrinsic(function)
