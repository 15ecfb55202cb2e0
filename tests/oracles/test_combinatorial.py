"""Sets, assignments, trees and bases: every minimiser against all actions that there are."""

import itertools
import math
from typing import Any, cast

import numpy as np
import pytest

import groupwise as gw
from groupwise.errors import ConfigurationError
from groupwise.oracles import Assignment, Matroid, SpanningTree, TopK, oracle_from_dict

EDGES = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("d", "a"), ("a", "b"), ("d", "e")]
VECTORS = np.random.default_rng(0).integers(0, 4, size=(3, 8))


def sets(size, count):
    """All sets of so many coordinates."""
    for chosen in itertools.combinations(range(size), count):
        yield np.isin(np.arange(size), chosen).astype(int)


def assignments(rows, columns):
    for places in itertools.product([*range(columns), None], repeat=rows):
        taken = [place for place in places if place is not None]
        if len(taken) == len(set(taken)) == min(rows, columns):
            action = np.zeros((rows, columns), dtype=int)
            for row, place in enumerate(places):
                if place is not None:
                    action[row, place] = 1
            yield action.ravel()


def trees():
    nodes = sorted({node for edge in EDGES for node in edge})
    for action in sets(len(EDGES), len(nodes) - 1):
        reached, edges = {nodes[0]}, [EDGES[e] for e in np.flatnonzero(action)]
        for _ in nodes:
            reached |= {x for edge in edges if reached & set(edge) for x in edge}
        if len(reached) == len(nodes):
            yield action


def bases():
    """Columns of a matrix that are independent: a linear matroid."""
    rank = np.linalg.matrix_rank(VECTORS)
    for action in sets(VECTORS.shape[1], rank):
        if np.linalg.matrix_rank(VECTORS[:, action == 1]) == rank:
            yield action


def independent(chosen):
    return np.linalg.matrix_rank(VECTORS[:, chosen]) == len(chosen)


CASES: dict[str, tuple[Any, list[Any]]] = {
    "top of one": (TopK(1, 1), list(sets(1, 1))),
    "top": (TopK(7, 3), list(sets(7, 3))),
    "all": (TopK(4, 4), list(sets(4, 4))),
    "square": (Assignment(3, 3), list(assignments(3, 3))),
    "wide": (Assignment(2, 4), list(assignments(2, 4))),
    "tall": (Assignment(3, 2), list(assignments(3, 2))),
    "single": (Assignment(1, 1), list(assignments(1, 1))),
    "tree": (SpanningTree(EDGES), list(trees())),
    "matroid": (Matroid(VECTORS.shape[1], independent), list(bases())),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_best_of_all_actions(name):
    oracle, actions = CASES[name]
    every = {tuple(action) for action in actions}
    generator = np.random.default_rng(1)
    for kind in range(60):
        costs = generator.normal(size=oracle.dimension)
        if kind % 3 == 0:
            costs = generator.integers(-1, 2, oracle.dimension).astype(float)  # ties
        found = oracle.minimise(costs)
        assert found.dtype == np.int64
        assert tuple(found.tolist()) in every
        assert found @ costs == pytest.approx(min(action @ costs for action in actions))
    apart = max(np.abs(one - other).sum() for one in actions for other in actions)
    assert apart <= oracle.diameter
    if name != "tree":  # of which two always share the bridge
        assert apart == oracle.diameter
    assert oracle.exact
    assert oracle.integral


def test_the_mean_of_the_least_k():
    """By the mean of all sums of the k least of d uniform numbers; and for one, 1/(d + 1)."""
    assert TopK(9, 1).mean_minimum() == pytest.approx(1 / 10)
    assert TopK(5, 5).mean_minimum() == pytest.approx(2.5)
    draws = np.sort(np.random.default_rng(0).random((200_000, 6)), axis=1)[:, :4].sum(axis=1)
    found = TopK(6, 4).mean_minimum()
    assert abs(draws.mean() - found) <= 5 * draws.std() / math.sqrt(len(draws))


@pytest.mark.parametrize("name", ["top", "wide", "tree", "matroid"])
def test_a_model_learns_the_best_action_of_every_group(name, tmp_path):
    oracle, _ = CASES[name]
    size = oracle.dimension
    model = gw.Groupwise(
        [gw.by("day")],
        gw.learners.FTPL(oracle, cost_norm=float(size)),
        loss=gw.losses.Linear(0.0, float(size)),
    )
    generator = np.random.default_rng(2)
    means = {day: generator.random(size) for day in ("work", "rest")}
    for t in range(60):
        day = ("work", "rest")[t % 2]
        model.learn_one({"day": day}, np.clip(means[day] + generator.normal(size=size) / 9, 0, 1))
    for line in model.regret():
        assert line["regret"] <= min(line["certificate"], line["a_priori"])
    if name == "matroid":
        with pytest.raises(gw.GroupwiseError):
            model.save(tmp_path / "model.gw")
        return
    model.save(tmp_path / "model.gw")
    again = gw.load(tmp_path / "model.gw")
    for day in means:
        assert (again.predict_one({"day": day}) == model.predict_one({"day": day})).all()


def test_they_are_saved_by_name():
    oracles: list[Any] = [TopK(7, 3), Assignment(2, 4), SpanningTree([((0, 1), "b"), ("b", 2)])]
    for oracle in oracles:
        again = oracle_from_dict(oracle.to_dict())
        assert type(again) is type(oracle)
        costs = np.arange(oracle.dimension)[::-1]
        assert (again.minimise(costs) == oracle.minimise(costs)).all()
    assert SpanningTree([(object(), 1)]).to_dict() is None
    assert Matroid(2, lambda chosen: True).to_dict() is None


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: TopK(3, 4), "too many"),
        (lambda: TopK(3, 0), "size"),
        (lambda: Assignment(0, 2), "rows"),
        (lambda: SpanningTree([("a", "b"), ("c", "d")]), "not connected"),
        (lambda: SpanningTree([("a", "a")]), "different nodes"),
        (lambda: SpanningTree(cast(Any, [1, 2])), "pairs"),
        (lambda: Matroid(3, lambda chosen: False), "nothing to choose"),
        (lambda: Matroid(3, cast(Any, None)), "function"),
        (lambda: TopK(3, 1).minimise([1.0, 2.0]), "3 finite numbers"),
    ],
)
def test_what_is_none_is_refused(make, match):
    with pytest.raises(ConfigurationError, match=match):
        make()
