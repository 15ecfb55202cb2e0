"""The per-round entries: one compiled call for a prediction, one for a label.

Handing a state to a compiled function costs some 60 ns an array, ten times what the work on a small
row takes. So a state's arrays go in as one array of addresses and sizes, made once and again when
the state grows; whoever holds such a *handle* also holds the arrays.
"""

import math
from typing import Any

import numpy as np
from numba import carray, njit, types
from numba.extending import intrinsic

from groupwise.kernels import ledger as ledgers
from groupwise.kernels import ridge, rounds
from groupwise.kernels.arithmetic import bare, nonzeros, padded
from groupwise.kernels.hindsight import HELD
from groupwise.kernels.renewal import upkeep
from groupwise.states import (
    LARGEST,
    AggregatorState,
    HindsightSums,
    Index,
    LedgerState,
    RidgeState,
    Settings,
    Vector,
)

_ARRAY = types.float64[:, :, ::1]
_INDEX = types.int64[::1]
_NUMBERS = types.float64[::1]
_COMMON = (_INDEX, types.int64, _INDEX, _NUMBERS, _INDEX, _NUMBERS, types.int64)
PREDICT = (*_COMMON, _ARRAY)
SETTLE = (*_COMMON, types.float64, _ARRAY, *(types.float64,) * 3)
"""The types of the entries' arguments. ``entry.predict.compile(entry.PREDICT)`` is the compiled
function itself, which does not look at types again at every call."""


@intrinsic
def _floats(typing_context, address):
    """An address as a pointer to float64."""
    pointer = types.CPointer(types.float64)

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.int64), generate


@intrinsic
def _integers(typing_context, address):
    """An address as a pointer to int64."""
    pointer = types.CPointer(types.int64)

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.int64), generate


def handle(
    settings: Settings,
    always_on: bool,
    parameters: Vector,
    learners: RidgeState,
    aggregator: AggregatorState,
    ledger: LedgerState,
    sums: HindsightSums,
) -> tuple[Index, tuple[Any, ...]]:
    """Sizes, codes and addresses in the order ``_open`` reads them, and the arrays to keep."""
    groups, count, features = learners.theta.shape
    sizes = (groups, count, features, learners.held.shape[2], sums.moment.shape[1])
    codes = (settings.aggregator, settings.play, settings.loss, settings.seed, int(always_on))
    numbers = np.array([settings.eta, settings.scale, settings.low, settings.high])
    arrays = (numbers, parameters, *learners, *aggregator, *ledger, *sums)
    addresses = [array.ctypes.data for array in arrays]
    return np.array([*sizes, *codes, *addresses], dtype=np.int64), arrays


@njit(nogil=True, cache=True, forceinline=True)
def _open(handle):
    g, k, d, b, s = handle[0], handle[1], handle[2], handle[3], handle[4]
    numbers = carray(_floats(handle[10]), (4,))
    settings = Settings(
        handle[5], handle[6], handle[7], handle[8], numbers[0], numbers[1], numbers[2], numbers[3]
    )
    parameters = carray(_floats(handle[11]), (k, 3))
    learners = RidgeState(
        carray(_floats(handle[12]), (g, k, d)),
        carray(_floats(handle[13]), (g, k, d, d)),
        carray(_floats(handle[14]), (g, k, b, d)),
        carray(_integers(handle[15]), (g,)),
        carray(_floats(handle[16]), (g, k)),
        carray(_floats(handle[17]), (g, k)),
        carray(_floats(handle[18]), (g, k)),
    )
    aggregator = AggregatorState(
        carray(_floats(handle[19]), (g, k)),
        carray(_floats(handle[20]), (g, k)),
        carray(_floats(handle[21]), (g, k)),
        carray(_floats(handle[22]), (1,)),
    )
    ledger = LedgerState(
        carray(_floats(handle[23]), (g,)),
        carray(_floats(handle[24]), (g,)),
        carray(_floats(handle[25]), (g,)),
        carray(_floats(handle[26]), (g,)),
        carray(_floats(handle[27]), (g,)),
        carray(_floats(handle[28]), (g, k)),
    )
    sums = HindsightSums(
        carray(_floats(handle[29]), (g, s, s)),
        carray(_floats(handle[30]), (g, s)),
        carray(_floats(handle[31]), (g,)),
        carray(_floats(handle[32]), (g, HELD, s)),
        carray(_integers(handle[33]), (g,)),
        carray(_integers(handle[34]), (g,)),
    )
    return settings, parameters, learners, aggregator, ledger, sums


@njit(nogil=True, cache=True)
def predict(handle, number, groups, weights, xi, xv, features, said):
    """Steps (a) and (b): fills said[0] with the advice and said[1] with the probabilities.

    Not a number where a value is beyond all bounds.
    """
    settings, parameters, learners, aggregator, _, _ = _open(handle)
    groups, weights = bare(groups), bare(weights)
    xi, xv = nonzeros(bare(xi), bare(xv))
    for k in range(xv.size):
        if not abs(xv[k]) <= LARGEST:
            return math.nan
    advice, probabilities = bare(said)[0], bare(said)[1]
    ridge.advise(learners, parameters, groups, weights, xi, xv, padded(features), advice)
    return rounds.predict(settings, aggregator, groups, weights, number, advice, probabilities)


@njit(nogil=True, cache=True)
def settle(
    handle, number, groups, weights, xi, xv, features, y, scratch, played, realised, baseline
):
    """Step (c) and the ledger.

    ``played``, ``realised`` and ``baseline`` are the losses of what was played; ``played`` is not a
    number where that is this very play.
    """
    settings, parameters, learners, aggregator, ledger, sums = _open(handle)
    groups, weights = bare(groups), bare(weights)
    xi, xv = nonzeros(bare(xi), bare(xv))
    count = groups.size
    scratch = bare(scratch)
    advice, probabilities, losses = scratch[0, :count], scratch[1, :count], scratch[2, :count]
    ridge.step(learners, parameters, groups, weights, xi, xv, y, padded(features), advice)
    _, charged, own = rounds.settle(
        settings, aggregator, groups, weights, number, advice, y, probabilities, losses
    )
    if math.isnan(played):
        played, realised = charged, own
        baseline = losses[count - 1, 0] if handle[9] else math.nan
    hindsight = sums.moment.shape[1] > 0
    ledgers.record(
        ledger,
        sums,
        groups,
        weights,
        xi,
        xv,
        y,
        hindsight,
        losses,
        charged,
        played,
        realised,
        baseline,
    )
    if hindsight:
        upkeep(learners, parameters, sums, groups)
