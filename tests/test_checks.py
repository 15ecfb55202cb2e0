"""The universal checks: every built-in component passes, and each check can fail."""

import copy
import random

import numpy as np
import pytest

import groupwise as gw
from groupwise import checks
from groupwise.checks import CheckFailed, check_aggregator, check_learner


class Mean:
    """A sound learner: the weighted mean of the labels so far."""

    def __init__(self):
        self.total, self.count = 0.0, 0.0

    def advise(self, row, weight):
        return self.total / self.count if self.count else 0.5

    def update(self, row, label, weight):
        self.total += weight * label
        self.count += weight


class TestLearners:
    @pytest.mark.parametrize(
        "learner",
        [
            gw.learners.Ridge(),
            gw.learners.Ridge(penalty=1e-3),
            gw.learners.Ridge(forward=True),
            Mean(),
        ],
        ids=["ridge", "weakly penalised", "forward", "mean"],
    )
    def test_the_built_in_ones_pass(self, learner):
        check_learner(learner)

    @pytest.mark.parametrize("loss", [gw.losses.Absolute(), gw.losses.Log(floor=0.01)], ids=repr)
    def test_other_losses(self, loss):
        check_learner(Mean(), loss=loss, rounds=60)

    def test_a_model_of_river_passes(self):
        linear_model = pytest.importorskip("river.linear_model")
        check_learner(gw.learners.Foreign(linear_model.BayesianLinearRegression()), rounds=20)

    def test_a_model_of_scikit_learn_passes(self):
        linear_model = pytest.importorskip("sklearn.linear_model")
        check_learner(gw.learners.Foreign(linear_model.SGDRegressor()), rounds=10)

    def test_learners_of_actions_pass(self):
        learner = gw.learners.FTPL(
            gw.oracles.Finite([[1, 0, 0], [0, 1, 0], [0, 0, 1]]), cost_norm=3.0
        )

        def costs(seed):
            generator = np.random.default_rng(seed)
            while True:
                given = generator.random(3)
                yield {"rain": bool(generator.integers(2))}, lambda action, given=given: given

        def contrary(seed):
            generator = np.random.default_rng(seed)
            while True:
                row = {"rain": bool(generator.integers(2))}
                yield row, lambda last: np.asarray(last, dtype=float)  # what was played costs 1

        check_learner(
            learner,
            loss=gw.losses.Linear(0.0, 1.0),
            groups=[gw.by("rain")],
            streams={"costs": costs, "contrary": contrary},
            rounds=30,
        )

    def test_learners_of_policies_pass(self):
        contexts = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        learner = gw.learners.ContextualFTPL(
            gw.oracles.Stumps(), contexts=contexts, setting="transductive"
        )

        def noisy(seed):
            generator = np.random.default_rng(seed)
            while True:
                x = contexts[generator.integers(4)]
                row = {"a": float(x[0]), "b": float(x[1]), "odd": bool(generator.integers(2))}
                label = int(x[0]) if generator.random() < 0.8 else int(generator.integers(2))
                yield row, lambda action, label=label: label

        check_learner(
            learner,
            loss=gw.losses.ZeroOne(),
            groups=[gw.by("odd")],
            features=["a", "b"],
            streams={"noisy": noisy},
            rounds=40,
        )


class Counts(Mean):
    def advise(self, row, weight):
        self.count += 0.1
        return super().advise(row, weight)


class Draws(Mean):
    def advise(self, row, weight):
        return random.random()


class Blows(Mean):
    def advise(self, row, weight):
        return float("inf") if self.count > 5 else 0.5


class Overwrites(Mean):
    def update(self, row, label, weight):
        row.values[:] *= 2.0
        super().update(row, label, weight)


class Renames(Mean):
    def advise(self, row, weight):
        if isinstance(row.names, list) and row.names[0] == "x0":
            row.names[0] = "mine"
        return super().advise(row, weight)


class HoldsOn(Mean):
    def __init__(self):
        super().__init__()
        self.last = np.zeros(1)

    def advise(self, row, weight):
        return float(np.tanh(self.last.sum()))

    def update(self, row, label, weight):
        self.last = row.values


EVERYTHING = [0.0, 0.0]


class Shares(Mean):
    """Keeps what it learns where all copies see it."""

    def advise(self, row, weight):
        return EVERYTHING[0] / EVERYTHING[1] if EVERYTHING[1] else 0.5

    def update(self, row, label, weight):
        EVERYTHING[0] += weight * label
        EVERYTHING[1] += weight


class Hoards(Mean):
    def __init__(self):
        super().__init__()
        self.labels = []

    def update(self, row, label, weight):
        self.labels.append(label)
        super().update(row, label, weight)


class Forgetful(Mean):
    """Loses what it learned when it is copied."""

    def __deepcopy__(self, memo):
        fresh = type(self)()
        if self.count > 3:
            return fresh
        fresh.total, fresh.count = self.total, self.count
        return fresh


class CannotBePickled(Mean):
    def __init__(self):
        super().__init__()
        self.rule = lambda x: x

    def __deepcopy__(self, memo):
        fresh = type(self)()
        fresh.total, fresh.count = self.total, self.count
        return fresh


class Stubborn(Mean):
    def update(self, row, label, weight):
        if len(row.names) > 3:
            raise IndexError("too many")
        super().update(row, label, weight)


class Divides(Mean):
    def advise(self, row, weight):
        return super().advise(row, weight) if weight == 1.0 else float("nan")


class SaysNothing:
    pass


BROKEN_LEARNERS = {
    Counts: "depends on how often it was asked",
    Draws: "depends on how often it was asked",
    Blows: "finite",
    Overwrites: "changed the row",
    Renames: "changed the row",
    HoldsOn: "overwritten",
    Shares: "outside the object",
    Hoards: "grew by",
    Forgetful: "all that was learned",
    CannotBePickled: "copied or pickled",
    Stubborn: "too many",
    Divides: "finite",
    SaysNothing: "not a learner",
}


class TestBrokenLearners:
    @pytest.mark.parametrize("broken", BROKEN_LEARNERS, ids=lambda kind: kind.__name__)
    def test_are_found_out(self, broken):
        with pytest.raises(CheckFailed, match=BROKEN_LEARNERS[broken]) as failure:
            check_learner(broken(), rounds=60)
        assert str(failure.value).startswith(broken.__name__)

    def test_a_failure_is_an_assertion_and_an_error_of_ours(self):
        assert issubclass(CheckFailed, AssertionError)
        assert issubclass(CheckFailed, gw.GroupwiseError)

    @pytest.mark.parametrize("check", checks.LEARNER_CHECKS, ids=lambda check: check.__name__)
    def test_every_check_can_fail(self, check):
        """Each check on its own refuses at least one of the broken learners."""
        from groupwise.checks.bench import Bench
        from groupwise.checks.streams import FEATURES, STREAMS, declarations

        found = 0
        for broken in [*BROKEN_LEARNERS, Unweighted, Fickle]:
            if broken is not SaysNothing and not found:
                bench = Bench(
                    broken(), gw.losses.Square(), declarations(True), FEATURES, STREAMS, 60
                )
                try:
                    check(bench)
                except Exception:
                    found += 1
        assert found


class Unweighted(Mean):
    """Says that it takes no weights, and is given fractional groups."""

    takes_weights = False


class Fickle(Mean):
    """Advises something else at settlement than when it was asked, by a clock of its own."""

    asked = 0

    def advise(self, row, weight):
        type(self).asked += 1
        return float(type(self).asked % 2)


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
        [gw.aggregators.AdaNormalHedge(), gw.aggregators.Specialists(), Exponential()],
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
