"""The checks for learners: every built-in learner passes, and each check can fail."""

import random

import numpy as np
import pytest

import groupwise as gw
from groupwise import checks
from groupwise.checks import CheckFailed, check_learner


class Mean:
    """A sound learner: the weighted mean of the labels so far."""

    def __init__(self):
        self.total, self.count = 0.0, 0.0

    def advise(self, row, weight):
        return self.total / self.count if self.count else 0.5

    def update(self, row, label, weight):
        self.total += weight * label
        self.count += weight


class Dithers(Mean):
    """A sound learner that draws: the mean and some noise, which is a function of the key."""

    randomised = True
    noise = 0.0

    def draw(self, key):
        self.noise = np.random.default_rng(key).uniform(-0.1, 0.1)

    def advise(self, row, weight):
        return min(1.0, max(0.0, super().advise(row, weight) + self.noise))


class TestLearners:
    @pytest.mark.parametrize(
        "learner",
        [
            gw.learners.Ridge(),
            gw.learners.Ridge(penalty=1e-3),
            gw.learners.Ridge(forward=True),
            Mean(),
            Dithers(),
        ],
        ids=["ridge", "weakly penalised", "forward", "mean", "randomised"],
    )
    @pytest.mark.slow
    def test_the_built_in_ones_pass(self, learner):
        check_learner(learner)

    @pytest.mark.slow
    def test_logistic_passes_with_log_loss(self):
        check_learner(gw.learners.Logistic(keep_rows=10), loss=gw.losses.Log(), rounds=60)

    @pytest.mark.parametrize("loss", [gw.losses.Absolute(), gw.losses.Log(floor=0.01)], ids=repr)
    def test_other_losses(self, loss):
        check_learner(Mean(), loss=loss, rounds=60)

    def test_a_model_of_river_passes(self):
        linear_model = pytest.importorskip("river.linear_model")
        check_learner(gw.learners.Foreign(linear_model.BayesianLinearRegression()), rounds=20)

    def test_a_model_of_scikit_learn_passes(self):
        linear_model = pytest.importorskip("sklearn.linear_model")
        check_learner(gw.learners.Foreign(linear_model.SGDRegressor()), rounds=10)

    @pytest.mark.slow
    def test_classifiers_pass(self):
        river = pytest.importorskip("river.linear_model")
        sklearn = pytest.importorskip("sklearn.linear_model")
        loss = gw.losses.Log(floor=0.01)
        check_learner(gw.learners.Foreign(river.LogisticRegression()), loss=loss, rounds=10)
        check_learner(gw.learners.Foreign(sklearn.SGDClassifier(loss="log_loss")), rounds=10)

    @pytest.mark.slow
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

    @pytest.mark.slow
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


class DrawsInSecret(Draws):
    """Says that it is randomised, which does not make it better."""

    randomised = True


class DrawsAnything(Dithers):
    """Does not look at the key."""

    def draw(self, key):
        self.noise = random.uniform(-0.1, 0.1)


class DrawsInTurn(Dithers):
    """Has a generator of its own, which goes on with every draw."""

    def __init__(self):
        super().__init__()
        self.generator = random.Random(0)

    def draw(self, key):
        self.noise = self.generator.uniform(-0.1, 0.1)


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
    DrawsInSecret: "depends on how often it was asked",
    DrawsAnything: "depends on how often it was asked",
    DrawsInTurn: "depends on how often it was asked",
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
    @pytest.mark.slow
    def test_every_check_can_fail(self, check):
        """Each check on its own refuses at least one of the broken learners."""
        from groupwise.checks.bench import FEATURES, STREAMS, Bench, declarations

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
