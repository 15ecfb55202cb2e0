"""Ridge on features of any size and offset, against arithmetic with as many digits as it takes."""

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

import groupwise as gw
from groupwise.learners import Ridge
from tests.states import state_of

RANGE = 1e-7
"""How close advice must be, in units of the label's range."""


def refits(x, y, w, learner, digits=120):
    """The advice before every row: P and θ of the definition, updated with so many digits.

    With forgetting, what rounding does to P grows by 1/γ a row.
    """
    digits -= int(len(y) * np.log10(learner.forgetting))
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = digits, 10**6, -(10**6)
        size, penalty, gamma = x.shape[1], Decimal(learner.penalty), Decimal(learner.forgetting)
        inverse = np.array([[Decimal(i == j) / penalty for j in range(size)] for i in range(size)])
        theta, strength = np.array([Decimal(0)] * size), 1.0
        advice = []
        for row, label, mass in zip(x.tolist(), y.tolist(), w.tolist(), strict=True):
            given, weight = np.array([Decimal(v) for v in row]), Decimal(mass)
            product = inverse @ given
            estimate, growth = theta @ given, 1 + weight * (product @ given)
            advice.append(float(estimate / growth if learner.forward else estimate))
            theta = theta + weight / growth * (Decimal(label) - estimate) * product
            inverse = inverse - weight / growth * np.outer(product, product)
            if gamma < 1:
                inverse = inverse / gamma**weight
                strength *= learner.forgetting**mass
            if strength < 1e-6:
                matrix = inverted(inverse)
                moment = matrix @ theta
                matrix = matrix + penalty * (1 - Decimal(strength)) * inverted_unit(size)
                inverse = inverted(matrix)
                theta, strength = inverse @ moment, 1.0
    return np.array(advice)


def inverted_unit(size):
    return np.array([[Decimal(i == j) for j in range(size)] for i in range(size)])


def inverted(matrix):
    """The inverse of a positive definite matrix, by elimination."""
    size = len(matrix)
    both = np.hstack([matrix, inverted_unit(size)])
    for k in range(size):
        both[k] = both[k] / both[k, k]
        for i in range(size):
            if i != k:
                both[i] = both[i] - both[i, k] * both[k]
    return both[:, size:]


def columns(name, rows, generator):
    """Columns that were too much for P, and how many digits they need to be told apart."""
    u, normal = generator.random(rows), generator.normal(size=rows)
    one, t = np.ones(rows), np.arange(rows)
    levels = np.eye(3)[generator.integers(0, 3, rows)]
    anything = 10.0 ** generator.uniform(-12, 12, rows)
    found: dict[str, tuple[list[Any], int]] = {
        "timestamp": ([1.7e9 + t, one, u], 120),
        "timestamp alone": ([1.7e9 + t], 120),
        "milliseconds": ([1.7e12 + 1000.0 * t, u, one], 120),
        "offset 1e5": ([1e5 + u, one, normal], 120),
        "offset 1e7": ([one, 1e7 + u, 1e7 + normal], 120),
        "offset 1e8": ([1e8 + u, one], 120),
        "two offsets 1e8": ([1e8 + u, 1e8 + normal, one], 120),
        "offsets without a constant": ([normal, 1e8 + u, 1e9 + normal[::-1]], 120),
        "amounts": ([generator.lognormal(10.0, 5.0, rows).clip(0.0, 1e9), one, u], 120),
        "scales": ([1e-150 * normal, 9e99 * u, 1e50 * normal[::-1], one, u], 900),
        "collinear": ([one, *levels.T, u, 2.0 * u, u], 120),
        "duplicated": ([1e8 + u, 1e8 + u, one], 120),
        "missing is 0": ([np.where(normal < 0.0, 0.0, 1.7e9 + t), one, u], 120),
        "grows": ([np.where(t < rows // 2, u, 1e9 * u), one, normal], 120),
        "shrinks": ([np.where(t < rows // 2, 1e9 * u, u), one, normal], 120),
        "any scale": ([anything, generator.permutation(anything), one], 300),
        "new": ([one, u, np.where(t < rows // 2, 0.0, 1e7 + u), (t > rows // 3) * u], 120),
    }
    parts, digits = found[name]
    return np.column_stack(parts), np.clip(u + 0.1 * normal, 0.0, 1.0), digits


NAMES = [
    *("timestamp", "timestamp alone", "milliseconds", "offset 1e5", "offset 1e7", "offset 1e8"),
    *("two offsets 1e8", "offsets without a constant", "amounts", "scales", "collinear"),
    *("duplicated", "missing is 0", "grows", "shrinks", "any scale", "new"),
]
LEARNERS = [
    *(Ridge(penalty) for penalty in (1e-9, 1e-6, 1e-2, 1.0, 1e3, 1e9)),
    *(Ridge(1e-6, forward=True), Ridge(1.0, forward=True)),
    *(Ridge(1e-6, forgetting=0.9), Ridge(1.0, forgetting=0.9), Ridge(1.0, forgetting=0.999)),
]


def assert_close(x, y, w, learners, digits, clip=False):
    advice = gw.replay(x, y, w[:, None], learner=learners, clip=clip).advice
    assert advice is not None
    for found, learner in zip(advice.reshape(len(y), -1).T, learners, strict=True):
        wanted = refits(x, y, w, learner, digits)
        errors = np.abs(np.clip(found, 0.0, 1.0) - np.clip(wanted, 0.0, 1.0))
        assert errors.max() < RANGE, (learner, int(errors.argmax()))
        apart = np.abs(found - wanted) > RANGE * np.maximum(1.0, np.abs(wanted))
        assert clip or not apart.any(), learner


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_advice_is_that_of_exact_arithmetic(name):
    generator = np.random.default_rng(NAMES.index(name))
    x, y, digits = columns(name, 150, generator)
    w = generator.choice([0.1, 0.5, 1.0], 150)
    assert_close(x, y, w, LEARNERS, digits)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_advice_is_that_of_exact_arithmetic_over_thousands_of_rounds(name):
    generator = np.random.default_rng(NAMES.index(name))
    x, y, digits = columns(name, 2_500, generator)
    w = np.ones(2_500) if name != "amounts" else generator.random(2_500)
    assert_close(x, y, w, LEARNERS[1::2], digits)


def rotated(x, y, penalty, moments):
    """The advice before some rows, from rotations in extended precision."""
    size = x.shape[1]
    root = np.sqrt(np.longdouble(penalty))
    factor = np.hstack([root * np.eye(size, dtype=np.longdouble), np.zeros((size, 1))])
    advice = {}
    for t in range(max(moments) + 1):
        row = np.append(x[t], y[t]).astype(np.longdouble)
        if t in moments:
            theta = np.zeros(size, dtype=np.longdouble)
            for i in range(size - 1, -1, -1):
                rest = factor[i, size] - factor[i, i + 1 : size] @ theta[i + 1 :]
                theta[i] = rest / factor[i, i]
            advice[t] = float(theta @ row[:size])
        for j in range(size):
            length = np.hypot(factor[j, j], row[j])
            c, s, old = factor[j, j] / length, row[j] / length, factor[j, j:].copy()
            factor[j, j:], row[j:] = c * old + s * row[j:], c * row[j:] - s * old
    return advice


@pytest.mark.slow
@pytest.mark.skipif(bool(np.finfo(np.longdouble).eps > 1e-18), reason="needs extended precision")
@pytest.mark.parametrize("penalty", [1e-6, 1.0])
@pytest.mark.parametrize("name", ["timestamp", "two offsets 1e8", "offset 1e7", "collinear"])
def test_errors_do_not_add_up(name, penalty):
    rows = 100_000
    x, y, _ = columns(name, rows, np.random.default_rng(0))
    moments = [m - k for m in (100, 1_000, 10_000, rows) for k in range(1, 20)]
    wanted = rotated(x, y, penalty, set(moments))
    found = gw.replay(x, y, np.ones((rows, 1)), learner=Ridge(penalty), clip=False).advice
    assert found is not None
    assert max(abs(found[t] - wanted[t]) for t in moments) < RANGE / 10


def test_a_timestamp_among_the_fields():
    """Everything default: what was not a number within ten rounds, and said nothing."""
    generator = np.random.default_rng(0)
    model = gw.Groupwise([gw.by("g")])
    for t in range(300):
        u = generator.random()
        ticket = model.predict({"g": str(generator.integers(3)), "time": 1.7e9 + 60.0 * t, "u": u})
        assert np.isfinite(ticket.advice).all()
        model.learn(ticket, 0.2 + 0.5 * u)
    assert abs(model.predict_one({"g": "1", "time": 1.7e9, "u": 0.5}) - 0.45) < 0.02


def wild_rows(generator, count):
    """Rows with numbers of every size, whose columns come and go and change their scale."""
    for _ in range(count):
        chosen = generator.choice(9, size=generator.integers(1, 9), replace=False)
        sizes = 10.0 ** generator.choice([-150, -9, 0, 0, 0, 3, 9, 50, 99], size=chosen.size)
        yield {f"c{j}": float(generator.normal() * s) for j, s in zip(chosen, sizes, strict=True)}


@pytest.mark.parametrize("seed", range(6))
def test_whatever_comes_states_stay_finite_and_drivers_agree(seed, tmp_path):
    generator = np.random.default_rng(seed)
    learners = [
        *(Ridge(10.0 ** generator.uniform(-9, 9)), Ridge(1e-6, forward=True)),
        *(Ridge(0.5, forgetting=0.9), Ridge(1e-3, forward=True, forgetting=0.99)),
    ]
    rows = list(wild_rows(generator, 120))
    labels, weights = generator.random(120), generator.choice([0.25, 1.0], 120)
    make = lambda: gw.Groupwise([gw.weight("w")], learners, indicators=False)  # noqa: E731
    loop, other = make(), make()
    for t, (row, label, weight) in enumerate(zip(rows, labels, weights, strict=True)):
        ticket = loop.predict({**row, "w": weight})
        again = other.predict({**row, "w": weight})
        assert np.isfinite(ticket.advice).all()
        assert np.array_equal(ticket.advice, again.advice)
        loop.learn(ticket, label)
        other.learn(again, label)
        if t % 17 == 0:
            other.save(tmp_path / "model.gw")
            other = gw.load(tmp_path / "model.gw")
        for name, array in state_of(loop).items():
            assert np.isfinite(array).all(), name
    names = [f"c{j}" for j in range(9)]
    x = np.array([[row.get(name, 0.0) for name in names] for row in rows])
    one, two = (
        gw.replay(x, labels, weights[:, None], learner=learners, jobs=jobs).advice
        for jobs in (1, 2)
    )
    assert one is not None
    assert two is not None
    assert np.isfinite(one).all()
    assert np.array_equal(one, two)
    fresh = gw.Groupwise([gw.weight("w")], learners, features=names, always_on=False,
                         indicators=False, intercept=False)  # fmt: skip
    for row, label, weight, advice in zip(x, labels, weights, one, strict=True):
        ticket = fresh.predict({**dict(zip(names, row.tolist(), strict=True)), "w": weight})
        assert np.array_equal(ticket.advice[0], advice)
        fresh.learn(ticket, label)


@pytest.mark.parametrize("penalty", [0.999e-60, 1.001e60, 1e-320])
def test_a_penalty_leaves_room_for_squares_of_features(penalty):
    with pytest.raises(gw.errors.ConfigurationError, match="between 1e-60 and 1e\\+60"):
        Ridge(penalty)


@pytest.mark.parametrize("forgetting", [1e-10, 1.5])
def test_forgetting_leaves_something(forgetting):
    with pytest.raises(gw.errors.ConfigurationError, match="between 1e-09 and 1"):
        Ridge(forgetting=forgetting)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [1e-60, 1e60])
def test_the_largest_and_smallest_penalties_and_features(penalty):
    generator = np.random.default_rng(0)
    x = 1e100 * generator.uniform(-1.0, 1.0, size=(24, 3))
    x[::2] = generator.normal(size=(12, 3))
    y, w = generator.random(24), generator.choice([5e-324, 1e-9, 1.0], 24)
    learners = [Ridge(penalty), Ridge(penalty, True), Ridge(penalty, False, 1e-9)]
    assert_close(x, y, w, learners, 2_000, clip=True)


@pytest.mark.parametrize("penalty", [1e-9, 1.0, 1e9])
def test_the_identities_hold_for_stiff_learners(penalty):
    """M is the penalised minimum and ln det(A/λ) that of the matrix, in every mode."""
    generator = np.random.default_rng(0)
    x, y, _ = columns("amounts", 60, generator)
    model = gw.Groupwise([], Ridge(penalty, forward=True), features=["a", "b", "c"], clip=False,
                         intercept=False)  # fmt: skip
    for row, label in zip(x.tolist(), y.tolist(), strict=True):
        model.learn_one(dict(zip("abc", row, strict=True)), label)
    state = state_of(model)
    with localcontext() as context:
        context.prec = 100
        rows = np.array([[Decimal(v) for v in row] for row in x.tolist()])
        labels = np.array([Decimal(v) for v in y.tolist()])
        matrix = Decimal(penalty) * inverted_unit(3) + rows.T @ rows
        moment = rows.T @ labels
        minimum = labels @ labels - moment @ (inverted(matrix) @ moment)
        a, b, c = matrix / Decimal(penalty)
        product = np.array([b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2],
                            b[0] * c[1] - b[1] * c[0]])  # fmt: skip
        log_determinant = (a @ product).ln()
    assert state["ridge.minimum"][0, 0] == pytest.approx(float(minimum), rel=1e-9)
    assert state["ridge.log_determinant"][0, 0] == pytest.approx(float(log_determinant), rel=1e-9)
