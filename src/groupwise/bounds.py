"""The paper's theorem and corollaries as numbers: what regret can be at most, before the first row.

Each function is in the paper's symbols, T_g ``rounds``, |𝒢| ``groups``, d ``features`` and so on,
with the constants that are proved for the algorithms of this library, and every one of them is

    regret on g  ≤  α_g (what the group's own learner can lose)  +  what the aggregator can,

Theorem 2 (:func:`subsequence`). Losses are in [0, 1] as in the paper: for labels in [low, high]
multiply bounds on square loss by (high − low)². What is returned is rounded up. A group has
``learners`` experts with the same prior, 1/(|𝒢| ``learners``) unless ``prior`` gives it;
``aggregator`` is AdaNormalHedge, as in the paper, unless given; ``horizon`` is T, the length of the
whole stream, of which AdaNormalHedge's bound has the ln ln, so that it may be left as it is.

>>> from groupwise.aggregators import Specialists
>>> paper = regression(rounds=10_000, groups=12, features=5, norm=1.0)
>>> ours = regression(10_000, 12, 5, 1.0, aggregator=Specialists())
>>> round(paper, 1), round(ours, 1)
(493.8, 48.3)
>>> rounds_until(regression, groups=12, features=5, norm=1.0)
54

The best models, sizes and widths need not be known exactly: whatever is at least as large will do.
"""

import math
import reprlib
from collections.abc import Callable
from typing import Any

import numpy as np

from groupwise.aggregators import AdaNormalHedge
from groupwise.errors import ConfigurationError, is_finite
from groupwise.losses import Loss, Square

__all__ = [
    "apple_tasting",
    "classification_separator",
    "classification_transductive",
    "contextual_ftpl",
    "enumerated",
    "ftpl",
    "linear_optimisation",
    "noise_width",
    "overhead",
    "regression",
    "ridge",
    "rounds_until",
    "subsequence",
]

LONGEST = 2.0**64
"""No stream is longer. Where T is not given it is taken for this: ln B is then 4.2, not the 2.6 of
T = 1,000."""
MOST = 1e60
"""No number is larger, nor smaller than its inverse where it is divided by: products of a few are
then within what doubles hold."""
LEAST = 1e-60
COSTS = 1e150
"""Nor are costs, whose units can be any that labels can have."""
ANY = float(np.finfo(np.float64).max)
"""What is a product itself may be larger, and so may policies, whose logarithm is what counts."""
EPSILON = float(np.finfo(np.float64).eps)
ROUNDING = 64.0 * EPSILON
"""More than the few roundings of a formula of positive terms can do."""
TUNING = 2.0
"""ContextualFTPL's ε over the one that minimises its bound with 1 − e^{−x} ≤ x. The bound itself is
flat on that side (8 % more at 750 rounds) and the noise is half as large."""


def upward(value: float) -> float:
    """A value of a formula of positive terms that is not below the true one."""
    return value * (1.0 + ROUNDING)


def subsequence(
    learner: float,
    rounds: float,
    groups: float,
    learners: float = 1,
    aggregator: Any = None,
    loss: Loss | None = None,
    horizon: float | None = None,
    prior: float | None = None,
) -> float:
    """Theorem 2: α_I plus the aggregator's bound, for any learner with regret at most α_I.

    The paper has α_I + O(√(T_I log |𝓘|)); the constants are those of :func:`overhead`.

    >>> round(subsequence(10.0, rounds=1_000, groups=8), 1)
    146.5
    """
    more = overhead(rounds, groups, learners, aggregator, loss, horizon, prior)
    return upward(_at_least("learner", learner, most=ANY) + more)


def overhead(
    rounds: float,
    groups: float,
    learners: float = 1,
    aggregator: Any = None,
    loss: Loss | None = None,
    horizon: float | None = None,
    prior: float | None = None,
) -> float:
    """What combining the groups' learners can cost a group of ``rounds`` rounds.

    The aggregators' own bounds, with q the expert's prior and T the ``horizon``:

        AdaNormalHedge   √(3 T_g ln(B/q)),  B = 1 + (3/2)(1 + q ln(1 + T_g) + (1 − q) ln(1 + T)),
        Specialists      ln(1/q) / η, η = 2 for square loss and 1 for log loss,
        Prod             2 ln(1/(q γ_0)) + 2, γ_0 = 128/255.

    The first is the bound at run time with C ≤ T_j in the place of every expert's C; the last is
    that of the rate ½, which asks nothing of the errors.
    """
    length = _at_least("rounds", rounds)
    experts = _at_least("groups", groups, 1.0) * _at_least("learners", learners, 1.0)
    share = 1.0 / experts if prior is None else _at_least("prior", prior)
    if not 0.0 < share <= 1.0:
        raise ConfigurationError(f"prior must be above 0 and at most 1, not {prior!r}.")
    chosen: Any = AdaNormalHedge() if aggregator is None else aggregator
    if not hasattr(chosen, "before"):
        raise ConfigurationError(
            f"{type(chosen).__name__} says nothing before the first row: it has no method before."
        )
    whole = max(length, LONGEST if horizon is None else _at_least("horizon", horizon))
    every = ([length], [1.0]) if share == 1.0 else ([length, whole], [share, 1.0 - share])
    spans, shares = map(np.array, every)
    found = chosen.before(spans, shares, Square() if loss is None else loss)
    return upward(float(found[0]))


def ridge(
    rounds: float, features: float, norm: float, size: float | None = None, penalty: float = 1.0
) -> float:
    """α of online ridge regression, plain or forward, against any θ: its ``norm`` is ‖θ‖₂.

        α = λ‖θ‖² + d ln(1 + T_g X² / (λ d)),

    X = ``size`` the largest ‖x‖₂ (√d where all features are in [0, 1], the default), λ the penalty.
    Labels are in [0, 1]. *Proof*, for the plain form with advice clipped to [0, 1]: let e be the
    error before clipping, ẽ after it, s = 1 + w xᵀPx. Then |ẽ| ≤ |e| and |ẽ| ≤ 1, so that

        w ẽ² = w ẽ²/s + w ẽ² (s − 1)/s ≤ w e²/s + (s − 1)/s ≤ w e²/s + ln s.

    The first terms add up to M = min_θ λ‖θ‖² + Σ w (θ·x − y)², an identity of ridge regression, and
    the second to ln det(A/λ), A = λI + Σ w x xᵀ. The geometric mean of A's eigenvalues is at most
    their mean, λ + Σ w‖x‖²/d. For the forward form see ``learners.Ridge``: the same with Y² = 1.
    """
    dimension = _at_least("features", features, 1.0)
    largest = math.sqrt(dimension) if size is None else _at_least("size", size)
    strength = _above_zero("penalty", penalty)
    price = strength * _at_least("norm", norm) ** 2
    power = _at_least("rounds", rounds) * largest * largest
    return upward(price + log_determinant(power, dimension, strength))


def log_determinant(power: float, features: float, penalty: float) -> float:
    """d ln(1 + S/(λ d)), which ln det(A/λ) is at most where Σ w‖x‖² is at most S."""
    return upward(features * math.log1p(power / (penalty * features))) if features else 0.0


def regression(
    rounds: float,
    groups: float,
    features: float,
    norm: float,
    size: float | None = None,
    penalty: float = 1.0,
    **parts: Any,
) -> float:
    """Corollary ``cor:reg``, online linear regression: :func:`ridge` plus :func:`overhead`.

        λ‖θ‖² + d ln(1 + T_g X²/(λ d)) + √(3 T_g ln(B |𝒢|)),

    where the paper has O(d ln(1 + T_g) + √(T_g ln |𝒢|) + ‖θ‖²). With ``aggregator=Specialists()``
    or ``Prod()``, which square loss allows, the root is a constant. ``parts`` are those of
    :func:`subsequence`.
    """
    return subsequence(ridge(rounds, features, norm, size, penalty), rounds, groups, **parts)


def ftpl(
    rounds: float,
    diameter: float,
    cost_norm: float,
    cost_range: float | None = None,
    tuned_for: float | None = None,
) -> float:
    """α of follow the perturbed leader: 3√(D R C T_g), or for a known length 2√(D R C T_g).

    D = max ‖a − a'‖₁ (the paper's A), C = ``cost_norm`` the largest ‖c‖₁, R = ``cost_range`` the
    range high − low of ``losses.Linear(low, high)``, by which the noise is tuned: no less than any
    |⟨a − a', c⟩|. C, the default, is that of Linear(0, C); costs that may be below 0 can take
    Linear(−C, C), and R = 2C. ``tuned_for`` is the ``horizon`` that ``learners.FTPL`` was given, of
    which T_g may be another:

        R Σ_t ε_t ‖c_t‖₁ + D/ε_T ≤ √(D R C) (Σ_t 1/√t + √T_g),   ε_t = √(D / (R C t)),

    and Σ 1/√t ≤ 2√T_g; with the horizon H in the place of t it is √(D R C) (T_g/√H + √H). The noise
    that ``FTPL`` adds to decide costs D/ε_T at most; its certificates have W/ε_T (``noise_width``
    is the one of classification), which is less. The paper has √(8 C A d T).
    """
    length, most = _at_least("rounds", rounds), _at_least("cost_norm", cost_norm, most=COSTS)
    wide = most if cost_range is None else _at_least("cost_range", cost_range, most=COSTS)
    root = math.sqrt(_at_least("diameter", diameter) * wide * most)
    if tuned_for is None:
        return upward(3.0 * root * math.sqrt(length))
    known = math.sqrt(_above_zero("tuned_for", tuned_for))
    return upward(root * (length / known + known))


def linear_optimisation(
    rounds: float,
    groups: float,
    diameter: float,
    cost_norm: float,
    cost_range: float | None = None,
    tuned_for: float | None = None,
    **parts: Any,
) -> float:
    """The corollary on online linear optimisation (shortest paths): :func:`ftpl` plus overhead.

        3√(D R C T_g) + R √(3 T_g ln(B |𝒢|)), in the units of the costs,

    in expectation, where the paper has O(√(T_I C A d) + √(T_I log |𝓘|)). The aggregator sees
    losses in units of R.

    >>> round(linear_optimisation(10_000, 5, diameter=4, cost_norm=6, cost_range=3))
    3784
    """
    learner = ftpl(rounds, diameter, cost_norm, cost_range, tuned_for)
    wide = float(cost_norm if cost_range is None else cost_range)
    return upward(learner + wide * overhead(rounds, groups, **parts))


def noise_width(entries: float, policies: float) -> float:
    """W = E max over f of Σ of the Laplace(1) noise where f says 1, for ``policies`` policies.

    There is noise in k = ``entries`` places, contexts times labels, whatever f says there.
    E exp(λ Laplace(1)) = 1/(1 − λ²), hence for every λ in (0, 1), as f says 1 in at most k of them
    and the maximum is at most ln Σ_f exp(λ …)/λ (Jensen),

        W ≤ (ln |H| − k ln(1 − λ²)) / λ,

    and W ≤ k/2, the expectation of all positive noise together. About 2√(k ln |H|) where the class
    is small, of which a class's true W is a part.

    >>> round(noise_width(entries=64, policies=14), 2)
    26.26
    """
    places = _at_least("entries", entries, most=ANY)
    size = math.log(_at_least("policies", policies, 1.0, ANY))
    if places == 0.0 or size == 0.0:
        return 0.0
    places = max(places, 1.0)
    # The best λ solves 2kλ²/(1 − λ²) + k ln(1 − λ²) = ln |H|, whose left side rises; all will do.
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        left = 2.0 * places * middle**2 / (1.0 - middle**2) + places * math.log1p(-(middle**2))
        low, high = (middle, high) if left < size else (low, middle)
    rate = min(max(low, 1e-9), 1.0 - 1e-9)
    return upward(min((size - places * math.log1p(-rate * rate)) / rate, 0.5 * places))


def contextual_ftpl(
    rounds: float, labels: float, shift: float, kappa: float, width: float, rate: float = 0.0
) -> float:
    """α of contextual follow the perturbed leader, in losses scaled to [0, 1].

        Σ_t (1 − e^{−κ ε_t}) + W/(n ε_T) ≤ T_g (1 − 2 E₃(κ r/√T_g)) + W √T_g/(n r),   ε_t = r/√t,

    with E₃ the exponential integral: 1 − e^{−κ r/√t} falls with t, so that its sum is at most its
    integral from 0 on. ``shift`` is 1 (transductive) or s (separator), ``kappa`` this times 1 for
    one label and for independent ones, else times n or n²; ``rate`` is r = 2√(W/(2 n shift)) unless
    given. At most √(κ W T_g/n) times 3.54 where κ is the shift.
    """
    from scipy.special import expn

    length, noise = _at_least("rounds", rounds), _at_least("width", width, most=ANY)
    several, shift = _at_least("labels", labels, 1.0), _at_least("shift", shift, 1.0)
    kappa = _at_least("kappa", kappa, most=ANY)
    if length == 0.0 or noise == 0.0:
        return 0.0
    noise = max(noise, LEAST)
    rate = rate or TUNING * math.sqrt(noise / (2.0 * several * shift))
    root = math.sqrt(length)
    stability = length * (1.0 - 2.0 * float(expn(3, kappa * rate / root)))
    stability = min(stability + ROUNDING * length, length, upward(2.0 * kappa * rate * root))
    return upward(max(stability, 0.0) + noise * root / (several * rate))


def classification_separator(
    rounds: float,
    groups: float,
    separator: float,
    labels: float,
    policies: float,
    independent: bool = False,
    width: float | None = None,
    **parts: Any,
) -> float:
    """Corollary ``corollary:sss_efficient``: a separator of s contexts, n labels, |H| policies.

    :func:`contextual_ftpl` with κ = s n², or s where the class takes the best for each label by
    itself (``independent``; |H| is then of one label), plus :func:`overhead`: for n = 1 at most

        3.54 √(s W T_g) + √(3 T_g ln(B |𝒢|)),   W ≤ 2√(s ln |H|) and a little more,

    in expectation, where the paper has O(√T_g (√(s^{3/2} n^{3/2} log |H|) + √(log |𝒢|))). ``width``
    is W where it is known; :func:`noise_width` otherwise.
    """
    factor = 1.0 if independent else _at_least("labels", labels, 1.0) ** 2
    shift = _at_least("separator", separator, 1.0)
    learner = _perturbed(rounds, separator, labels, policies, shift, factor, independent, width)
    return subsequence(learner, rounds, groups, **parts)


def classification_transductive(
    rounds: float,
    groups: float,
    contexts: float,
    labels: float,
    policies: float,
    independent: bool = False,
    width: float | None = None,
    **parts: Any,
) -> float:
    """Corollary ``corollary:transductive_efficient``: all s contexts are known beforehand.

    The same with κ = n, or 1 where the class takes the best for each label by itself: for n = 1 at
    most 3.54 √(W T_g) + √(3 T_g ln(B |𝒢|)) in expectation, where the paper has
    O(√T_g (√(s^{1/2} n^{3/2} log |H|) + √(log |𝒢|))).
    """
    factor = 1.0 if independent else _at_least("labels", labels, 1.0)
    learner = _perturbed(rounds, contexts, labels, policies, 1.0, factor, independent, width)
    return subsequence(learner, rounds, groups, **parts)


def _perturbed(
    rounds: float,
    contexts: float,
    labels: float,
    policies: float,
    shift: float,
    factor: float,
    independent: bool,
    width: float | None,
) -> float:
    """α of contextual FTPL, with W from the size of the class where it is not given."""
    size, several = _at_least("contexts", contexts, 1.0), _at_least("labels", labels, 1.0)
    if width is None:
        copies = several if independent else 1.0
        width = copies * noise_width(size * several / copies, policies)
    return contextual_ftpl(rounds, several, shift, shift * factor, width)


def apple_tasting(
    rounds: float,
    groups: float,
    separator: float,
    policies: float,
    horizon: float | None = None,
    width: float | None = None,
    learners: float = 1,
    prior: float | None = None,
) -> float:
    """Corollary ``corollary:sss_efficient_appletasting``: labels are paid for, or accepted for.

    T = ``horizon`` (T_g by default) is cut into blocks of L = ⌈T^{1/3}⌉ rounds. With b the bound of
    :func:`classification_separator` for n = 1 on the rounds that are learned from,

        regret, payments included, ≤ L b(T_g/L) + T_g/L = O(T^{1/6} √T_g …),

    in expectation, for streams that do not depend on which rounds were explored. *Proof*: within a
    block the model is frozen and one round, drawn uniformly, is explored; so what it loses in the
    block on g more than a policy does is L times the expectation of that on the explored round. The
    explored rounds are a stream of their own on which the regret is at most b(their number in g);
    b is concave in that, whose mean is T_g/L, so Jensen's inequality applies. Every explored round
    costs 1 at most. A last block that is cut short counts as one with rounds that are in no group.
    """
    length = _at_least("rounds", rounds)
    whole = max(length, length if horizon is None else _at_least("horizon", horizon))
    if length == 0.0:
        return 0.0
    root = whole ** (1.0 / 3.0)
    block = upward(root) + 1.0  # at least ⌈T^{1/3}⌉, and without its jumps
    explored, blocks = length / root, whole / root + 1.0
    learner = _perturbed(explored, separator, 1.0, policies, separator, 1.0, False, width)
    # √(explored) times what stays the same: concave, where ln ln of the number would not be.
    combining = overhead(blocks, groups, learners, horizon=blocks, prior=prior)
    combining *= math.sqrt(explored / blocks)
    return upward(block * (learner + combining) + explored)


def enumerated(rounds: float, groups: float, policies: float, **parts: Any) -> float:
    """Blum and Lykouris' bound, an expert for every pair of policy and group.

        √(3 T_g ln(B |H| |𝒢|)).

    The policies learn nothing and α is 0: :func:`overhead` with |H| |𝒢| experts. Without perturbed
    leaders it is less than those pay, in time that is linear in |H|: ``gw.enumerated``.
    """
    return overhead(rounds, groups, learners=policies, **parts)


def rounds_until(bound: Callable[..., float], worst: float = 1.0, **known: Any) -> int:
    """The fewest rounds at which a bound says something: below ``worst`` · T, what all can lose.

    All bounds here grow slower than T: a constant and concave terms, so that from there on it says
    something at every T. ``worst`` is the largest loss of a round (``cost_range`` for costs).

    >>> rounds_until(enumerated, groups=10, policies=100)
    34
    >>> rounds_until(classification_separator, groups=10, separator=6, labels=1, policies=14)
    214
    """

    def says(length: int) -> bool:
        return bound(rounds=length, **known) < worst * length

    last = 1
    while not says(last):
        last *= 2
        if last > LONGEST:
            raise ConfigurationError("The bound says nothing, however many rounds there are.")
    first = last // 2
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (first, middle) if says(middle) else (middle, last)
    return last


def _at_least(name: str, value: Any, least: float = 0.0, most: float = MOST) -> float:
    """A number that can be computed with, and not below the least that makes sense."""
    if not is_finite(value) or not least <= float(value) <= most:
        raise ConfigurationError(
            f"{name} must be a number from {least:g} to {most:g}, not {reprlib.repr(value)}."
        )
    return float(value)


def _above_zero(name: str, value: Any) -> float:
    """The same, and not 0: it is divided by."""
    return _at_least(name, value, LEAST)
