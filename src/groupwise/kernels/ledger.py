"""The ledger's sums per group: losses played, experts' losses, and the hindsight matrices."""

import math

import numpy as np
from numba import njit

from groupwise.kernels.arithmetic import bare
from groupwise.kernels.hindsight import accumulate
from groupwise.states import LedgerState


@njit(nogil=True, cache=True, forceinline=True)
def charge(ledger, group, weight, losses, charged, played, realised, baseline):
    """One round of one group; ``charged`` is ℓ̂ at settlement, ``played`` that of the real play."""
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
    ledger, share, starts, entries, rows, weights, losses, expected, realised, baseline
):
    """All rounds of every group in ``share``; arguments as in the learners' kernels."""
    losses = bare(losses)
    # Single numbers of neighbouring groups share cache lines, which threads would fight over.
    learners = losses.shape[1]
    mine = LedgerState(
        np.empty(1), np.empty(1), np.empty(1), np.empty(1), np.empty(1), np.empty((1, learners))
    )
    for group in share:
        mine.rounds[0], mine.loss[0] = ledger.rounds[group], ledger.loss[group]
        mine.realised_loss[0], mine.delay[0] = ledger.realised_loss[group], ledger.delay[group]
        mine.baseline_loss[0] = ledger.baseline_loss[group]
        mine.expert_loss[0] = ledger.expert_loss[group]
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
        ledger.rounds[group], ledger.loss[group] = mine.rounds[0], mine.loss[0]
        ledger.realised_loss[group], ledger.delay[group] = mine.realised_loss[0], mine.delay[0]
        ledger.baseline_loss[group] = mine.baseline_loss[0]
        ledger.expert_loss[group] = mine.expert_loss[0]
