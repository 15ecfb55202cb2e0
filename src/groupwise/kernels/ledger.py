"""The ledger's sums per group: losses played, experts' losses, and the hindsight matrices."""

import math

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
    ledger = LedgerState(
        bare(ledger.rounds),
        bare(ledger.loss),
        bare(ledger.realised_loss),
        bare(ledger.delay),
        bare(ledger.baseline_loss),
        bare(ledger.expert_loss),
    )
    sums = HindsightSums(
        bare(sums.gram), bare(sums.moment), bare(sums.power), bare(sums.held), bare(sums.count)
    )
    indices, values, losses = bare(indices), bare(values), bare(losses)
    for group in share:
        for entry in entries[starts[group] : starts[group + 1]]:
            row = rows[entry]
            charge(
                ledger,
                group,
                weights[entry],
                losses[entry],
                expected[row],
                expected[row],
                realised[row],
                baseline[row],
            )
            if hindsight:
                accumulate(
                    sums,
                    group,
                    indices[indptr[row] : indptr[row + 1]],
                    values[indptr[row] : indptr[row + 1]],
                    weights[entry],
                    labels[row],
                )
