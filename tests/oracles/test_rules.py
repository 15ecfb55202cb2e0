"""Trees and halfspaces: against all policies, and against linear programs."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import groupwise as gw
from groupwise.errors import ConfigurationError
from groupwise.oracles import Halfspaces, Trees, oracle_from_dict


def all_trees(contexts):
    """What every tree of two levels says, written out."""
    d = contexts.shape[1]
    leaves = [(j, v) for j in (None, *range(d)) for v in (0, 1)]  # of no bit, or of one
    for root, zero, one in itertools.product(range(d), leaves, leaves):
        chosen = [one if x[root] else zero for x in contexts]
        pairs = zip(contexts, chosen, strict=True)
        yield tuple(v if j is None else int(x[j]) ^ v for x, (j, v) in pairs)


def separable(points, said):
    """Is there a halfspace with just these points? w·x − b ≥ 1 there, ≤ −1 elsewhere."""
    signs = np.where(np.array(said) == 1, 1.0, -1.0)[:, None]
    rows = -signs * np.column_stack([points, -np.ones(len(points))])
    free = [(None, None)] * rows.shape[1]
    return linprog(np.zeros(rows.shape[1]), rows, -np.ones(len(points)), bounds=free).success


@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_the_best_tree_is_the_best_of_all(d, labels):
    contexts = np.array(list(itertools.product([0.0, 1.0], repeat=d)))
    generator = np.random.default_rng(d)
    contexts = contexts[generator.permutation(len(contexts))[:9]]
    table = np.array(sorted(set(all_trees(contexts))), dtype=float)
    assert {tuple(row) for row in Trees().every(contexts)} == {tuple(row) for row in table}
    for kind in range(40):
        costs = generator.normal(size=(len(contexts), labels))
        if kind % 2:
            costs = generator.integers(-2, 3, costs.shape).astype(float)
        asked = costs[:, 0] if labels == 1 else costs
        policy = Trees().minimise(contexts, asked)
        said = np.array([np.atleast_1d(policy(x)) for x in contexts])
        best = sum((table @ column).min() for column in costs.T)
        assert np.sum(said * costs) == pytest.approx(best)
        assert Trees().least(contexts, asked) == pytest.approx(best)


POINTS = {
    "line": np.array([[0.0], [1.5], [-2.0], [0.25]]),
    "the same twice": np.array([[1.0], [1.0], [2.0]]),
    "plane": np.random.default_rng(0).normal(size=(6, 2)),
    "grid": np.array(list(itertools.product([0.0, 1.0, 2.0], repeat=2))),
    "in a line": np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]),
    "space": np.random.default_rng(1).normal(size=(6, 3)),
    "cube": np.array(list(itertools.product([0.0, 1.0], repeat=3))),
    "one": np.array([[3.0, 4.0]]),
}


@pytest.mark.parametrize("name", POINTS)
def test_halfspaces_cut_off_what_can_be_cut_off(name):
    points = POINTS[name]
    found = {tuple(row) for row in Halfspaces().every(points).astype(int).tolist()}
    wanted = {
        said for said in itertools.product([0, 1], repeat=len(points)) if separable(points, said)
    }
    assert found == wanted
    if name == "cube":
        assert len(found) == 104  # threshold functions of three variables


def test_halfspaces_at_the_ends_of_what_doubles_hold():
    """The corners of a square are cut off alike, whatever its size."""
    square = np.array(list(itertools.product([0.0, 1.0], repeat=2)))
    wanted = sorted(Halfspaces().every(square).tolist())
    for size in (1e-300, 1e-200, 1e200, 1e300):
        assert sorted(Halfspaces().every(size * square).tolist()) == wanted


def test_the_best_halfspace_says_what_it_cost():
    oracle, points = Halfspaces(), POINTS["grid"]
    table, generator = oracle.every(points), np.random.default_rng(3)
    for _ in range(30):
        costs = generator.normal(size=len(points))
        policy = oracle.minimise(points, costs)
        said = np.array([policy(x) for x in points])
        assert said @ costs == pytest.approx((table @ costs).min())
        assert oracle.least(points, costs) == pytest.approx((table @ costs).min())


@pytest.mark.parametrize(
    ("oracle", "contexts", "rule"),
    [
        (Trees(), list(itertools.product([0, 1], repeat=3)), lambda x, g: x[0] ^ x[1 + g]),
        (Halfspaces(), POINTS["grid"].tolist(), lambda x, g: int(x[g] + 0.5 * x[1 - g] > 1.2)),
    ],
)
def test_models_with_them(oracle, contexts, rule, tmp_path):
    fields = [f"x{i}" for i in range(len(contexts[0]))]
    model = gw.Groupwise(
        [gw.by("g")],
        gw.learners.ContextualFTPL(oracle, contexts),
        loss=gw.losses.ZeroOne(),
        features=fields,
    )
    generator = np.random.default_rng(4)
    for _ in range(120):
        x, g = contexts[generator.integers(len(contexts))], int(generator.integers(2))
        model.learn_one(dict(zip(fields, x, strict=True)) | {"g": g}, rule(x, g))
    for line in model.regret():
        assert line["regret"] <= min(line["certificate"], line["a_priori"])
        if line["group"] != "always_on":
            assert line["best_loss"] == 0.0
    model.save(tmp_path / "model.gw")
    again, row = gw.load(tmp_path / "model.gw"), dict(zip(fields, contexts[0], strict=True))
    assert again.predict_one(row | {"g": 1}) == model.predict_one(row | {"g": 1})
    assert type(oracle_from_dict(oracle.to_dict())) is type(oracle)


def test_what_they_refuse():
    with pytest.raises(ConfigurationError, match="bits"):
        Trees().minimise([[0.5]], [1.0])
    with pytest.raises(ConfigurationError, match="3 features"):
        Halfspaces().minimise(np.zeros((2, 4)), [1.0, 2.0])
    with pytest.raises(ConfigurationError, match="one label"):
        Halfspaces().minimise([[0.0]], [[1.0, 2.0]])
