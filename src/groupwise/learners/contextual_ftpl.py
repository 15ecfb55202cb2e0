"""Contextual follow the perturbed leader: classification with an ERM oracle."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from groupwise.errors import ConfigurationError
from groupwise.learners.actions import Seat
from groupwise.learners.contextual_bank import ContextualBank
from groupwise.losses import Hamming, Loss, ZeroOne
from groupwise.oracles.costs import context_matrix

SETTINGS = ("transductive", "separator")


@dataclass(frozen=True, eq=False)
class ContextualFTPL:
    """Contextual follow the perturbed leader, for labels 0 and 1 and any class with an ERM oracle.

    With c_τ = 1 − 2y_τ the costs of the group's earlier rounds (times the row's weight in the
    group), draw afresh, for every x in S, a fake cost vector z_x of independent Laplace(1/ε_t)
    entries, and advise f(x_t) for

        f = argmin over f in H of  Σ_{τ<t} ⟨f(x_τ), c_τ⟩ + Σ_{x in S} ⟨f(x), z_x⟩.

    History is kept as one sum of costs per *distinct* context. On the group's clock t,
    ε_t = √(2W / (κ n t)), with W and κ as below and the n labels taken as independent.

    Parameters
    ----------
    oracle : ``oracles.Stumps``, ``oracles.FiniteClass``, the heuristic ``oracles.Sklearn``, or an
        object of yours with ``minimise(contexts, costs) -> policy``.
    contexts : S, a context a row, with the model's declared ``features`` as columns, in that order.
    setting : "transductive" where S holds all contexts that can occur (another one is an error),
        "separator" where S tells any two policies of the class apart (``oracle.separator``).

    >>> from groupwise.oracles import Stumps
    >>> ContextualFTPL(Stumps(), [[0, 0], [0, 1], [1, 0]], setting="transductive").context_width()
    2

    Guarantee
    ---------
    In expectation over the noise, against any policy and for labels that may depend on all earlier
    plays, in losses scaled to [0, 1]:

        regret ≤ Σ w (1 − e^{−κ ε_t w}) + W / (n ε_T),  W = E max_f Σ_{x in S} ⟨f(x), z_x⟩, ε = 1,

    with κ = 1 (transductive) or |S| (separator) where the class takes the best for each label by
    itself, as stumps do; otherwise κ = n or |S| n². This is what the certificate shows. Proof: the
    density of the noise changes by at most e^{κ ε} where the noise is shifted by c_t at x_t
    (transductive), or in favour of the policy that is about to be overtaken, by 1 (n) in each entry
    (separator); so the policy is the same before and after c_t up to probability 1 − e^{−κ ε}. The
    player who knows c_t loses at most what the noise adds, W/ε_T in labels, as it is centred.

    References
    ----------
    Syrgkanis, Krishnamurthy and Schapire, "Efficient algorithms for adversarial contextual
    learning", ICML 2016.
    """

    randomised: ClassVar[bool] = True
    oracle: Any
    contexts: ArrayLike
    setting: str = "transductive"

    def __post_init__(self) -> None:
        if not hasattr(self.oracle, "minimise"):
            raise ConfigurationError(
                f"{type(self.oracle).__name__} cannot serve as an oracle: it has no minimise. "
                "Use oracles.Stumps or oracles.FiniteClass, or see groupwise.protocols."
            )
        if self.setting not in SETTINGS:
            raise ConfigurationError(
                f'setting must be "transductive" or "separator", not {self.setting!r}.'
            )
        matrix = context_matrix(self.contexts)
        if hasattr(self.oracle, "check_contexts"):
            self.oracle.check_contexts(matrix)
        if len(np.unique(matrix, axis=0)) < len(matrix):
            raise ConfigurationError("contexts has the same row twice; give every context once.")
        separates = getattr(self.oracle, "separates", None)
        if self.setting == "separator" and separates is not None and not separates(matrix):
            raise ConfigurationError(
                "contexts is no separator: two policies of the class agree on all of it. "
                "oracle.separator(number of features) names one."
            )
        object.__setattr__(self, "contexts", matrix)

    def bank(self, loss: Loss, width: int, seat: Seat) -> ContextualBank:
        """The learner's copies for all groups."""
        if not isinstance(loss, (ZeroOne, Hamming)):
            raise ConfigurationError(
                f"ContextualFTPL predicts labels 0 and 1: use losses.ZeroOne(), or "
                f"losses.Hamming(labels) for several, not {loss}."
            )
        if width != self.context_width():
            raise ConfigurationError(
                f"The contexts have {self.context_width()} columns and rows have {width} declared "
                "features. Name the fields that make a context with features=[...], in the order "
                "of the columns."
            )
        labels = int(loss.unit)
        known = getattr(self.oracle, "labels", labels)
        if known != labels:
            raise ConfigurationError(
                f"The oracle's policies predict {known} labels and the loss is on {labels}."
            )
        transductive = self.setting == "transductive"
        return ContextualBank(self.oracle, np.asarray(self.contexts), transductive, labels, seat)

    def context_width(self) -> int:
        """How many features make a context."""
        return int(np.shape(self.contexts)[1])

    def to_dict(self) -> dict[str, Any] | None:
        """The learner by name, for snapshots; None where its oracle cannot be saved."""
        oracle = self.oracle.to_dict() if hasattr(self.oracle, "to_dict") else None
        if oracle is None:
            return None
        contexts = np.asarray(self.contexts).tolist()
        return {
            "type": "ContextualFTPL",
            "oracle": oracle,
            "contexts": contexts,
            "setting": self.setting,
        }
