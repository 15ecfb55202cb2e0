"""The checks for aggregators: the built-in ones pass, and each check can fail."""

import copy

import numpy as np
import pytest

import groupwise as gw
from groupwise.checks import CheckFailed, check_aggregator


class SaysNothing:
    pass


class Exponential:
    """A sound aggregator for [0, 1] losses over at most 1,000 rounds: sleeping exponential weights.

    With a fixed rate η, R_i ≤ ln(1/q_i)/η + η C_i (1 + …): claimed with room to spare.
    """

    rate = 0.1

    def log_weights(self, regret, absolute, loss):
        return self.rate * regret

    def bound(self, regret, absolute, prior, loss):
        everything = 2.0 * self.rate * absolute.sum()
        return np.log(1.0 / prior) / self.rate + everything

    def plays(self, loss):
        if not loss.bounded:
            raise gw.errors.ConfigurationError("bounded losses only")
        return ("mean",) if loss.convex else ("sample",)


class Uniform(Exponential):
    """Weighs all alike and promises what it cannot keep."""

    def log_weights(self, regret, absolute, loss):
        return np.zeros(regret.shape)

    def bound(self, regret, absolute, prior, loss):
        return np.log(1.0 / prior)


class Overflows(Exponential):
    def log_weights(self, regret, absolute, loss):
        with np.errstate(over="ignore", invalid="ignore"):
            grown = np.exp(regret**2 / (3 * absolute + 1))
            return np.log(grown) - np.log(grown) + np.log(grown)


class Promises(Exponential):
    def bound(self, regret, absolute, prior, loss):
        return np.full(regret.shape, np.nan)


class LessThanNothing(Exponential):
    def bound(self, regret, absolute, prior, loss):
        return -np.ones(regret.shape)


class Flat(Exponential):
    def log_weights(self, regret, absolute, loss):
        return regret.ravel()[:1]


class Spoils(Exponential):
    def log_weights(self, regret, absolute, loss):
        regret *= self.rate
        return regret.copy()


class Lends(Exponential):
    def log_weights(self, regret, absolute, loss):
        return regret


class Remembers(Exponential):
    def __init__(self):
        self.calls = 0

    def log_weights(self, regret, absolute, loss):
        self.calls += 1
        return super().log_weights(regret, absolute, loss) / self.calls


class RefusesAll(Exponential):
    def plays(self, loss):
        raise gw.errors.ConfigurationError("no loss suits me")


class PlaysChess(Exponential):
    def plays(self, loss):
        return ("chess",)


class FoldsWhenCopied(Exponential):
    """Learns its rate from a copy."""

    def __deepcopy__(self, memo):
        other = type(self)()
        other.rate = 5.0
        return other


BROKEN_AGGREGATORS = {
    Uniform: "exceeds its bound",
    Overflows: "log_weights is",
    Promises: "bound is NaN",
    LessThanNothing: "< 0",
    Flat: "shape of regret",
    Spoils: "changed an array",
    Lends: "shares memory",
    Remembers: "while it was used",
    RefusesAll: "refuses every loss",
    PlaysChess: "chess",
    FoldsWhenCopied: "other predictions",
    SaysNothing: "has the methods",
}


class Averages(gw.aggregators.Specialists):
    """Charges the expected loss of a drawn expert, for which rate 2 is too fast."""

    def plays(self, loss):
        super().plays(loss)
        return ("sample",)


class TestAggregators:
    @pytest.mark.parametrize(
        "aggregator",
        [
            gw.aggregators.AdaNormalHedge(),
            gw.aggregators.Specialists(),
            gw.aggregators.Prod(),
            Exponential(),
        ],
        ids=lambda aggregator: type(aggregator).__name__,
    )
    def test_the_built_in_ones_pass(self, aggregator):
        check_aggregator(aggregator, rounds=80)

    @pytest.mark.parametrize("broken", BROKEN_AGGREGATORS, ids=lambda kind: kind.__name__)
    def test_broken_ones_are_found_out(self, broken):
        with pytest.raises(CheckFailed, match=BROKEN_AGGREGATORS[broken]) as failure:
            check_aggregator(broken(), rounds=120)
        assert str(failure.value).startswith(broken.__name__)

    def test_a_wrong_play_for_the_algorithm_is_found_out(self):
        """Averaging square-loss advice at rate 2 breaks the constant bound of Specialists."""

        with pytest.raises(CheckFailed, match="exceeds its bound"):
            check_aggregator(Averages(), losses=[gw.losses.Square()], rounds=600)

    def test_copying_a_check_bench_leaves_the_aggregator_alone(self):
        aggregator = Exponential()
        before = copy.deepcopy(vars(aggregator))
        check_aggregator(aggregator, rounds=30)
        assert vars(aggregator) == before
