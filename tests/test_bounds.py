"""The corollaries as numbers: against 50 digits, against regret, and not twice as large as true."""

import itertools
import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import groupwise as gw
from groupwise import bounds
from groupwise.aggregators import AdaNormalHedge, Prod, Specialists
from groupwise.checks import bench
from groupwise.errors import ConfigurationError
from groupwise.learners import FTPL, ContextualFTPL, Logistic, Ridge
from groupwise.oracles import Finite, FiniteClass, Stumps

DIGITS = 50
AGGREGATORS = [AdaNormalHedge(), Specialists(), Prod()]
LENGTHS = [1, 7, 64, 1_000, 123_456, 10**9]


# The formulas, written out once more.


def exact_overhead(aggregator, rounds, q, horizon):
    q, horizon = mp.mpf(q), max(mp.mpf(horizon), mp.mpf(rounds))
    if isinstance(aggregator, Specialists):
        return mp.log(1 / q) / 2
    if isinstance(aggregator, Prod):
        return 2 * mp.log(mp.mpf(255) / 128 / q) + 2
    mean = 1 + q * mp.log(1 + mp.mpf(rounds)) + (1 - q) * mp.log(1 + horizon)
    return mp.sqrt(3 * rounds * mp.log((1 + mp.mpf(3) / 2 * mean) / q))


def exact_ridge(rounds, d, norm, size, penalty):
    norm, size, penalty = map(mp.mpf, (norm, size, penalty))
    return penalty * norm**2 + d * mp.log(1 + rounds * size**2 / (penalty * d))


def exact_perturbed(rounds, labels, shift, kappa, width):
    """The sum itself, round by round, and the noise: what the closed form is at least."""
    rate = 2 * mp.sqrt(mp.mpf(width) / (2 * labels * shift))
    whole = sum(1 - mp.exp(-kappa * rate / mp.sqrt(t)) for t in range(1, rounds + 1))
    return whole + mp.mpf(width) * mp.sqrt(rounds) / (labels * rate)


def just_above(found, exact, most=1e-11):
    with mp.workdps(DIGITS):
        assert exact <= mp.mpf(found) <= exact * (1 + mp.mpf(most)) + mp.mpf(most)


@pytest.mark.parametrize("rounds", LENGTHS)
@pytest.mark.parametrize("aggregator", AGGREGATORS, ids=lambda one: type(one).__name__)
def test_regression_to_the_last_digits(rounds, aggregator):
    for groups, d, norm, size, penalty in [
        (1, 1, 0, 1, 1),
        (12, 5, 1.7, 3.3, 0.01),
        (999, 80, 9, 1e-3, 30),
    ]:
        with mp.workdps(DIGITS):
            alpha = exact_ridge(rounds, d, norm, size, penalty)
            more = exact_overhead(aggregator, rounds, mp.mpf(1) / groups, 2**64)
        just_above(bounds.ridge(rounds, d, norm, size, penalty), alpha)
        found = bounds.regression(rounds, groups, d, norm, size, penalty, aggregator=aggregator)
        just_above(found, alpha + more)
        shorter = bounds.overhead(rounds, groups, aggregator=aggregator, horizon=10 * rounds)
        just_above(shorter, exact_overhead(aggregator, rounds, mp.mpf(1) / groups, 10 * rounds))
    assert bounds.ridge(rounds, 9, 1.0) == bounds.ridge(rounds, 9, 1.0, size=3.0)


@pytest.mark.parametrize("rounds", LENGTHS)
def test_costs_to_the_last_digits(rounds):
    with mp.workdps(DIGITS):
        root = mp.sqrt(mp.mpf(4) * 6 * mp.mpf(2.5) * rounds)
        more = mp.mpf(2.5) * exact_overhead(AdaNormalHedge(), rounds, mp.mpf(1) / 7, 2**64)
    just_above(bounds.ftpl(rounds, 4, 6, 2.5), 3 * root)
    just_above(bounds.ftpl(rounds, 4, 6, 2.5, tuned_for=rounds), 2 * root)
    just_above(bounds.linear_optimisation(rounds, 7, 4, 6, 2.5), 3 * root + more)
    assert bounds.ftpl(rounds, 4, 6) == bounds.ftpl(rounds, 4, 6, 6)
    policies = exact_overhead(AdaNormalHedge(), rounds, mp.mpf(1) / 700, 2**64)
    just_above(bounds.enumerated(rounds, 7, policies=100), policies)


@pytest.mark.parametrize("rounds", [1, 5, 40, 300])
@pytest.mark.parametrize(
    ("labels", "shift", "factor"), [(1, 1, 1), (1, 6, 1), (3, 6, 9), (3, 1, 3)]
)
def test_perturbed_leaders_are_summed_up_from_above(rounds, labels, shift, factor):
    width = 2.9
    found = bounds.contextual_ftpl(rounds, labels, shift, shift * factor, width)
    with mp.workdps(DIGITS):
        exact = exact_perturbed(rounds, labels, shift, shift * factor, width)
        assert exact <= found <= exact + 1  # a sum and its integral: less than its first term apart
    if factor == 1:
        assert found <= 2.5 * math.sqrt(2.0) * math.sqrt(shift * width * rounds / labels) + 1e-9


def test_long_streams_of_perturbed_leaders():
    for rounds in (10**6, 10**12):
        rate = mp.sqrt(2 * mp.mpf("2.5"))
        with mp.workdps(DIGITS):
            u = rate / mp.sqrt(rounds)
            exact = rounds * (1 - 2 * mp.expint(3, u)) + mp.mpf("2.5") * mp.sqrt(rounds) / rate
        just_above(bounds.contextual_ftpl(rounds, 1, 1, 1, 2.5), exact, 1e-6)


@pytest.mark.parametrize(("entries", "policies"), [(1, 2), (6, 14), (64, 14), (64, 2**30), (9, 1)])
def test_the_width_of_noise(entries, policies):
    """At most the least over λ, and at least what the policies of a class really have."""
    found = bounds.noise_width(entries, policies)
    with mp.workdps(DIGITS):
        grid = [mp.mpf(k) / 2_000 for k in range(1, 2_000)]
        each = [(mp.log(policies) - entries * mp.log(1 - x**2)) / x for x in grid]
        least = min(*each, mp.mpf(entries) / 2) if policies > 1 else 0
        assert least * (1 - mp.mpf("1e-4")) <= found <= least * (1 + mp.mpf("1e-12"))
    generator = np.random.default_rng(1)
    said = generator.integers(2, size=(min(policies, 5_000), entries))
    noise = generator.laplace(size=(4_000, entries))
    most = (noise @ said.T).max(axis=1)
    assert found >= most.mean() - 4.0 * most.std() / math.sqrt(len(most))


def test_policies_that_share_no_place_need_no_more_than_all_places():
    """Each says 1 in one place only, but the noise of all of them counts: k is of them together."""
    every = mp.nsum(lambda n: (-1) ** (n + 1) * mp.binomial(30, n) / n, [1, 30])  # E max of 30 Exp
    assert bounds.noise_width(30, 30) >= every > 2 * bounds.noise_width(1, 30)


def test_two_policies_on_one_context_have_just_that_width():
    """W = E max(0, Laplace) = ½: the bound is no more, and half of it would be too little."""
    assert bounds.noise_width(1, 2) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("rounds", [9, 2_000])
def test_classification_is_made_of_its_parts(rounds, labels, independent):
    """Labels that are each for themselves: one class a label, of which a shift changes one."""
    size, policies, groups = 64, 14, 7  # so many places that W is not half of them
    more = bounds.overhead(rounds, groups)
    if independent:
        width, once, twice = labels * bounds.noise_width(size, policies), 1, 1
    else:
        width, once, twice = bounds.noise_width(size * labels, policies), labels, labels**2
    known = {"groups": groups, "labels": labels, "policies": policies, "independent": independent}
    settings: list[tuple[Any, str, int, int]] = [
        (bounds.classification_transductive, "contexts", 1, once),
        (bounds.classification_separator, "separator", size, twice),
    ]
    for bound, name, shift, factor in settings:
        alpha = bounds.contextual_ftpl(rounds, labels, shift, shift * factor, width)
        found = bound(rounds, **known, **{name: size})
        assert found == pytest.approx(alpha + more, rel=1e-9)
        given = bound(rounds, **known, **{name: size}, width=width)
        assert given == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize(("rounds", "horizon"), [(1_000, 1_000), (64_000, 64_000), (500, 8_000)])
def test_apple_tasting_is_blocks_times_what_is_learned_from(rounds, horizon):
    """L b(T_g/L) + T_g/L where T is a cube: L is its root, and the bound has one more in each."""
    block = round(horizon ** (1 / 3))
    assert block**3 == horizon
    blocks, explored = horizon // block + 1, rounds / block
    with mp.workdps(DIGITS):
        width = mp.mpf(bounds.noise_width(4, 9))
        rate = 2 * mp.sqrt(width / 8)  # a shift of all 4, of which κ is as large
        u = 4 * rate / mp.sqrt(explored)
        learner = explored * (1 - 2 * mp.expint(3, u)) + width * mp.sqrt(explored) / rate
        combining = exact_overhead(AdaNormalHedge(), blocks, mp.mpf(1) / 6, blocks)
        combining *= mp.sqrt(mp.mpf(explored) / blocks)
        least = [(block + more) * (learner + combining) + explored for more in (0, 1)]
    found = bounds.apple_tasting(rounds, 6, 4, 9, horizon=horizon)
    assert least[0] <= found
    just_above(found, least[1], 1e-9)


# Rounds until they say something.

SAY = [
    (bounds.regression, {"groups": 4, "features": 3, "norm": 1.0}),
    (bounds.regression, {"groups": 4, "features": 3, "norm": 9.0, "aggregator": Specialists()}),
    (bounds.enumerated, {"groups": 4, "policies": 30}),
    (bounds.linear_optimisation, {"groups": 4, "diameter": 2, "cost_norm": 1}),
    (bounds.classification_transductive, {"groups": 4, "contexts": 8, "labels": 1, "policies": 9}),
    (bounds.classification_separator, {"groups": 4, "separator": 5, "labels": 2, "policies": 9}),
    (bounds.apple_tasting, {"groups": 2, "separator": 2, "policies": 4}),
]


@pytest.mark.parametrize(("bound", "known"), SAY)
def test_rounds_until_a_bound_says_something(bound, known):
    found = bounds.rounds_until(bound, **known)
    steps = [*range(1, min(found, 3_000)), *range(max(1, found - 300), found)]
    assert all(bound(rounds=t, **known) >= t for t in steps)
    assert all(bound(rounds=t, **known) < t for t in (found, found + 1, 2 * found, 100 * found))


def test_what_makes_no_sense_is_refused():
    for wrong in (
        {"rounds": -1},
        {"groups": 0},
        {"features": math.nan},
        {"norm": "1"},
        {"prior": 2.0},
    ):
        with pytest.raises(ConfigurationError, match=next(iter(wrong))):
            bounds.regression(**({"rounds": 9, "groups": 2, "features": 2, "norm": 1.0} | wrong))
    for bound, wrong in (
        (bounds.ridge, {"features": 2, "norm": 1.0, "penalty": 0}),
        (bounds.ftpl, {"diameter": 2, "cost_norm": 1.0, "tuned_for": 0}),
        (bounds.contextual_ftpl, {"shift": 1, "kappa": 1, "width": 1, "labels": 0}),
        (bounds.contextual_ftpl, {"labels": 1, "kappa": 1, "width": 1, "shift": 0}),
        (bounds.overhead, {"groups": 2**2_000}),
        (bounds.ridge, {"features": 2, "norm": 1e200}),
    ):
        named = list(wrong)[-1]
        with pytest.raises(ConfigurationError, match=f"{named} must be a number") as error:
            bound(rounds=9, **wrong)
        assert len(str(error.value)) < 120
    with pytest.raises(ConfigurationError, match="says nothing"):
        bounds.overhead(9, 2, aggregator=object())
    with pytest.raises(ConfigurationError, match="however many"):
        bounds.rounds_until(lambda rounds: rounds + 1.0)


@pytest.mark.filterwarnings("error")
def test_the_ends_of_what_makes_sense():
    """Sums of products of a few: not a number is nowhere, and infinite is nothing."""
    far: list[Any] = [1e-300, 1.0, np.float32(7.0), 1e60]
    for rounds, one, other in itertools.product(far, repeat=3):
        most = max(one, 1.0), max(other, 1.0)
        found = [
            bounds.regression(rounds, most[0], most[1], one, one, max(other, 1e-60)),
            bounds.linear_optimisation(rounds, most[0], one, other),
            bounds.classification_separator(rounds, most[0], most[0], 3, most[1]),
            bounds.classification_transductive(rounds, most[0], most[1], 3, most[0]),
            bounds.apple_tasting(rounds, most[0], most[1], 7),
            bounds.enumerated(rounds, *most),
            bounds.noise_width(one, 2.0**1_000),
        ]
        assert all(0.0 <= bound < math.inf for bound in found), (rounds, one, other)


# Above realised regret, on the streams of ``checks``.


def rows_of(source, seed, model, count):
    """Run a model on a stream of ``checks``; its rows and labels."""
    seen = []
    for row, answer in itertools.islice(bench.STREAMS[source](seed), count):
        ticket = model.predict(row)
        label = answer(ticket.prediction)
        model.learn(ticket, label)
        seen.append((row, label))
    return seen


def in_group(group, row):
    if group == "always_on":
        return 1.0
    if group == "share":
        return row["share"]
    return float(row["u"] > 0.3) if group.startswith("u") else float(group == f"kind={row['kind']}")


def test_costs_in_any_unit_that_labels_can_have():
    model = gw.Groupwise(
        [gw.by("kind")], FTPL(Finite(np.eye(3)), cost_norm=1e139), loss=gw.losses.Linear(0, 1e139)
    )
    for t in range(20):
        model.learn_one({"kind": "ab"[t % 2]}, 1e139 * np.eye(3)[t % 3])
    for row in model.regret():
        declared = bounds.linear_optimisation(row["rounds"], 3, 2, 1e139)
        assert row["regret"] <= row["a_priori"] <= declared < math.inf


@pytest.mark.parametrize("source", bench.STREAMS)
@pytest.mark.parametrize("penalty", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("aggregator", AGGREGATORS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("forward", [False, True])
def test_regression_is_above_regret(source, penalty, aggregator, forward):
    """Declared: d, ‖θ‖ of the best model and the largest row; and the column of the table."""
    features = ["u", "v", "one"]
    model = gw.Groupwise(
        bench.declarations(fractional=True),
        Ridge(penalty, forward),
        aggregator,
        features=features,
        indicators=False,
        intercept=False,
    )
    seen = rows_of(source, 3, model, 150)
    table = model.regret()
    assert "measured" in table.foreknown
    x = np.array([[row[name] for name in features] for row, _ in seen])
    y = np.array([label for _, label in seen])
    for line in table:
        w = np.array([in_group(line["group"], row) for row, _ in seen])
        assert w.sum() == pytest.approx(line["rounds"])
        root = np.sqrt(w)[:, None]
        theta = np.linalg.lstsq(root * x, root[:, 0] * y, rcond=None)[0]
        norm, size = float(np.linalg.norm(theta)), float(np.linalg.norm(x, axis=1).max())
        declared = bounds.regression(
            line["rounds"], len(table), 3, norm, size, penalty, aggregator=aggregator
        )
        assert line["regret"] <= line["a_priori"] <= declared
        assert line["learner"] <= line["learner_a_priori"]


def test_the_column_has_what_50_digits_have():
    """M − best + d ln(1 + Σ‖x‖²/(λd)) + the aggregator's, on a stream of ``checks``."""
    features, penalty = ["u", "v", "one"], 0.1
    model = gw.Groupwise(
        [gw.by("kind")],
        Ridge(penalty),
        Specialists(),
        features=features,
        indicators=False,
        intercept=False,
        loss=gw.losses.Square(0.0, 4.0),
    )
    seen = [(row, 4.0 * answer(0.5)) for row, answer in itertools.islice(bench.linear(1), 120)]
    for row, label in seen:
        model.learn_one(row, label)
    table = model.regret()
    for line in table:
        mine = [(r, y) for r, y in seen if in_group(line["group"], r)]
        with mp.workdps(DIGITS):
            x = mp.matrix([[r[name] for name in features] for r, _ in mine])
            y = mp.matrix([mp.mpf(float(label)) / 4 for _, label in mine])
            power, moment = sum(v * v for v in y), x.T * y
            least = [
                power - (moment.T * mp.lu_solve(x.T * x + mp.mpf(extra) * mp.eye(3), moment))[0]
                for extra in (penalty, 0)
            ]
            size = sum(v * v for v in x)
            learner = least[0] - least[1] + 3 * mp.log(1 + size / (3 * mp.mpf(penalty)))
            exact = 16 * (learner + mp.log(len(table)) / 2)
            found = mp.mpf(line["a_priori"])
            assert exact <= found <= exact + 16 * mp.mpf("2e-9") * (1 + least[0]) + mp.mpf("1e-8")


def test_rows_that_come_late_are_in_it():
    model = gw.Groupwise([gw.by("kind")])
    tickets = []
    for row, answer in itertools.islice(bench.contrary(0), 200):
        ticket = model.predict(row)
        tickets.append((ticket, answer(ticket.prediction)))
        if len(tickets) > 30:
            model.learn(*tickets.pop(0))
    lines = list(model.regret())
    assert any(line["delay"] != 0.0 for line in lines)
    for line in lines:
        assert line["regret"] <= line["a_priori"]
        rest = line["a_priori"] - line["learner_a_priori"] - line["delay"]
        mass = 4.0 if line["group"] == "always_on" else 1.0  # as portfolios have it
        prior = mass / (4.0 + len(lines) - 1) / 3.0
        assert rest == pytest.approx(2.0 * math.log(255 / 128 / prior) + 2.0, rel=1e-9)


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"clip": False, "aggregator": AdaNormalHedge()}, "not held to the range"),
        ({"loss": gw.losses.Absolute()}, "no learner"),
        ({"learner": Ridge(forgetting=0.9)}, "no learner"),
        ({"learner": Ridge(everybody="only")}, "no learner"),
        (
            {
                "loss": gw.losses.Log(floor=0.01),
                "learner": Logistic(),
                "aggregator": AdaNormalHedge(),
            },
            "floor",
        ),
    ],
)
def test_where_nothing_is_known_it_says_why(parts, why):
    model = gw.Groupwise([gw.by("kind")], **parts)
    rows_of("linear", 0, model, 20)
    table = model.regret()
    assert why in table.foreknown
    assert all(line["a_priori"] is None for line in table)
    assert "a_priori" not in table.shown()
    assert table.foreknown in str(table)


def test_what_the_widened_know_is_nothing():
    model = gw.Groupwise([gw.by("kind")], loss=gw.losses.Unbounded())
    rows_of("linear", 0, model, 20)
    assert "no range" in model.regret().foreknown


@pytest.mark.parametrize("source", bench.STREAMS)
def test_probabilities_are_above_regret(source):
    model = gw.Groupwise([gw.by("kind")], Logistic(), loss=gw.losses.Log())
    rows_of(source, 2, model, 150)
    for line in model.regret():
        assert max(line["regret"], line["certificate"]) <= line["a_priori"]


def mean_regret(make, seeds, rounds):
    """The mean regret of every group over seeds, with a_priori, which is the same each time."""
    tables = [make(seed, rounds) for seed in range(seeds)]
    regrets = [
        np.mean([table.rows[g]["regret"] for table in tables]) for g in range(len(tables[0]))
    ]
    return tables[0].rows, regrets


def path_model(seed, rounds):
    model = gw.Groupwise(
        [gw.by("kind")],
        FTPL(Finite(np.eye(3)), cost_norm=1.0),
        loss=gw.losses.Linear(0, 1),
        seed=seed,
    )
    for t in range(rounds):
        action = model.predict_one({"kind": "ab"[t % 2]})
        costs = np.eye(3)[t % 3] if t % 5 else np.asarray(action, dtype=float)
        model.learn_one({"kind": "ab"[t % 2]}, costs)
    return model.regret()


def test_linear_optimisation_is_above_regret():
    rows, regrets = mean_regret(path_model, 10, 120)
    for row, regret in zip(rows, regrets, strict=True):
        declared = bounds.linear_optimisation(row["rounds"], len(rows), 2, 1, 1)
        assert regret <= row["a_priori"] <= declared


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (-1.0, 9.0)])
def test_the_range_of_costs_is_that_of_the_loss(low, high):
    """Also where costs are below 0, or stay within less of it: it is what tables count in."""
    model = gw.Groupwise(
        [gw.by("kind")],
        FTPL(Finite(np.eye(3)), cost_norm=1.0),
        loss=gw.losses.Linear(low, high),
    )
    for t in range(90):
        model.learn_one(
            {"kind": "ab"[t % 2]}, np.eye(3)[t % 3] * (1.0 if low == 0.0 or t % 2 else -1.0)
        )
    for row in model.regret():
        known = {"groups": 3, "diameter": 2, "cost_norm": 1, "cost_range": high - low}
        declared = bounds.linear_optimisation(row["rounds"], **known)
        assert row["regret"] <= row["a_priori"] <= declared
        if high - low > 1.0:
            short = bounds.linear_optimisation(row["rounds"], **known | {"cost_range": 1.0})
            assert short < row["a_priori"]


CONTEXTS = [list(bits) for bits in itertools.product([0, 1], repeat=3)]


def label_model(setting, seed, rounds):
    oracle = Stumps()
    known = CONTEXTS if setting == "transductive" else oracle.separator(3)
    model = gw.Groupwise(
        [gw.by("kind")],
        ContextualFTPL(oracle, known, setting=setting),
        loss=gw.losses.ZeroOne(),
        features=["a", "b", "c"],
        seed=seed,
    )
    generator = np.random.default_rng(5)
    for t in range(rounds):
        x = CONTEXTS[generator.integers(8)]
        row = dict(zip("abc", x, strict=True)) | {"kind": "ab"[t % 2]}
        model.learn_one(row, int(generator.random() < 0.2 + 0.6 * x[t // 40 % 3]))
    return model.regret()


@pytest.mark.parametrize("setting", ["transductive", "separator"])
def test_classification_is_above_regret(setting):
    rows, regrets = mean_regret(lambda seed, rounds: label_model(setting, seed, rounds), 6, 160)
    oracle, policies = Stumps(), 2 * 3 + 2
    for row, regret in zip(rows, regrets, strict=True):
        if setting == "transductive":
            declared = bounds.classification_transductive(row["rounds"], 3, 8, 1, policies)
        else:
            size = len(oracle.separator(3))
            declared = bounds.classification_separator(row["rounds"], 3, size, 1, policies)
        assert regret <= row["a_priori"] <= declared


def test_enumeration_is_above_regret():
    table = FiniteClass(np.array(list(itertools.product([0, 1], repeat=8)))[::16], CONTEXTS)
    model = gw.enumerated.BlumLykouris(table, [gw.by("kind")], features=["a", "b", "c"])
    generator = np.random.default_rng(2)
    for t in range(200):
        row = dict(zip("abc", CONTEXTS[generator.integers(8)], strict=True)) | {"kind": "ab"[t % 2]}
        model.learn_one(row, int(generator.random() < 0.5))
    lines = model.regret()
    assert "measured" not in lines.foreknown
    for line in lines:
        assert line["learner_a_priori"] == 0.0
        declared = bounds.enumerated(line["rounds"], 3, 16)
        assert line["regret"] <= line["a_priori"] <= declared


def test_apple_tasting_is_above_what_was_lost():
    """Real losses and real payments, every label known to us: the mean over seeds."""
    horizon, oracle = 1_000, Stumps()
    excess = []
    for seed in range(6):
        learner = ContextualFTPL(oracle, oracle.separator(3), setting="separator")
        model = gw.Groupwise(
            [gw.by("kind")], learner, loss=gw.losses.ZeroOne(), features=["a", "b", "c"], seed=seed
        )
        lender = gw.AppleTasting(model, horizon=horizon)
        generator = np.random.default_rng(7)
        lost, seen = 0.0, []
        for t in range(horizon):
            x = CONTEXTS[generator.integers(8)]
            y = int(generator.random() < 0.1 + 0.8 * x[0])
            ticket = lender.predict(dict(zip("abc", x, strict=True)) | {"kind": "ab"[t % 2]})
            lost += float(ticket.prediction != y)
            seen.append((x, y))
            if ticket.wants_label:
                lender.learn(ticket, y)
        wrong = [[(x[k] ^ flip) != y for x, y in seen] for k in range(3) for flip in (0, 1)]
        best = min(*(sum(one) for one in wrong), *(sum(y != v for _, y in seen) for v in (0, 1)))
        excess.append(lost - best)
    size = len(oracle.separator(3))
    assert np.mean(excess) <= bounds.apple_tasting(horizon, 3, size, policies=8)


# Not twice as large as they need be.


def test_half_of_the_norm_would_be_false():
    """A heavy penalty on one feature, labels 1: the best is θ = 1, which ridge comes to slowly."""
    rounds, penalty = 300, 100.0
    ones = np.ones((rounds, 1))
    (row,) = gw.replay(ones, ones[:, 0], ones, learner=Ridge(penalty)).regret()
    every = sum((penalty / (penalty + t)) ** 2 for t in range(rounds))
    assert row["regret"] == pytest.approx(every, rel=1e-9)
    bound = bounds.ridge(rounds, 1, norm=1.0, penalty=penalty)
    assert bound - penalty / 2.0 < every <= row["learner_a_priori"] <= bound


@pytest.mark.parametrize("penalty", [0.618, 5.0])
def test_half_of_ridge_would_be_false(penalty):
    """A feature of its own for every row, labels 1: each costs 1, and the best fits them all."""
    d = 40
    result = gw.replay(np.eye(d), np.ones(d), np.ones((d, 1)), learner=Ridge(penalty))
    (row,) = result.regret()
    assert row["regret"] == pytest.approx(d, rel=1e-12)
    assert (
        row["regret"] <= row["learner_a_priori"] <= bounds.ridge(d, d, math.sqrt(d), 1.0, penalty)
    )
    determinant = bounds.log_determinant(d, d, penalty)
    assert row["learner_a_priori"] - determinant / 2.0 < row["regret"]
    if penalty < 1.0:
        assert bounds.ridge(d, d, math.sqrt(d), 1.0, penalty) / 2.0 < row["regret"]


def test_half_of_combining_by_specialists_would_be_false():
    """One expert of many, with its share of the prior, is right all along."""
    n = 50
    loss, state = gw.losses.Square(), np.zeros(n)
    for _ in range(2_000):
        weights = np.exp(2.0 * (state - state.max()))
        weights /= weights.sum()
        advice = np.r_[1.0, np.full(n - 1, 0.2)]
        mix = [-np.log(np.sum(weights * np.exp(-2.0 * (advice - y) ** 2))) / 2.0 for y in (0, 1)]
        play = np.clip(0.5 + 0.5 * (mix[0] - mix[1]), 0.0, 1.0)
        state += (play - 1.0) ** 2 - (advice - 1.0) ** 2
    bound = bounds.overhead(2_000, n, aggregator=Specialists(), loss=loss)
    assert bound / 2.0 < state[0] <= bound
