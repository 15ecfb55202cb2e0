"""Regret ≤ certificate at every label, for probabilities, with the best model known apart."""

import numpy as np
import pytest

import groupwise as gw
from groupwise.learners import Logistic
from groupwise.losses import Log
from tests.fuzz.exact import best_in_basis

BOUND = 4.0
KINDS = ("random", "bursts", "soft", "fractional", "adaptive", "separable")


def rows(generator, kind, count):
    """Rows of two numbers and a group, and labels or None where the adversary has them."""
    for t in range(count):
        x = generator.normal(size=2) * (10.0 if kind == "bursts" and t % 5 == 0 else 1.0)
        row = {"a": float(x[0]), "b": float(x[1]), "part": float(generator.uniform(0.1, 1.0))}
        if kind != "fractional":
            row["part"] = float(generator.random() < 0.6)
        chance = 1.0 / (1.0 + np.exp(-2.0 * x[0] + x[1]))
        label = {
            "soft": float(generator.random()),
            "adaptive": None,
            "separable": float(x[0] > 0.3),
        }.get(kind, float(generator.random() < chance))
        yield row, label


def ratios(seed, keep_rows):
    """regret / certificate at every label and group; both against a reference of its own."""
    generator = np.random.default_rng([seed, 14])
    kind = KINDS[seed % len(KINDS)]
    model = gw.Groupwise(
        [gw.weight("part")],
        Logistic(bound=BOUND, keep_rows=keep_rows),
        loss=Log(),
        features=["a", "b"],
        indicators=False,
    )
    seen: dict[str, list[tuple[list[float], float, float, float]]] = {}
    for row, label in rows(generator, kind, 12):
        ticket = model.predict(row)
        if label is None:
            label = float(ticket.prediction < 0.5)
        model.learn(ticket, label)
        p = ticket.prediction
        lost = -label * np.log(p) - (1.0 - label) * np.log1p(-p)
        for name, weight in ticket.groups.items():
            x = [1.0, row["a"], row["b"]]
            seen.setdefault(name, []).append((x, label, weight, weight * lost))
        for line in model.regret():
            rounds = zip(*seen[line["group"]], strict=True)
            matrix, y, w, losses = (np.array(part) for part in rounds)
            low, high = best_in_basis(np.linalg.qr(matrix)[0], y, w, BOUND)
            near = 1e-8 * (1.0 + w.sum())
            assert line["best_low"] <= high + near
            assert line["best_high"] >= low - near
            assert line["status"] in ("proved", "loose", "vacuous")
            regret = losses.sum() - high
            assert regret <= line["certificate"] + near, (seed, kind, line)
            yield regret / line["certificate"] if line["certificate"] > 0.1 else 0.0


@pytest.mark.parametrize("keep_rows", [2000, 4], ids=["exact", "bracket"])
@pytest.mark.slow
def test_regret_stays_below_the_certificate(keep_rows):
    largest = max(max(ratios(seed, keep_rows)) for seed in range(6))
    assert largest > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("keep_rows", [2000, 4], ids=["exact", "bracket"])
def test_regret_stays_below_the_certificate_on_300_streams(keep_rows):
    largest = max(max(ratios(seed, keep_rows)) for seed in range(300))
    assert largest > 0.9  # the bound is nearly reached


@pytest.mark.parametrize("classes", [None, [0, 1, 2]])
def test_no_row_is_kept_and_features_are_as_small_as_numbers_get(classes):
    model = gw.Groupwise(
        [], learner=Logistic(bound=0.01, keep_rows=0), loss=Log(classes=classes), intercept=False
    )
    generator = np.random.default_rng(0)
    for _ in range(6):
        row = {"u": 5e-324 * float(generator.integers(1, 5))}
        model.learn_one(row, int(generator.integers(2)))
    (found,) = model.regret()
    assert found["best_kind"] == "bracket"
    assert 0.0 <= found["best_low"] <= found["best_high"] <= 12 * np.log(2.0)
