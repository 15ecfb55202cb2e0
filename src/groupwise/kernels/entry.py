"""The per-round entries: one compiled call for a prediction, one for a label.

Handing a state to a compiled function costs some 60 ns an array, ten times what the work on a small
row takes. So a state's arrays go in as one array of addresses and sizes, made once and again when
the state grows; whoever holds such a *handle* also holds the arrays.
"""

import math
from typing import Any

import numpy as np
from numba import types

from groupwise.kernels import ledger as ledgers
from groupwise.kernels import ridge, rounds
from groupwise.kernels.addresses import floats, integers
from groupwise.kernels.arithmetic import padded, tidy
from groupwise.kernels.compiled import entry, inlined
from groupwise.kernels.renewal import upkeep
from groupwise.states import (
    HELD,
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
    sizes = (groups, count, features, sums.moment.shape[1])
    codes = (settings.aggregator, settings.play, settings.loss, settings.seed, int(always_on))
    numbers = np.array([settings.eta, settings.scale, settings.low, settings.high])
    row = np.empty(features, dtype=np.int64), np.empty(features)
    room = *row, np.empty(features + HELD)  # for a row, and to work in
    arrays = (numbers, parameters, *learners, *aggregator, *ledger, *sums, *room)
    addresses = [array.ctypes.data for array in arrays]
    return np.array([*sizes, *codes, *addresses], dtype=np.int64), arrays


@inlined
def _open(handle):
    g, k, d, s = handle[0], handle[1], handle[2], handle[3]
    numbers = floats(handle[9], (4,))
    settings = Settings(
        handle[4], handle[5], handle[6], handle[7], numbers[0], numbers[1], numbers[2], numbers[3]
    )
    parameters = floats(handle[10], (k, 3))
    learners = RidgeState(
        floats(handle[11], (g, k, d)),
        floats(handle[12], (g, k, d, d)),
        integers(handle[13], (g,)),
        integers(handle[14], (1,)),
        floats(handle[15], (g, k, HELD, d)),
        integers(handle[16], (g,)),
        floats(handle[17], (g, k)),
        floats(handle[18], (g, k)),
        floats(handle[19], (g, k)),
    )
    aggregator = AggregatorState(
        floats(handle[20], (g, k)),
        floats(handle[21], (g, k)),
        floats(handle[22], (g, k)),
        floats(handle[23], (1,)),
    )
    ledger = LedgerState(
        floats(handle[24], (g,)),
        floats(handle[25], (g,)),
        floats(handle[26], (g,)),
        floats(handle[27], (g,)),
        floats(handle[28], (g,)),
        floats(handle[29], (g, k)),
    )
    sums = HindsightSums(
        floats(handle[30], (g, s, s)),
        integers(handle[31], (g,)),
        integers(handle[32], (1,)),
        floats(handle[33], (g, s)),
        floats(handle[34], (g,)),
        floats(handle[35], (g, HELD, s)),
        integers(handle[36], (g,)),
        integers(handle[37], (g,)),
    )
    room = (
        integers(handle[38], (d,)),
        floats(handle[39], (d,)),
        floats(handle[40], (d + HELD,)),
    )
    return settings, parameters, learners, aggregator, ledger, sums, room


@entry
def predict(handle, number, groups, weights, xi, xv, features, said):
    """Steps (a) and (b): fills said[0] with the advice and said[1] with the probabilities.

    Not a number where a value is beyond all bounds.
    """
    settings, parameters, learners, aggregator, _, _, room = _open(handle)
    for k in range(xv.size):
        if not abs(xv[k]) <= LARGEST:
            return math.nan
    indices, values, work = room
    positions, size = tidy(xi, xv, indices, values)
    xi, xv = indices[:positions], values[:size]
    advice, probabilities = said[0], said[1]
    width = padded(features)
    ridge.advise(learners, parameters, groups, weights, xi, xv, width, advice, work)
    return rounds.predict(settings, aggregator, groups, weights, number, advice, probabilities)


@entry
def settle(
    handle, number, groups, weights, xi, xv, features, y, scratch, played, realised, baseline
):
    """Step (c) and the ledger.

    ``played``, ``realised`` and ``baseline`` are the losses of what was played; ``played`` is not a
    number where that is this very play.
    """
    settings, parameters, learners, aggregator, ledger, sums, room = _open(handle)
    indices, values, work = room
    positions, size = tidy(xi, xv, indices, values)
    xi, xv = indices[:positions], values[:size]
    count = groups.size
    advice, probabilities, losses = scratch[0, :count], scratch[1, :count], scratch[2, :count]
    width = padded(features)
    ridge.step(learners, parameters, groups, weights, xi, xv, y, width, advice, work)
    _, charged, own = rounds.settle(
        settings, aggregator, groups, weights, number, advice, y, probabilities, losses
    )
    if math.isnan(played):
        played, realised = charged, own
        baseline = losses[count - 1, 0] if handle[8] else math.nan
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
