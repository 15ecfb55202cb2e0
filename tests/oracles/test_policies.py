"""ERM oracles against brute force, their separators, and the finite decision set."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from groupwise.errors import ConfigurationError
from groupwise.oracles import Finite, FiniteClass, Sklearn, Stumps


def stump_table(contexts: np.ndarray) -> np.ndarray:
    """Every stump's predictions on the contexts, in the oracle's order."""
    rows = [np.zeros(len(contexts)), np.ones(len(contexts))]
    for column in contexts.T:
        rows += [column, 1.0 - column]
    return np.array(rows)


def test_stumps_agree_with_brute_force_on_500_weighted_problems() -> None:
    rng = np.random.default_rng(1)
    for _ in range(500):
        size, features, labels = rng.integers(1, 12), rng.integers(1, 7), rng.integers(1, 4)
        contexts = rng.integers(0, 2, (size, features)).astype(float)
        costs = np.round(rng.normal(size=(size, labels)), int(rng.integers(0, 3)))
        table = stump_table(contexts)
        policy = Stumps().minimise(contexts, costs)
        said = np.array([policy(x) for x in contexts])
        for label in range(labels):
            value = float(said[:, label] @ costs[:, label])
            assert value == pytest.approx((table @ costs[:, label]).min(), abs=1e-12)
        assert Stumps().least(contexts, costs) == pytest.approx((said * costs).sum(), abs=1e-12)


def test_tables_agree_with_brute_force_on_500_weighted_problems() -> None:
    rng = np.random.default_rng(2)
    for _ in range(500):
        policies, size, labels = rng.integers(1, 20), rng.integers(1, 9), rng.integers(1, 4)
        table = rng.integers(0, 2, (policies, size, labels))
        costs = np.round(rng.normal(size=(size, labels)), int(rng.integers(0, 3)))
        policy = FiniteClass(table).minimise(np.arange(size)[:, None], costs)
        values = (table * costs).sum(axis=(1, 2))
        assert values[policy.number] == pytest.approx(values.min(), abs=1e-12)


def test_finite_agrees_with_brute_force_on_500_problems() -> None:
    rng = np.random.default_rng(3)
    for _ in range(500):
        actions = rng.random((rng.integers(1, 20), rng.integers(1, 9)))
        costs = rng.normal(size=actions.shape[1])
        best = Finite(actions).minimise(costs)
        assert best @ costs == pytest.approx((actions @ costs).min(), abs=1e-12)
        spread = max(np.abs(a - b).sum() for a in actions for b in actions)
        assert Finite(actions).diameter == pytest.approx(spread)


@pytest.mark.parametrize("features", [1, 2, 3, 6, 7, 8, 30])
def test_separator_of_stumps(features: int) -> None:
    separator = Stumps().separator(features)
    assert len(separator) == 1 + int(np.ceil(np.log2(features + 1)))
    assert len(np.unique(stump_table(separator), axis=0)) == 2 * features + 2
    assert Stumps().separates(separator)
    assert not Stumps().separates(separator[1:])


def test_separator_of_a_table() -> None:
    contexts = np.array(list(itertools.product([0, 1], repeat=4)), dtype=float)
    oracle = FiniteClass(stump_table(contexts), contexts)
    separator = oracle.separator()
    assert oracle.separates(separator)
    assert len(separator) <= 6
    assert not oracle.separates(contexts[:1])


def test_context_numbers_stand_for_contexts() -> None:
    policy = FiniteClass([[0, 1], [1, 1]]).minimise([[0], [1]], [-1.0, 0.0])
    assert (policy([0]), policy([1])) == (1, 1)
    with pytest.raises(ConfigurationError, match=r"\[2.0\] is in no column"):
        policy([2])


def test_sklearn_is_a_heuristic_that_says_so() -> None:
    assert not Sklearn.exact
    assert "heuristic" in (Sklearn.__doc__ or "")
    contexts = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    oracle = Sklearn(DecisionTreeClassifier(max_depth=3))
    costs = np.array([[1.0, -1.0], [-2.0, -1.0], [0.0, -3.0]])
    policy = oracle.minimise(contexts, costs)
    assert policy([0.0, 1.0]).tolist() == [0, 1]
    assert policy([1.0, 0.0]).tolist() == [1, 1]
    assert Sklearn(LogisticRegression()).minimise(contexts, costs[:, 1])([0, 0]) == 1
    with pytest.raises(ConfigurationError, match="sample_weight"):
        Sklearn(KNeighborsClassifier())


@pytest.mark.parametrize(
    "make",
    [
        lambda: Finite([[0.5, 1.5]]),
        lambda: Finite([]),
        lambda: Finite("ab"),
        lambda: FiniteClass([[0, 2]]),
        lambda: FiniteClass([0, 1]),
        lambda: FiniteClass([[0, 1]], contexts=[[0], [0]]),
        lambda: FiniteClass([[0, 1]], contexts=[[0]]),
        lambda: Stumps().minimise([[0.5]], [1.0]),
        lambda: Stumps().minimise([[1.0]], [1.0, 2.0]),
        lambda: Stumps().minimise([[1.0]], [np.nan]),
        lambda: FiniteClass([[0, 1]]).minimise([[0]], [[1.0, 1.0]]),
    ],
)
def test_refused(make: object) -> None:
    with pytest.raises(ConfigurationError):
        make()  # type: ignore[operator]
