"""The best action or policy of one group on another, against trying them all."""

import itertools

import numpy as np
import pytest

import groupwise as gw
from groupwise.errors import ConfigurationError
from groupwise.oracles import Finite, Stumps


def test_the_best_action_of_one_group_on_another():
    actions = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1]])
    learner = gw.learners.FTPL(Finite(actions), cost_norm=3.0)
    model = gw.Groupwise([gw.by("g")], learner, loss=gw.losses.Linear(-1.0, 3.0))
    generator = np.random.default_rng(4)
    sums = {"g=0": np.zeros(3), "g=1": np.zeros(3), "always_on": np.zeros(3)}
    rounds = dict.fromkeys(sums, 0)
    for t in range(40):
        costs = generator.random(3) * ([0.2, 1.0, 0.4] if t % 3 else [1.0, 0.6, -0.2])
        model.learn_one({"g": int(t % 3 > 0)}, costs)
        for group in (f"g={int(t % 3 > 0)}", "always_on"):
            sums[group] += costs
            rounds[group] += 1
    for group, of in itertools.product(sums, repeat=2):
        best = actions[np.argmin(actions @ sums[of])]
        expected = best @ sums[group] + rounds[group]  # losses count from the range's low end
        assert model.best_elsewhere(group, of) == pytest.approx(expected, abs=1e-9)
    for group in sums:
        own = model.regret()[group]["best_loss"]
        assert model.best_elsewhere(group, group) == pytest.approx(own, abs=1e-9)
    assert model.best_elsewhere("g=0", "g=1") > model.best_elsewhere("g=0", "g=0") + 1.0


@pytest.mark.parametrize("labels", [1, 2])
def test_the_best_policy_of_one_group_on_another(labels):
    contexts = np.array(list(itertools.product([0.0, 1.0], repeat=2)))
    learner = gw.learners.ContextualFTPL(Stumps(), contexts)
    loss = gw.losses.ZeroOne() if labels == 1 else gw.losses.Hamming(labels)
    model = gw.Groupwise([gw.by("g")], learner, loss=loss, features=["a", "b"])
    columns = [np.zeros(4), np.ones(4), *contexts.T, *(1.0 - contexts.T)]
    rows = []
    generator = np.random.default_rng(5)
    for t in range(60):
        place, g = int(generator.integers(4)), t % 2
        a, b = contexts[place].astype(int).tolist()
        truth = [a if g else 1 - b, b][:labels]
        model.learn_one({"a": a, "b": b, "g": g}, truth[0] if labels == 1 else truth)
        rows.append((g, place, truth))

    def lost(policy, chosen):  # one stump for each label
        return sum(
            abs(policy[n][place] - truth[n])
            for g, place, truth in rows
            if g in chosen
            for n in range(labels)
        )

    members = {"g=0": {0}, "g=1": {1}, "always_on": {0, 1}}
    policies = list(itertools.product(columns, repeat=labels))
    for group, of in itertools.product(members, repeat=2):
        least = min(lost(policy, members[of]) for policy in policies)
        ties = [policy for policy in policies if lost(policy, members[of]) == least]
        found = model.best_elsewhere(group, of)
        assert any(found == pytest.approx(lost(p, members[group]), abs=1e-9) for p in ties)
    assert model.best_elsewhere("g=1", "g=0") > model.regret()["g=1"]["best_loss"] + 1.0


def test_what_cannot_be_compared():
    with pytest.raises(ConfigurationError, match="FTPL"):
        gw.Groupwise([gw.by("g")]).best_elsewhere("always_on", "always_on")
    learner = gw.learners.FTPL(Finite([[1, 0], [0, 1]]), cost_norm=2.0)
    model = gw.Groupwise([gw.by("g")], learner, loss=gw.losses.Linear(0.0, 2.0))
    model.learn_one({"g": 1}, [0.5, 1.0])
    with pytest.raises(ConfigurationError, match="g=2"):
        model.best_elsewhere("always_on", "g=2")
