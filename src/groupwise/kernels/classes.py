"""Probabilities of classes: chains of dichotomies, and what is shown of a play.

Advice and probabilities of row t are those from ``indptr[t]`` to ``indptr[t + 1]``: an entry for
every awake group, a column for every learner of it.
"""

from groupwise.kernels.calibration import count_event, count_round
from groupwise.kernels.compiled import inlined, lean
from groupwise.kernels.rounds import clipped, complement

CLOSE = 1e-12
"""Further than this from 1 − p, the mean of the experts' 1 − a_i is not what was played."""


@inlined
def remainder(p, probabilities, advice):
    """1 − p as Σ p_i (1 − a_i), whose digits p has lost near 1; 1 − p where an expert was drawn."""
    if p > 0.5:
        rest = complement(probabilities, advice)
        if abs((1.0 - p) - rest) <= CLOSE:
            return rest
    return 1.0 - p


@lean
def pairs(indptr, prediction, advice, probabilities, out):
    """Both probabilities of two classes in every row, the second of which was predicted."""
    for t in range(prediction.size):
        first, last = indptr[t], indptr[t + 1]
        out[t, 0] = remainder(prediction[t], probabilities[first:last], advice[first:last])
        out[t, 1] = prediction[t]


@inlined
def raised(shares, least):
    """Make every share at least so large, at the cost of the larger ones; they sum to 1."""
    while True:
        low, rest = 0, 0.0
        for c in range(shares.size):
            if shares[c] <= least:
                shares[c] = least
                low += 1
            else:
                rest += shares[c]
        if low == 0 or rest <= 1.0 - low * least:
            return
        factor = (1.0 - low * least) / rest
        for c in range(shares.size):
            if shares[c] > least:
                shares[c] *= factor


@lean
def spread(nodes, least, out):
    """a[c] = π_c Π_{j<c} (1 − π_j), a[K − 1] = Π_j (1 − π_j), for every entry and learner.

    Nodes are clipped to [least, 1 − least], and no class gets less than ``least``.
    """
    last = nodes.shape[2]
    for e in range(nodes.shape[0]):
        for k in range(nodes.shape[1]):
            rest = 1.0
            for c in range(last):
                share = clipped(nodes[e, k, c], least, 1.0 - least)
                out[e, k, c] = rest * share
                rest *= 1.0 - share
            out[e, k, last] = rest
            raised(out[e, k], least)


@lean
def chosen(indptr, labels, vectors, out):
    """a_i[y] of every expert: what it said of the class that came."""
    for t in range(labels.size):
        c = int(labels[t])
        for e in range(indptr[t], indptr[t + 1]):
            for k in range(vectors.shape[1]):
                out[e, k] = vectors[e, k, c]


@lean
def mixtures(indptr, vectors, probabilities, out):
    """Σ p_i a_i in every row, made to sum to 1; the same for all classes where nobody is awake."""
    classes = out.shape[1]
    for t in range(out.shape[0]):
        total = 0.0
        for c in range(classes):
            out[t, c] = 0.0
            for e in range(indptr[t], indptr[t + 1]):
                for k in range(vectors.shape[1]):
                    out[t, c] += probabilities[e, k] * vectors[e, k, c]
            total += out[t, c]
        for c in range(classes):
            out[t, c] = out[t, c] / total if total != 0.0 else 1.0 / classes


@lean
def count(bins, indptr, groups, weights, stands_for, issued, labels, losses):
    """What the labels say of the probabilities of all classes, as they were issued."""
    for t in range(labels.size):
        part = slice(indptr[t], indptr[t + 1])
        members = groups[part], weights[part], indptr[t + 1] - indptr[t], stands_for
        count_round(bins, *members, losses[t])
        for c in range(issued.shape[1]):
            came = 1.0 if c == int(labels[t]) else 0.0
            count_event(bins, *members, c, issued[t, c], came)
