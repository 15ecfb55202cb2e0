"""The loops over triangular factors, written out in LLVM for the same reasons as ``vectors``."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from groupwise.kernels.emitter import DOUBLE, LANE, WIDTH, Emitter, loop, parts_of, vector_of
from groupwise.kernels.layout import LANES


@loop
def transpose(typing_context, out, matrix, first, count):
    """out[a, k] = matrix[k, first + a] for four columns and the first ``count`` rows of a matrix.

    ``count`` is rounded up to four: there must be as many rows.
    """

    def body(emit, out, out_stride, cells, stride, first, count):
        b = emit.builder
        with emit.count_to(b.sdiv(count, emit.word(LANES))) as block:
            top = b.mul(block, emit.word(LANES))
            rows = [
                emit.load(cells, b.add(b.mul(emit.offset(top, i), stride), first), LANES)
                for i in range(LANES)
            ]
            for a, column in enumerate(emit.transposed(rows)):
                emit.store(column, out, b.add(b.mul(emit.word(a), out_stride), top))

    def generate(context, builder, signature, arguments):
        emit = Emitter(context, builder)
        kinds = signature.args
        out, cells = (emit.data(kinds[i], arguments[i]) for i in range(2))
        out_stride, stride = (emit.length(kinds[i], arguments[i], 1) for i in range(2))
        body(emit, out, out_stride, cells, stride, *arguments[2:])
        return context.get_dummy_value()

    return types.void(out, matrix, types.int64, types.int64), generate


@loop
def reflect(typing_context, factor, rows, top, panel, weights, count, width):
    """Four reflections of the columns after ``top + 4``, of as many rows of a factor and of rows.

    With v_a = ``panel[a]``, of which 1 goes to row ``top + a`` of the factor R and the rest to the
    rows B, and for each column

        s_a = R_a + Σ_k v_ak B_k,    w_a = weights[a, a] s_a + Σ_{b<a} weights[a, b] w_b,

    R_a += w_a and B_k += Σ_a v_ak w_a. A tile of columns stays in registers between the two sums.
    """
    four = range(4)
    vectors = 3 if WIDTH > LANES else 2

    def body(emit, cells, stride, numbers, row_stride, top, turns, length, weights, count, width):
        b = emit.builder
        begin = emit.offset(top, 4)
        scalars = {
            (a, c): emit.element(weights, emit.word(4 * a + c)) for a in four for c in range(a + 1)
        }

        def tile(first: Any, columns: int) -> None:
            parts = parts_of(columns)
            first = b.add(begin, first)
            cell = [b.add(b.mul(emit.offset(top, a), stride), first) for a in four]
            old = [[emit.load(cells, emit.offset(at, c), n) for c, n in parts] for at in cell]
            sums = [
                [emit.sum(n, value) for (_, n), value in zip(parts, row, strict=True)]
                for row in old
            ]

            def turn(k: Any, a: int, lanes: int) -> Any:
                place = b.add(b.mul(emit.word(a), length), k)
                return emit.splat(emit.element(turns, place), lanes)

            with emit.count_to(count) as k:
                start = b.add(b.mul(k, row_stride), first)
                loaded = [emit.load(numbers, emit.offset(start, c), n) for c, n in parts]
                for a, row_sums in enumerate(sums):
                    for part, total in zip(loaded, row_sums, strict=True):
                        emit.add_product(turn(k, a, part.type.count), part, total)
            moved: list[list[Any]] = []
            for a, row_sums in enumerate(sums):
                row = []
                for v, ((column, n), total) in enumerate(zip(parts, row_sums, strict=True)):
                    value = b.fmul(emit.splat(scalars[a, a], n), b.load(total))
                    for c in range(a):
                        value = emit.fma(emit.splat(scalars[a, c], n), moved[c][v], value)
                    emit.store(b.fadd(old[a][v], value), cells, emit.offset(cell[a], column))
                    row.append(value)
                moved.append(row)
            with emit.count_to(count) as k:
                start = b.add(b.mul(k, row_stride), first)
                for v, (column, n) in enumerate(parts):
                    value = emit.load(numbers, emit.offset(start, column), n)
                    for a in four:
                        value = emit.fma(turn(k, a, n), moved[a][v], value)
                    emit.store(value, numbers, emit.offset(start, column))

        emit.tiles(b.sub(width, begin), tile, vectors * WIDTH)

    def generate(context, builder, signature, arguments):
        emit = Emitter(context, builder)
        kinds = signature.args
        cells, numbers, turns, shares = (emit.data(kinds[i], arguments[i]) for i in (0, 1, 3, 4))
        stride, row_stride, length = (emit.length(kinds[i], arguments[i], 1) for i in (0, 1, 3))
        top, count, width = (arguments[i] for i in (2, 5, 6))
        parts = cells, stride, numbers, row_stride, top, turns, length, shares, count, width
        return emit.call("reflect", body, parts)

    size = types.int64
    return types.void(factor, rows, size, panel, weights, size, size), generate


class _Four:
    """Four rows of an upper triangular matrix, those from ``top`` on, and what is behind them."""

    def __init__(self, emit: Emitter, cells: Any, stride: Any, top: Any) -> None:
        self.emit, self.cells, self.top = emit, cells, top
        self.after = emit.offset(top, LANES)
        b = emit.builder
        self.starts = [b.add(b.mul(emit.offset(top, i), stride), top) for i in range(LANES)]

    def numbers(self, array: Any) -> list[Any]:
        """Four numbers of an array, one by one."""
        return [self.emit.element(array, self.emit.offset(self.top, i)) for i in range(LANES)]

    def vector(self, numbers: list[Any]) -> Any:
        """Four numbers as a vector."""
        found = ir.Constant(vector_of(LANES), ir.Undefined)
        for i, number in enumerate(numbers):
            found = self.emit.builder.insert_element(found, number, ir.Constant(LANE, i))
        return found

    def subtract(self, rest: Any, width: Any, factors: list[Any], turns: list[list[Any]]) -> None:
        """rest −= factors_i · row_i behind the four, for one row after another.

        With ``turns``, keep and gain: row_i = keep_i · row_i + gain_i · rest, before each.
        """
        emit, b = self.emit, self.emit.builder

        def tile(first: Any, columns: int) -> None:
            for column, lanes in parts_of(columns):
                place = emit.offset(first, LANES + column)
                left = emit.load(rest, b.add(self.top, place), lanes)
                for i, start in enumerate(self.starts):
                    at = b.add(start, place)
                    row = emit.load(self.cells, at, lanes)
                    if turns:
                        keep, gain = (emit.splat(part[i], lanes) for part in turns)
                        emit.store(emit.fma(gain, left, b.fmul(keep, row)), self.cells, at)
                    left = emit.fma(b.fneg(emit.splat(factors[i], lanes)), row, left)
                emit.store(left, rest, b.add(self.top, place))

        emit.tiles(b.sub(width, self.after), tile, 2 * WIDTH)

    def solve(self, rest: Any) -> list[Any]:
        """The next four numbers u of Rᵀu = x, where ``rest`` is what is left of x."""
        emit, b = self.emit, self.emit.builder
        left, found = self.numbers(rest), []
        for i in range(LANES):
            # The division waits for nothing.
            pivot = emit.element(self.cells, emit.offset(self.starts[i], i))
            inverse = b.fdiv(ir.Constant(DOUBLE, 1.0), pivot)
            for m, number in enumerate(found):
                cell = emit.element(self.cells, emit.offset(self.starts[m], i))
                left[i] = b.fma(b.fneg(number), cell, left[i])
            found.append(b.fmul(left[i], inverse))
        return found


@loop
def substitute(typing_context, matrix, rest, solved, first, width):
    """Solve Rᵀu = x for upper triangular R, where x is 0 before ``first``, a multiple of four.

    ``solved`` is u from there on; ``rest`` is x, and is used up.
    """

    def body(emit, cells, stride, rest, solved, first, width):
        b = emit.builder
        with emit.count_to(b.sdiv(b.sub(width, first), emit.word(LANES))) as block:
            four = _Four(emit, cells, stride, b.add(first, b.mul(block, emit.word(LANES))))
            found = four.solve(rest)
            emit.store(four.vector(found), solved, four.top)
            four.subtract(rest, width, found, [])

    def generate(context, builder, signature, arguments):
        emit = Emitter(context, builder)
        kinds = signature.args
        cells, rest, solved = (emit.data(kinds[i], arguments[i]) for i in range(3))
        stride = emit.length(kinds[0], arguments[0], 1)
        return emit.call("substitute", body, (cells, stride, rest, solved, *arguments[3:]))

    return types.void(matrix, rest, solved, types.int64, types.int64), generate


@loop
def absorb(typing_context, matrix, right, rest, solved, weight, label, first, width):
    """The same, and on the way RᵀR += w x xᵀ and Rᵀz += w y x, by rotations.

    ``matrix`` is R and ``right`` z. With τ_j = 1 + w Σ_{i≤j} u_i², for one j after another

        R_j ← √(τ_{j−1}/τ_j) R_j + w u_j/√(τ_{j−1} τ_j) x,    x ← x − u_j R_j (the old one),

    and in the same way z_j with y in the place of x.
    """

    def body(emit, cells, stride, right, rest, solved, weight, label, first, width):
        b = emit.builder
        growth, error = (cgutils.alloca_once(b, DOUBLE) for _ in range(2))
        b.store(ir.Constant(DOUBLE, 1.0), growth)
        b.store(label, error)
        lanes = [ir.Constant(LANE, i) for i in range(LANES)]
        with emit.count_to(b.sdiv(b.sub(width, first), emit.word(LANES))) as block:
            four = _Four(emit, cells, stride, b.add(first, b.mul(block, emit.word(LANES))))
            found = four.solve(rest)
            u, z = four.vector(found), emit.load(right, four.top, LANES)
            emit.store(u, solved, four.top)
            added = b.fmul(emit.splat(weight, LANES), b.fmul(u, u))
            totals, errors = [b.load(growth)], [b.load(error)]
            for number, lane in zip(found, lanes, strict=True):
                totals.append(b.fadd(totals[-1], b.extract_element(added, lane)))
                errors.append(b.fma(b.fneg(number), b.extract_element(z, lane), errors[-1]))
            b.store(totals[-1], growth)
            b.store(errors[-1], error)
            before, after = (emit.root(four.vector(part)) for part in (totals[:-1], totals[1:]))
            keep = b.fdiv(before, after)
            gain = b.fdiv(b.fmul(emit.splat(weight, LANES), b.fdiv(u, after)), before)
            new = emit.fma(gain, four.vector(errors[:-1]), b.fmul(keep, z))
            emit.store(new, right, four.top)
            turns = [[b.extract_element(part, lane) for lane in lanes] for part in (keep, gain)]
            left = emit.load(rest, four.top, LANES)
            for i, start in enumerate(four.starts):
                row = emit.load(cells, start, LANES)
                scaled = b.fmul(emit.splat(turns[0][i], LANES), row)
                turned = emit.fma(emit.splat(turns[1][i], LANES), left, scaled)
                # Below the diagonal there is nothing, and nothing comes to it.
                order = [*range(i), *range(LANES + i, 2 * LANES)]
                emit.store(emit.shuffle(row, turned, order), cells, start)
                left = emit.fma(b.fneg(emit.splat(found[i], LANES)), row, left)
            four.subtract(rest, width, found, turns)

    def generate(context, builder, signature, arguments):
        emit = Emitter(context, builder)
        kinds = signature.args
        arrays = [emit.data(kinds[i], arguments[i]) for i in range(4)]
        stride = emit.length(kinds[0], arguments[0], 1)
        return emit.call("absorb", body, (arrays[0], stride, *arrays[1:], *arguments[4:]))

    numbers = (types.float64, types.float64, types.int64, types.int64)
    return types.void(matrix, right, rest, solved, *numbers), generate
