"""The ledger's sums per group: losses played, experts' losses, and the hindsight matrices."""

from groupwise.kernels.compiled import inlined, lean
from groupwise.kernels.hindsight import accumulate


@inlined
def charge(ledger, group, weight, losses, charged, played, realised, baseline):
    """One round of one group; ``charged`` is ℓ̂ at settlement, ``played`` that of the real play."""
    for k in range(losses.size):
        ledger.expert_loss[group, k] += weight * losses[k]
    ledger.rounds[group] += weight
    ledger.loss[group] += weight * played
    ledger.realised_loss[group] += weight * realised
    ledger.delay[group] += weight * (played - charged)
    ledger.baseline_loss[group] += weight * baseline


@lean
def record(
    ledger, sums, groups, weights, xi, xv, y, hindsight, losses, charged, played, realised, baseline
):
    """One round of all awake groups."""
    for a in range(groups.size):
        charge(ledger, groups[a], weights[a], losses[a], charged, played, realised, baseline)
        if hindsight:
            accumulate(sums, groups[a], xi, xv, weights[a], y)
