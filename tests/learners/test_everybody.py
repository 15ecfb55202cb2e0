"""The second advice of a ridge learner: shrunk to the always-on group's model instead of to 0."""

import numpy as np
import pytest

import groupwise as gw
from groupwise.arrays import Vector
from groupwise.errors import ConfigurationError
from groupwise.learners import Ridge
from tests.states import assert_same_arrays, state_of

ROWS, FEATURES = 240, 7


def textbook(
    X: Vector, y: Vector, members: Vector, penalty: float, forgetting: float, of: float = 0.0
) -> Vector:
    """Both advices of every awake group, each from linear systems that are solved anew.

    Everybody's model is the learner's own, or one with the penalty ``of`` that does not forget.
    """
    groups = members.shape[1]
    moments = np.stack([penalty * np.eye(X.shape[1])] * groups)
    sums, strength = np.zeros((groups, X.shape[1])), np.ones(groups)
    said = np.zeros((*members.shape, 2))
    for t, x in enumerate(X):
        everybody = np.linalg.solve(moments[-1], sums[-1])
        if of:
            seen = X[:t], y[:t]
            own = of * np.eye(X.shape[1]) + seen[0].T @ seen[0]
            everybody = np.linalg.solve(own, seen[0].T @ seen[1])
        for g in np.flatnonzero(members[t]):
            toward = everybody if g < groups - 1 else 0.0 * everybody
            for k, shift in enumerate((0.0 * everybody, penalty * strength[g] * toward)):
                said[t, g, k] = np.linalg.solve(moments[g], sums[g] + shift) @ x
        for g in np.flatnonzero(members[t]):
            fade = forgetting ** members[t, g]
            moments[g] = fade * (moments[g] + members[t, g] * np.outer(x, x))
            sums[g] = fade * (sums[g] + members[t, g] * y[t] * x)
            strength[g] *= fade
    return said[members > 0.0]


def stream(kind: str) -> tuple[Vector, Vector, Vector]:
    """Features, labels in [0, 1] and memberships, the last of them always 1."""
    random = np.random.default_rng(7)
    X = random.normal(size=(ROWS, FEATURES))
    members = (random.random((ROWS, 4)) < [0.5, 0.2, 0.05, 1.0]).astype(float)
    if kind == "sparse":
        X *= random.random(X.shape) < 0.3
    elif kind == "offset":
        X[:, 2] = 1e3 * X[:, 2] + 1e5
    elif kind == "late columns":
        X[:120, 4:] = X[:60, 0] = X[:, 1] = 0.0
    elif kind == "weights":
        members[:, :3] *= random.random((ROWS, 3))
    y = 0.5 + 0.1 * X[:, 0] + 0.1 * members[:, 0] * X[:, 3] + 0.1 * random.normal(size=ROWS)
    return X, np.clip(y, 0.0, 1.0), members


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
@pytest.mark.parametrize("kind", ["full", "sparse", "offset", "late columns", "weights"])
def test_advice_is_that_of_linear_systems(kind: str, forgetting: float) -> None:
    X, y, members = stream(kind)
    learners = [Ridge(0.5), Ridge(2.0, forgetting=forgetting, everybody=True)]
    learners.append(Ridge(9.0, forgetting=0.98, everybody="only"))
    result = gw.replay(X, y, members, learner=learners, aggregator=gw.aggregators.Prod())
    wanted = np.clip(textbook(X, y, members, 2.0, forgetting), 0.0, 1.0)
    assert result.advice is not None
    assert result.advice.shape[1] == 4
    np.testing.assert_allclose(result.advice[:, 1:3], wanted, atol=1e-11)
    held = np.clip(textbook(X, y, members, 9.0, 0.98, of=0.5)[:, 1], 0.0, 1.0)
    np.testing.assert_allclose(result.advice[:, 3], held, atol=1e-11)
    assert np.abs(wanted[:, 0] - wanted[:, 1]).max() > 0.05  # leaning makes a difference


def test_a_newcomer_says_what_everybody_does() -> None:
    X, y, members = stream("full")
    members[:, 1] = 0.0
    members[-1] = 0.0, 1.0, 0.0, 1.0
    result = gw.replay(X, y, members, learner=Ridge(everybody=True))
    assert result.advice is not None
    newcomer, everybody = result.advice[-2:]
    assert newcomer[0] == 0.0
    np.testing.assert_allclose(newcomer[1], everybody[0], rtol=1e-12)
    np.testing.assert_array_equal(everybody[0], everybody[1])


def rows(offset: float) -> list[tuple[dict[str, object], float]]:
    """Rows of two groups besides everybody, with levels that come late."""
    random = np.random.default_rng(3)
    made = []
    for t in range(150):
        x, where = random.normal(), random.choice(["north", "south", "east"][: 2 + (t > 60)])
        row = {"x": offset + x, "where": str(where), "old": bool(random.random() < 0.3)}
        made.append((row, float(np.clip(0.5 + 0.1 * x + 0.1 * random.normal(), 0.0, 1.0))))
    return made


def model() -> gw.Groupwise:
    learners = [
        Ridge(0.5, everybody=True),
        Ridge(2.0, forgetting=0.97, everybody=True),
        Ridge(5.0, forgetting=0.99, everybody="only"),
    ]
    groups = [gw.by("where"), gw.where("old", "==", True)]
    return gw.Groupwise(groups, learner=learners, aggregator=gw.aggregators.Prod())


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_rounds_replay_and_snapshots_agree_to_the_bit(offset: float, tmp_path: object) -> None:
    import polars

    made = rows(offset)
    loop, single = model(), []
    for t, (row, y) in enumerate(made):
        ticket = loop.predict(row)
        single.append(ticket.prediction)
        loop.learn(ticket, y)
        if t in (40, 90):
            loop.save(f"{tmp_path}/model")
            loop = gw.load(f"{tmp_path}/model")
    frame = polars.DataFrame([{**row, "y": y} for row, y in made])
    for jobs in (1, 2):
        whole = model()
        parts = [whole.replay(part, "y", jobs=jobs).prediction for part in (frame[:70], frame[70:])]
        assert np.concatenate(parts).tolist() == single
        assert_same_arrays(state_of(loop), state_of(whole))


def test_late_labels_keep_the_certificate() -> None:
    random = np.random.default_rng(5)
    late, open_tickets = model(), []
    for row, y in rows(0.0):
        open_tickets.append((late.predict(row), y))
        while len(open_tickets) > 12 or (open_tickets and random.random() < 0.4):
            ticket, label = open_tickets.pop(int(random.integers(len(open_tickets))))
            late.learn(ticket, label if random.random() < 0.7 else float(ticket.prediction < 0.5))
            table = late.regret()
            assert all(one["regret"] <= one["certificate"] + 1e-9 for one in table.rows)


def test_without_an_always_on_group_both_are_the_same() -> None:
    alone = gw.Groupwise([gw.by("where")], learner=Ridge(everybody=True), always_on=False)
    for row, y in rows(0.0)[:40]:
        ticket = alone.predict(row)
        plain, leaning = ticket.advice[0]
        assert plain == leaning
        alone.learn(ticket, y)


def test_everybody_is_true_or_false_or_only() -> None:
    with pytest.raises(ConfigurationError, match='everybody must be True, False or "only", not 1'):
        Ridge(everybody=1)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="not 'instead'"):
        Ridge(everybody="instead")
