"""The enumerating baseline of Blum and Lykouris: an expert for every pair of policy and group."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from groupwise.arrays import Vector
from groupwise.groups import Group
from groupwise.learners.actions import Policies
from groupwise.losses import Loss, ZeroOne
from groupwise.model import Groupwise
from groupwise.oracles import Finite, FiniteClass
from groupwise.protocols import AnyAggregator


class BlumLykouris(Groupwise):
    """AdaNormalHedge over all pairs (policy, group) of a *finite* class.

    The pair (f, g) is awake in the rounds of g and says f(x); q is uniform over the pairs. The
    interface is that of :class:`groupwise.Groupwise`.

    Parameters
    ----------
    policies : ``oracles.Finite(actions)`` with ``losses.Linear``; ``oracles.FiniteClass(table)``
        with ``losses.ZeroOne`` or ``losses.Hamming``; or a list of functions from the declared
        features (an array) to an action, which cannot be saved.
    groups : declarations, as for ``Groupwise``.
    loss : ``losses.ZeroOne()`` by default.
    features : the fields that make a context, in order; none for ``oracles.Finite``.
    aggregator, always_on, seed, prior : as for ``Groupwise``.

    >>> import groupwise as gw
    >>> policies = [lambda x: 0, lambda x: 1, lambda x: int(x[0])]
    >>> model = BlumLykouris(policies, [gw.by("sex")], features=["owns"])
    >>> for owns in (0, 1, 1, 0) * 10:
    ...     model.learn_one({"sex": "male", "owns": owns}, owns)
    >>> model.regret()["sex=male"]["best_loss"]
    0.0

    Guarantee
    ---------
    That of the aggregator with |H| |G| experts, for every policy and group: regret on g ≤
    √(3 C ln(B |H| |G|)). Time per round is linear in |H|: the cost that the reduction removes.

    References
    ----------
    Blum and Lykouris, "Advancing subgroup fairness via sleeping experts", ITCS 2020.
    """

    def __init__(
        self,
        policies: Finite | FiniteClass | Sequence[Callable[[Vector], Any]],
        groups: Sequence[Group],
        loss: Loss | None = None,
        aggregator: AnyAggregator | None = None,
        features: Sequence[str] | None = None,
        always_on: bool = True,
        seed: int = 0,
        prior: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(
            groups,
            learner=Policies(policies),
            aggregator=aggregator,
            loss=ZeroOne() if loss is None else loss,
            features=features,
            always_on=always_on,
            seed=seed,
            prior=prior,
        )
