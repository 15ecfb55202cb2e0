"""The ledger's sums per group: losses played, experts' losses, and the hindsight matrices."""

import math

import numpy as np
from numba import njit

from groupwise.kernels.arithmetic import bare
from groupwise.kernels.hindsight import accumulate
from groupwise.states import HindsightSums, LedgerState


@njit(nogil=True, cache=True, forceinline=True)
def charge(ledger, group, weight, losses, charged, played, realised, baseline):
    """One round of one group. ``charged`` is ℓ̂ at settlement, ``played`` that of the play itself."""
    for k in range(losses.size):
        ledger.expert_loss[group, k] += weight * losses[k]
    ledger.rounds[group] += weight
    ledger.loss[group] += weight * played
    ledger.realised_loss[group] += weight * realised
    ledger.delay[group] += weight * (played - charged)
    ledger.baseline_loss[group] += weight * baseline


@njit(nogil=True, cache=True)
def record(
    ledger, sums, groups, weights, xi, xv, y, hindsight, losses, charged, played, realised, baseline
):
    """One round of all awake groups."""
    for a in range(groups.size):
        charge(ledger, groups[a], weights[a], losses[a], charged, played, realised, baseline)
        if hindsight:
            accumulate(sums, groups[a], xi, xv, weights[a], y)


@njit(nogil=True, cache=True)
def baseline_losses(indptr, groups, losses, baseline, out):
    """The loss of the baseline group's first learner per row; not a number where it sleeps."""
    for t in range(out.size):
        out[t] = math.nan
        for entry in range(indptr[t], indptr[t + 1]):
            if groups[entry] == baseline:
                out[t] = losses[entry, 0]


@njit(nogil=True, cache=True)
def record_subsequences(
    ledger,
    sums,
    share,
    starts,
    entries,
    rows,
    weights,
    indptr,
    indices,
    values,
    labels,
    hindsight,
    losses,
    expected,
    realised,
    baseline,
):
    """All rounds of every group in ``share``; arguments as in the learners' kernels."""
    gram, moment, held = bare(sums.gram), bare(sums.moment), bare(sums.held)
    indices, values, losses = bare(indices), bare(values), bare(losses)
    # Single numbers of neighbouring groups share cache lines, which threads would fight over.
    learners = losses.shape[1]
    mine = LedgerState(
        np.empty(1), np.empty(1), np.empty(1), np.empty(1), np.empty(1), np.empty((1, learners))
    )
    power, count = np.empty(1), np.empty(1, dtype=np.int64)
    for group in share:
        only = slice(group, group + 1)
        mine.rounds[0], mine.loss[0] = ledger.rounds[group], ledger.loss[group]
        mine.realised_loss[0], mine.delay[0] = ledger.realised_loss[group], ledger.delay[group]
        mine.baseline_loss[0] = ledger.baseline_loss[group]
        mine.expert_loss[0] = ledger.expert_loss[group]
        power[0], count[0] = sums.power[group], sums.count[group]
        own = HindsightSums(gram[only], moment[only], power, held[only], count)
        for entry in entries[starts[group] : starts[group + 1]]:
            row = rows[entry]
            charge(
                mine,
                0,
                weights[entry],
                losses[entry],
                expected[row],
                expected[row],
                realised[row],
                baseline[row],
            )
            if hindsight:
                accumulate(
                    own,
                    0,
                    indices[indptr[row] : indptr[row + 1]],
                    values[indptr[row] : indptr[row + 1]],
                    weights[entry],
                    labels[row],
                )
        ledger.rounds[group], ledger.loss[group] = mine.rounds[0], mine.loss[0]
        ledger.realised_loss[group], ledger.delay[group] = mine.realised_loss[0], mine.delay[0]
        ledger.baseline_loss[group] = mine.baseline_loss[0]
        ledger.expert_loss[group] = mine.expert_loss[0]
        sums.power[group], sums.count[group] = power[0], count[0]
