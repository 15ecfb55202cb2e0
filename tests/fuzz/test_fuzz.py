"""The programs run, find what is planted, and find nothing else; the reference is right."""

import io
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import groupwise as gw
from groupwise.regret.table import RegretTable
from tests.fuzz import (
    adversary,
    advice,
    draws,
    equality,
    exact,
    expectation,
    hostile,
    probability,
)
from tests.fuzz.__main__ import PROGRAMS
from tests.fuzz.exact import leaning_advice, least_squares, ridge_advice, ridge_rounds
from tests.fuzz.runner import Found, run, try_case

CASES = {
    "adversary": 40,
    "advice": 30,
    "equality": 6,
    "expectation": 2,
    "hostile": 12,
    "probability": 6,
}


def kinds(case, numbers, seed=0):
    """The kinds of violations in some cases."""
    return {one.kind for number in numbers for one in try_case(case, seed, number).violations}


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_few_cases_find_nothing(program):
    said: list[str] = []
    report = run(f"tests.fuzz.{program}", cases=CASES[program], jobs=2, say=said.append)
    assert report.cases == CASES[program]
    assert report.violations == Counter(), "\n".join(said)


@pytest.mark.parametrize("program", [adversary, advice, equality, expectation, probability])
def test_a_case_is_the_same_whenever_it_is_run(program):
    one, other = (try_case(program.case, 7, 3) for _ in range(2))
    assert one.counts == other.counts
    assert one.largest == other.largest
    assert one.violations == other.violations


# What the runner does with cases that go wrong.


def test_every_way_to_go_wrong_is_counted():
    said: list[str] = []
    report = run("tests.fuzz.planted", seed=1, cases=40, jobs=2, say=said.append)
    drawn = [int(np.random.default_rng([1, k]).integers(1_000_000)) for k in range(40)]
    wrong = Counter(number // 2 % 4 for number in drawn if number % 2)
    assert report.cases == 40
    assert report.violations == {
        "planted": wrong[0],
        "error KeyError": wrong[1],
        "crash": wrong[2],
    }
    assert min(report.violations.values()) > 0
    assert sum("--case 1:" in line for line in said) == report.violations.total()
    assert said[-1].startswith("planted: 40 cases")


def test_time_is_kept():
    report = run("tests.fuzz.planted", seconds=0.0, say=lambda line: None)
    assert report.cases == 0


# What is planted is found.


def with_lines(monkeypatch, change):
    """Let regret tables say something else."""
    real = gw.Groupwise.regret

    def regret(model, *arguments):
        table = real(model, *arguments)
        lines = [{**line, **change(line)} for line in table.rows]
        return RegretTable(lines, table.comparator, table.settled)

    monkeypatch.setattr(gw.Groupwise, "regret", regret)


def test_a_certificate_below_the_regret_is_found(monkeypatch):
    """By a millionth of the range."""

    def change(line):
        return {"certificate": line["regret"] - 1e-6 * (1 + line["rounds"]), "status": "proved"}

    with_lines(monkeypatch, change)
    assert "certificate, Square" in kinds(adversary.case, range(10))


def test_a_wrong_best_loss_is_found(monkeypatch):
    with_lines(monkeypatch, lambda line: {"best_loss": line["best_loss"] * 1.001 + 1e-5})
    assert "best loss, Square" in kinds(adversary.case, range(10))


def test_a_certificate_that_is_no_number_is_found(monkeypatch):
    with_lines(monkeypatch, lambda line: {"certificate": np.nan, "status": "proved"})
    assert "not finite, Square" in kinds(adversary.case, range(10))


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda line: {"best_low": line["best_low"] + 0.01 * (1 + line["rounds"])}, "lower side"),
        (lambda line: {"best_high": 0.0, "best_low": 0.0}, "upper side"),
        (lambda line: {"certificate": line["regret"] - 0.01 * (1 + line["rounds"])}, "certificate"),
    ],
)
def test_wrong_claims_about_probabilities_are_found(monkeypatch, change, kind):
    with_lines(monkeypatch, lambda line: {"status": "proved", **change(line)})
    assert kind in kinds(probability.case, range(3, 6))


def test_a_state_that_is_not_finite_is_found():
    """In whatever array of the file it is."""

    class Broken:
        def save(self, path):
            file = io.BytesIO()
            np.save(file, np.array([1.0, np.nan]))
            hostile.pack(path, {"ridge.theta.npy": file.getvalue()})

    found = Found()
    adversary.check_state(Broken(), found)
    assert [one.kind for one in found.violations] == ["state not finite"]


def test_a_prediction_out_of_range_is_found(monkeypatch):
    beyond = property(lambda ticket: ticket.loss.high + 0.01 * (ticket.loss.high - ticket.loss.low))
    monkeypatch.setattr(gw.Ticket, "prediction", beyond)
    assert "prediction out of range" in kinds(adversary.case, range(3))


def test_advice_that_is_a_little_off_is_found(monkeypatch):
    real = exact.ridge_advice
    calm = [k for k in range(20) if not try_case(advice.case, 0, k).violations]
    assert calm
    monkeypatch.setattr(advice, "ridge_advice", lambda *given: [x + 3e-7 for x in real(*given)])
    assert "advice" in kinds(advice.case, calm)


def test_leaning_advice_that_is_a_little_off_is_found(monkeypatch):
    real = exact.leaning_advice
    monkeypatch.setattr(advice, "leaning_advice", lambda *given: [x + 3e-7 for x in real(*given)])
    assert "leaning advice" in kinds(advice.case, range(12))


def test_learners_that_no_group_has_make_no_difference():
    lists = {"a=v1": gw.learners.Ridge(), "a=v2": [gw.learners.Ridge(), draws.Mean()]}
    model = gw.Groupwise(
        [gw.by("a")],
        lambda group: lists.get(group.name, gw.learners.Logistic()),
        loss=gw.losses.Log(),
        always_on=False,
    )
    model.learn_one({"a": "v1", "x": 0.5}, 1.0)
    other = equality.through_file(model)  # without the learner that others would have
    for one in (model, other):
        one.learn_one({"a": "v2", "x": 0.25}, 0.0)
    found = Found()
    equality.compare(found, "file", equality.Outcome(model, []), equality.Outcome(other, []))
    assert found.violations == []
    assert "'regret'" in equality.Outcome(model, []).table


def test_a_last_bit_is_found(monkeypatch):
    real = equality.replayed

    def replayed(*arguments):
        model, told = real(*arguments)
        return model, [*told[:-1], np.nextafter(told[-1], 2.0)]

    monkeypatch.setattr(equality, "replayed", replayed)
    assert "predictions, replay" in kinds(equality.case, range(4))


@pytest.mark.slow
def test_a_mean_above_the_certificate_is_found(monkeypatch):
    with_lines(monkeypatch, lambda line: {"certificate": line["regret"] - 1.0})
    assert any("certificate" in kind for kind in kinds(expectation.case, range(2)))


def test_an_error_that_is_not_ours_is_found(monkeypatch):
    def load(path):
        raise KeyError(path)

    monkeypatch.setattr(gw, "load", load)
    assert "error KeyError" in kinds(hostile.snapshot_case, range(5))


# The reference.


def test_least_squares_is_exact():
    """Three points and two columns, by hand; then a column that changes nothing."""
    rows, labels = [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [0.0, 0.0, 3.0]
    assert least_squares(rows, labels, [1.0, 1.0, 1.0]) == Fraction(3, 2)
    more = [[*row, 2.0**-500 * (row[0] + row[1])] for row in rows]
    assert least_squares(more, labels, [1.0, 1.0, 1.0]) == Fraction(3, 2)
    far = [[1e100 * row[0], 1e8 + row[1]] for row in rows]
    assert least_squares(far, labels, [0.5, 0.5, 0.5]) == Fraction(3, 4)


def test_a_blur_hides_what_rounding_has_made():
    x = np.random.default_rng(0).random((20, 2))
    rows = np.column_stack([x, x[:, 0] / 3 + x[:, 1]])
    labels, weights = x[:, 0] ** 2, np.ones(20)
    two = least_squares(x, labels, weights)
    assert least_squares(rows, labels, weights) < two * Fraction(999, 1000)
    blurred = least_squares(rows, labels, weights, Fraction(1, 2**80))
    assert two * Fraction(1 - 1e-9) < blurred < two * Fraction(1 + 1e-9)


def test_least_squares_agrees_with_a_decomposition():
    generator = np.random.default_rng(0)
    x, y, weights = generator.normal(size=(30, 5)), generator.random(30), generator.random(30)
    root = np.sqrt(weights)
    expected = np.linalg.lstsq(root[:, None] * x, root * y)[1][0]
    assert float(least_squares(x, y, weights)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize("forgetting", [1.0, 0.3])
def test_ridge_advice_agrees_with_the_library_on_calm_data(forward, forgetting):
    generator = np.random.default_rng(1)
    x, y, weights = generator.normal(size=(40, 3)), generator.random(40), generator.random(40)
    ridge = gw.learners.Ridge(0.5, forward, forgetting)
    told = gw.replay(x, y, weights[:, None], learner=ridge, clip=False).advice
    expected = ridge_advice(x, y, weights, 0.5, forward, forgetting)
    assert np.asarray(told) == pytest.approx(np.array(expected), abs=1e-12)


@pytest.mark.parametrize("forgetting", [1.0, 0.3])
def test_leaning_advice_agrees_with_the_library_on_calm_data(forgetting):
    generator = np.random.default_rng(1)
    x, y, weights = generator.normal(size=(40, 3)), generator.random(40), generator.random(40)
    learners = [gw.learners.Ridge(0.5), gw.learners.Ridge(2.0, False, forgetting, "only")]
    members = np.column_stack([np.ones(40), weights])
    told = np.asarray(gw.replay(x, y, members, learner=learners, clip=False).advice)[1::2, 1]
    everybody = [theta for theta, _, _ in ridge_rounds(x, y, np.ones(40), 0.5, 1.0)]
    expected = leaning_advice(x, y, weights, 2.0, forgetting, everybody)
    assert told == pytest.approx(np.array(expected), abs=1e-12)
