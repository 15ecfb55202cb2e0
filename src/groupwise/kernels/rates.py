"""What Prod does at all its rates at once, for one expert: eight numbers, a cache line, a vector.

The rates are η_k = ½·4^k, and their prior γ_k ∝ 2^−k, k = 0 … 7: powers of two, so that products
with them are exact.
"""

from typing import Any

from llvmlite import ir
from numba import types

from groupwise.kernels.addresses import WORD
from groupwise.kernels.emitter import DOUBLE, LANE, Emitter, loop, vector_of
from groupwise.kernels.reference import (
    CHARGE_ROUNDING,
    FREE,
    LEAST_WEIGHT,
    PULLS,
    RATES,
    ROUNDED_UP,
    SHARES,
    WEIGHT_ROUNDING,
)

COUNT = len(RATES)


class _Eight(Emitter):
    """Instructions on a number for every rate."""

    def all(self, *values: float) -> ir.Constant:
        """The same constant for every rate, or one for each."""
        return ir.Constant(vector_of(COUNT), list(values if len(values) > 1 else values * COUNT))

    def every(self, number: Any) -> Any:
        """A number, for every rate."""
        return self.splat(number, COUNT)

    def row(self, kind: Any, value: Any, k: Any) -> tuple[Any, Any]:
        """Where the numbers of a learner are."""
        return self.data(kind, value), self.builder.mul(k, self.word(COUNT))

    def lesser(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), a, b)

    def greater(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def fold(self, vector: Any, together: Any) -> Any:
        """One number of a vector's: the halves together, and so on."""
        size = COUNT
        while size > 1:
            size //= 2
            halves = [self.shuffle(vector, vector, range(i, i + size)) for i in (0, size)]
            vector = together(*halves)
        return self.builder.extract_element(vector, ir.Constant(LANE, 0))


@loop
def pull(typing_context, weight, k, reach, ceiling, slope):
    """Σ γ_k w_k min(η_k reach, ceiling), and what it grows by with reach; ``ceiling`` by slope."""

    def generate(context, builder, signature, arguments):
        emit = _Eight(context, builder)
        start = emit.row(signature.args[0], arguments[0], arguments[1])
        reach, ceiling, slope = (emit.every(number) for number in arguments[2:])
        pulls, shares = emit.all(*PULLS), emit.all(*SHARES)
        weight = emit.load(*start, COUNT)
        free, held = builder.fmul(pulls, reach), builder.fmul(shares, ceiling)
        within = builder.fcmp_ordered("<", free, held)
        force = builder.fmul(weight, builder.select(within, free, held))
        grows = builder.select(within, pulls, builder.fmul(shares, slope))
        growth = builder.fmul(weight, grows)
        sums = [emit.fold(part, builder.fadd) for part in (force, growth)]
        return context.make_tuple(builder, signature.return_type, sums)

    number = types.float64
    return types.UniTuple(number, 2)(weight, types.int64, number, number, number), generate


@loop
def turn(typing_context, weight, charge, k, step, sign, reach, ceiling, whole, both):
    """w_k ×= 1 ± z_k, and S_k += its charge: for the sign that it has or, if ``both``, for either.

    h_k = min(reach, ceiling / η_k), u_k = step · h_k, z_k = η_k u_k, and the charges are

        whole − u_k + u_k z_k / (2 + z_k)    ≥ whole − ln(1 + z_k) / η_k,
        u_k − whole + u_k z_k / (2 − 2 z_k)  ≥ −whole − ln(1 − z_k) / η_k,

    and what rounding may have left out of them. Returns Σ γ_k Δw_k, Σ γ_k |Δw_k|, max w_k, and the
    mean of w_k with weights γ_k η_k.
    """

    def generate(context, builder, signature, arguments):
        b, emit = builder, _Eight(context, builder)
        weights = emit.row(signature.args[0], arguments[0], arguments[2])
        charges = emit.row(signature.args[1], arguments[1], arguments[2])
        step, sign, reach, ceiling, whole = (emit.every(number) for number in arguments[3:8])
        rates, one, two = emit.all(*RATES), emit.all(1.0), emit.all(2.0)
        inverse = emit.all(*(1.0 / rate for rate in RATES))
        old = emit.load(*weights, COUNT)
        u = b.fmul(step, emit.lesser(reach, b.fmul(ceiling, inverse)))
        z = b.fmul(rates, u)
        new = b.fmul(old, b.fadd(one, b.fmul(sign, z)))
        new = emit.greater(new, emit.all(LEAST_WEIGHT))
        rest, square = b.fsub(whole, u), b.fmul(u, z)
        gaining = b.fadd(rest, b.fdiv(square, b.fadd(two, z)))
        losing = b.fsub(b.fdiv(square, b.fsub(two, b.fmul(two, z))), rest)
        either = emit.greater(losing, gaining)
        cost = b.select(b.icmp_signed("!=", arguments[8], emit.word(0)), either, gaining)
        cost = b.fadd(cost, b.fmul(whole, emit.all(CHARGE_ROUNDING)))
        cost = b.fadd(cost, b.fmul(inverse, emit.all(WEIGHT_ROUNDING)))
        total = b.fadd(emit.load(*charges, COUNT), cost)
        emit.store(b.fmul(total, emit.all(ROUNDED_UP)), *charges)
        emit.store(new, *weights)
        change = b.fmul(b.fsub(new, old), emit.all(*SHARES))
        size = emit.greater(change, b.fneg(change))
        drawn = emit.fold(b.fmul(new, emit.all(*PULLS)), b.fadd)
        sums = emit.fold(change, b.fadd), emit.fold(size, b.fadd), emit.fold(new, emit.greater)
        found = [*sums, b.fmul(drawn, ir.Constant(drawn.type, FREE))]
        return context.make_tuple(builder, signature.return_type, found)

    number = types.float64
    numbers = weight, charge, types.int64, *(number,) * 5, types.int64
    return types.UniTuple(number, 4)(*numbers), generate


@loop
def power_of_two(typing_context, power):
    """2^power, a normal number."""

    def generate(context, builder, signature, arguments):
        biased = builder.add(arguments[0], ir.Constant(WORD, 1023))
        return builder.bitcast(builder.shl(biased, ir.Constant(WORD, 52)), DOUBLE)

    return types.float64(types.int64), generate


@loop
def rescale(typing_context, weight, k, factor):
    """w_k ×= factor, a power of two."""

    def generate(context, builder, signature, arguments):
        emit = _Eight(context, builder)
        start = emit.row(signature.args[0], arguments[0], arguments[1])
        factor = emit.every(arguments[2])
        emit.store(builder.fmul(emit.load(*start, COUNT), factor), *start)
        return context.get_dummy_value()

    return types.void(weight, types.int64, types.float64), generate
