"""The per-round entries: one compiled call for a prediction, one for a label, one for the ledger.

Handing a state to a compiled function costs some 60 ns an array, ten times what the work on a small
row takes. So a state's arrays go in as one array of addresses and sizes, made once and again when
the state grows; whoever holds such a *handle* also holds the arrays.
"""

import numpy as np
from numba import carray, njit, types
from numba.extending import intrinsic

from groupwise.kernels import ledger as ledgers
from groupwise.kernels import ridge, rounds
from groupwise.kernels.arithmetic import padded
from groupwise.states import (
    AggregatorState,
    HindsightSums,
    LedgerState,
    RidgeState,
    Settings,
)


@intrinsic
def _floats(typing_context, address):  # type: ignore[no-untyped-def]
    """An address as a pointer to float64."""
    pointer = types.CPointer(types.float64)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.int64), generate


@intrinsic
def _integers(typing_context, address):  # type: ignore[no-untyped-def]
    """An address as a pointer to int64."""
    pointer = types.CPointer(types.int64)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.int64), generate


def reduction_handle(settings, forward, learners, aggregator):  # type: ignore[no-untyped-def]
    """Addresses of a reduction's state: sizes, then arrays in the order ``_open`` reads them."""
    groups, count, features = learners.theta.shape
    numbers = np.array([settings.eta, settings.scale, settings.low, settings.high])
    arrays = (numbers, forward, *learners, *aggregator)
    sizes = (groups, count, features, learners.held.shape[2])
    codes = (settings.aggregator, settings.play, settings.loss, settings.seed)
    return np.array([*sizes, *codes, *(a.ctypes.data for a in arrays)], dtype=np.int64), arrays


def ledger_handle(ledger, sums):  # type: ignore[no-untyped-def]
    """Addresses of a ledger's state."""
    groups, features = sums.moment.shape
    sizes = (groups, ledger.expert_loss.shape[1], features, sums.held.shape[1])
    arrays = (*ledger, *sums)
    return np.array([*sizes, *(a.ctypes.data for a in arrays)], dtype=np.int64), arrays


@njit(nogil=True, cache=True, forceinline=True)
def _open(handle):  # type: ignore[no-untyped-def]
    g, k, d, b = handle[0], handle[1], handle[2], handle[3]
    numbers = carray(_floats(handle[8]), (4,))
    settings = Settings(
        handle[4], handle[5], handle[6], handle[7], numbers[0], numbers[1], numbers[2], numbers[3]
    )
    forward = carray(_integers(handle[9]), (k,))
    learners = RidgeState(
        carray(_floats(handle[10]), (g, k, d)),
        carray(_floats(handle[11]), (g, k, d, d)),
        carray(_floats(handle[12]), (g, k, b, d)),
        carray(_integers(handle[13]), (g,)),
        carray(_floats(handle[14]), (g, k)),
        carray(_floats(handle[15]), (g, k)),
    )
    aggregator = AggregatorState(
        carray(_floats(handle[16]), (g, k)),
        carray(_floats(handle[17]), (g, k)),
        carray(_floats(handle[18]), (g, k)),
        carray(_floats(handle[19]), (1,)),
    )
    return settings, forward, learners, aggregator


@njit(nogil=True, cache=True)
def predict(handle, number, groups, weights, xi, xv, features, said):  # type: ignore[no-untyped-def]
    """Steps (a) and (b): fills said[0] with the advice and said[1] with the probabilities."""
    width = padded(features)
    settings, forward, learners, aggregator = _open(handle)
    ridge.advise(learners, forward, groups, weights, xi, xv, width, said[0])
    return rounds.predict(settings, aggregator, groups, weights, number, said[0], said[1])


@njit(nogil=True, cache=True)
def learn(handle, number, groups, weights, xi, xv, features, y, said):  # type: ignore[no-untyped-def]
    """Step (c): also fills said[2] with the losses. Returns ``(prediction, charged, realised)``."""
    width = padded(features)
    settings, forward, learners, aggregator = _open(handle)
    ridge.step(learners, forward, groups, weights, xi, xv, y, width, said[0])
    return rounds.settle(
        settings, aggregator, groups, weights, number, said[0], y, said[1], said[2]
    )


@njit(nogil=True, cache=True)
def record(  # type: ignore[no-untyped-def]
    handle, groups, weights, xi, xv, hindsight, y, losses, charged, played, realised, baseline
):
    """The ledger's part."""
    g, k, d, b = handle[0], handle[1], handle[2], handle[3]
    ledger = LedgerState(
        carray(_floats(handle[4]), (g,)),
        carray(_floats(handle[5]), (g,)),
        carray(_floats(handle[6]), (g,)),
        carray(_floats(handle[7]), (g,)),
        carray(_floats(handle[8]), (g,)),
        carray(_floats(handle[9]), (g, k)),
    )
    sums = HindsightSums(
        carray(_floats(handle[10]), (g, d, d)),
        carray(_floats(handle[11]), (g, d)),
        carray(_floats(handle[12]), (g,)),
        carray(_floats(handle[13]), (g, b, d)),
        carray(_integers(handle[14]), (g,)),
    )
    ledgers.record(
        ledger, sums, groups, weights, xi, xv, y, hindsight, losses, charged, played, realised, baseline
    )
