"""Probabilities of classes: from the advice of experts to what is shown."""

from groupwise.kernels.compiled import inlined, lean
from groupwise.kernels.rounds import complement

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
    """Both probabilities of two classes in every row, the second of which was predicted.

    Advice and probabilities of row t are those from ``indptr[t]`` to ``indptr[t + 1]``.
    """
    for t in range(prediction.size):
        first, last = indptr[t], indptr[t + 1]
        out[t, 0] = remainder(prediction[t], probabilities[first:last], advice[first:last])
        out[t, 1] = prediction[t]
