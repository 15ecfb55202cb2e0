"""The ledger's sums per group: losses played, experts' losses, and the hindsight matrices."""

import math

from numba import njit

from groupwise.kernels.hindsight import accumulate


@njit(nogil=True, cache=True)
def charge(ledger, group, weight, losses, charged, played, realised, baseline):  # type: ignore[no-untyped-def]
    """One round of one group. ``charged`` is ℓ̂ at settlement, ``played`` that of the play itself."""
    for k in range(losses.size):
        ledger.expert_loss[group, k] += weight * losses[k]
    ledger.rounds[group] += weight
    ledger.loss[group] += weight * played
    ledger.realised_loss[group] += weight * realised
    ledger.delay[group] += weight * (played - charged)
    ledger.baseline_loss[group] += weight * baseline


@njit(nogil=True, cache=True)
def record(  # type: ignore[no-untyped-def]
    ledger, sums, groups, weights, xi, xv, y, width, losses, charged, played, realised, baseline
):
    """One round of all awake groups. No hindsight sums where ``width`` is 0."""
    for a in range(groups.size):
        charge(ledger, groups[a], weights[a], losses[a], charged, played, realised, baseline)
        if width > 0:
            accumulate(sums, groups[a], xi, xv, weights[a], y, width)


@njit(nogil=True, cache=True)
def baseline_losses(indptr, groups, losses, baseline, out):  # type: ignore[no-untyped-def]
    """The loss of the baseline group's first learner per row; not a number where it sleeps."""
    for t in range(out.size):
        out[t] = math.nan
        for entry in range(indptr[t], indptr[t + 1]):
            if groups[entry] == baseline:
                out[t] = losses[entry, 0]


@njit(nogil=True, cache=True)
def record_subsequences(  # type: ignore[no-untyped-def]
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
    width,
    losses,
    expected,
    realised,
    baseline,
):
    """All rounds of every group in ``share``; arguments as in the learners' kernels."""
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
            if width > 0:
                accumulate(
                    sums,
                    group,
                    indices[indptr[row] : indptr[row + 1]],
                    values[indptr[row] : indptr[row + 1]],
                    weights[entry],
                    labels[row],
                    width,
                )
