"""Calibration: against the definitions, computed from the raw predictions."""

import copy
import math
import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
import scipy.stats

import groupwise as gw
from groupwise.kernels.calibration import BINS, INNER, quantiles
from groupwise.regret.calibration import EDGES, CalibrationTable, Tally, expected_error
from tests.streams import random_arrays

LOSS = gw.losses.Log(floor=1e-3)
NAMES = ["g0", "g1", "g2", "always_on"]


def stream(seed=0, soft=False, fractional=False, rows=400):
    """Features, labels that are 0 or 1 or soft, and memberships of four groups."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=(rows, 2)), np.ones(rows)])
    chance = 1.0 / (1.0 + np.exp(-x[:, 0] + 0.5))
    y = rng.random(rows) * chance if soft else (rng.random(rows) < chance).astype(float)
    members = (rng.random((rows, 4)) < 0.5) * (rng.random((rows, 4)) if fractional else 1.0)
    members[:, 3] = 1.0
    return x, y, members


def replayed(seed=0, **parts):
    x, y, members = stream(seed, **parts)
    return gw.replay(x, y, members, names=NAMES, loss=LOSS), y, members


def rank_auc(p, y, w):
    """Over all pairs of a positive and a negative case; ties count half."""
    positive, negative = w * y, w * (1 - y)
    higher = np.sign(p[:, None] - p[None, :]) / 2 + 0.5
    return (positive @ higher @ negative) / (positive.sum() * negative.sum())


def reference(p, y, w):
    """The figures of a group from its raw predictions."""
    total = w.sum()
    places = np.array([sum(edge <= one for edge in INNER) for one in p])
    error = 0.0
    for place in range(BINS):
        inside = places == place
        error += abs(sum(w[inside] * p[inside]) - sum(w[inside] * y[inside]))
    return {
        "rounds": total,
        "mean_label": w @ y / total,
        "mean_prediction": w @ p / total,
        "gap": w @ (p - y) / total,
        "brier": w @ (p - y) ** 2 / total,
        "log_loss": -(w @ (y * np.log(p) + (1 - y) * np.log1p(-p))) / total,
        "ece": error / total,
    }


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_figures_are_those_of_the_raw_predictions(soft, fractional):
    result, y, members = replayed(soft=soft, fractional=fractional)
    table = result.calibration()
    assert [row["group"] for row in table] == NAMES
    assert table.settled == y.size
    for number, name in enumerate(NAMES):
        p, w = result.prediction, members[:, number]
        row = table[name]
        for key, wanted in reference(p, y, w).items():
            assert row[key] == pytest.approx(wanted, rel=1e-9, abs=1e-12), (name, key)
        assert row["auc_low"] - 1e-12 <= rank_auc(p, y, w) <= row["auc_high"] + 1e-12
        assert row["auc"] == pytest.approx((row["auc_low"] + row["auc_high"]) / 2)
        assert row["auc_high"] - row["auc_low"] < 0.15
        assert row["before"] == 0.0


def test_auc_of_predictions_that_are_the_same_in_a_bin_is_exact():
    """Ties count half, as they do in the bins."""
    rng = np.random.default_rng(0)
    p = rng.choice(INNER, 300)
    y = (rng.random(300) < p).astype(float)
    row = CalibrationTable.of([sums_of(p, y)], 300)["g"]
    assert row["auc"] == pytest.approx(rank_auc(p, y, np.ones(300)), rel=1e-12)


def sums_of(p, y, w=None, group="g"):
    """The bins of a group, as the kernels would fill them."""
    from groupwise.regret.calibration import Sums

    w = np.ones_like(p) if w is None else w
    bins = np.zeros((BINS, 4))
    places = np.searchsorted(INNER, p, "right")
    for column, values in enumerate((w * p, w * y, w * (1 - y), w * w)):
        np.add.at(bins[:, column], places, values)
    loss = -float(w @ (y * np.log(p) + (1 - y) * np.log1p(-p)))
    return Sums(group, float(w.sum()), loss, float(w @ (p - y) ** 2), bins, 0.0)


def test_by_hand():
    """Four predictions in two bins."""
    p, y = np.array([0.21, 0.21, 0.71, 0.71]), np.array([0.0, 1.0, 1.0, 1.0])
    row = CalibrationTable.of([sums_of(p, y)], 4)["g"]
    assert row["mean_label"] == 0.75
    assert row["gap"] == pytest.approx(0.46 - 0.75)
    assert row["ece"] == pytest.approx((abs(0.42 - 1.0) + abs(1.42 - 2.0)) / 4)
    assert row["brier"] == pytest.approx((0.21**2 + 0.79**2 + 2 * 0.29**2) / 4)
    assert row["log_loss"] == pytest.approx(-math.log(0.79 * 0.21 * 0.71 * 0.71) / 4)
    # Of the three pairs of a positive and a negative, two are in order and one is a tie.
    assert (row["auc_low"], row["auc"], row["auc_high"]) == pytest.approx((2 / 3, 5 / 6, 1.0))


def test_a_sure_and_right_model_has_no_error_and_is_expected_to_have_none():
    p, y = np.array([1e-15, 1 - 1e-15] * 50), np.array([0.0, 1.0] * 50)
    row = CalibrationTable.of([sums_of(p, y)], 100)["g"]
    assert row["auc"] == 1.0
    assert row["ece"] < 1e-14
    assert row["ece_95"] < 1e-12


# The error of calibrated models.


@pytest.mark.parametrize("rounds", [5, 40, 700])
def test_expected_error_is_that_of_simulated_calibrated_models(rounds):
    """Of labels that are drawn with the predicted probabilities, one by one."""
    rng = np.random.default_rng(rounds)
    p = rng.beta(0.7, 1.5, rounds).clip(1e-6, 1 - 1e-6)
    places = np.searchsorted(INNER, p, "right")
    one = sums_of(p, p)
    found = expected_error(one.bins[:, 1] + one.bins[:, 2], one.bins[:, 3], one.bins[:, 0])
    labels = rng.random((6000, rounds)) < p
    errors = np.zeros(6000)
    for place in set(places.tolist()):
        inside = places == place
        errors += np.abs((labels[:, inside] - p[inside]).sum(axis=1)) / rounds
    # Discrete where there are few rounds; labels of one bin with unequal p scatter a little less.
    assert (errors <= found * (1 + 1e-9)).mean() >= 0.93
    assert (errors < found * 0.97).mean() <= 0.965


def test_expected_error_counts_by_how_much_weights_are_worth():
    p = np.full(400, 0.3)
    even, heavier = sums_of(p, p), sums_of(p, p, np.full(400, 5.0))
    uneven = sums_of(p, p, np.repeat([1.0, 1e-9], 200))
    ece = {
        name: CalibrationTable.of([one], 400)["g"]["ece_95"]
        for name, one in {"even": even, "heavier": heavier, "uneven": uneven}.items()
    }
    assert ece["heavier"] == pytest.approx(ece["even"])
    few = CalibrationTable.of([sums_of(p[:200], p[:200])], 200)["g"]["ece_95"]
    assert ece["uneven"] == pytest.approx(few, rel=1e-6)
    assert ece["even"] == pytest.approx(1.96 * math.sqrt(0.21 / 400), rel=0.1)


def test_expected_error_is_the_same_every_time_and_for_any_company():
    one, other = (sums_of(np.full(n, q), np.full(n, q)) for n, q in ((30, 0.2), (70, 0.6)))
    alone = CalibrationTable.of([one], 30).rows[0]
    both = CalibrationTable.of([other._replace(group="h"), one], 100)
    assert both["g"] == alone


@pytest.mark.parametrize(
    ("count", "chance"),
    [
        (1, 0.5), (1, 1e-15), (3, 0.999), (50, 0.02), (1000, 0.5), (10**5, 1e-5), (10**6, 0.3),
        (10**8, 0.25), (10**5, 1 - 1e-15), (200, 1 - 1e-9), (17, 0.3), (4999, 0.77),
    ],
)  # fmt: skip
def test_quantiles_are_binomial(count, chance):
    levels = (np.arange(200) + 0.5) / 200
    found = np.empty((1, 200))
    quantiles(np.array([float(count)]), np.array([chance]), levels, found)
    wanted = scipy.stats.binom.ppf(levels, count, chance)
    np.testing.assert_allclose(found[0] * count, wanted, atol=1e-6)


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_quantiles_of_what_is_certain(chance):
    found = np.empty((1, 2))
    quantiles(np.array([9.0]), np.array([chance]), np.array([0.1, 0.9]), found)
    assert found.tolist() == [[chance, chance]]


# Curves.


def test_a_curve_has_a_point_for_every_bin_in_use():
    result, y, members = replayed(fractional=True)
    p, w = result.prediction, members[:, 1]
    curve = result.calibration().curve("g1")
    places = np.searchsorted(INNER, p, "right")
    used = np.unique(places[w > 0]).tolist()
    assert [point["low"] for point in curve] == [EDGES[place] for place in used]
    assert [point["high"] for point in curve] == [EDGES[place + 1] for place in used]
    for place, point in zip(used, curve, strict=True):
        inside = (places == place) & (w > 0)
        weights = w[inside]
        assert point["rounds"] == pytest.approx(weights.sum())
        assert point["mean_prediction"] == pytest.approx(weights @ p[inside] / weights.sum())
        assert point["mean_label"] == pytest.approx(weights @ y[inside] / weights.sum())
        worth = max(1, round(weights.sum() ** 2 / (weights @ weights)))
        band = scipy.stats.binom.ppf([0.025, 0.975], worth, point["mean_prediction"]) / worth
        assert [point["low_95"], point["high_95"]] == pytest.approx(band.tolist())


def test_bins_are_joined_to_so_many_points():
    table = replayed()[0].calibration()
    whole = table.curve("always_on")
    for points in (1, 4, 10, 100):
        curve = table.curve("always_on", points)
        assert len(curve) <= points
        assert sum(point["rounds"] for point in curve) == 400.0
        for one, following in pairwise(curve):
            assert one["high"] <= following["low"]
    assert table.curve("always_on", 100) == whole
    (one,) = table.curve("always_on", 1)
    assert one["mean_label"] == pytest.approx(table["always_on"]["mean_label"])
    assert one["mean_prediction"] == pytest.approx(table["always_on"]["mean_prediction"])
    assert (one["low"], one["high"]) == (whole[0]["low"], whole[-1]["high"])
    with pytest.raises(gw.errors.ConfigurationError, match="points must be a positive"):
        table.curve("always_on", 0)
    with pytest.raises(KeyError):
        table.curve("nobody")


# Adding up, and where tables come from.


def test_the_halves_of_a_stream_add_up_to_the_whole():
    result, y, members = replayed(3, fractional=True)
    p, cut = result.prediction, 150

    def table(part, chosen):
        sums = [sums_of(p[part], y[part], members[part, g], NAMES[g]) for g in chosen]
        return CalibrationTable.of(sums, y[part].size)

    first, second = table(slice(cut), [2, 0, 3]), table(slice(cut, None), [0, 1, 2, 3])
    both, whole = first + second, result.calibration()
    assert [row["group"] for row in both] == ["g2", "g0", "g1", "always_on"]
    assert both.settled == whole.settled
    for name in ("g0", "g2", "always_on"):
        for key, value in both[name].items():
            if key != "group":
                assert value == pytest.approx(whole[name][key], rel=1e-9, abs=1e-12), (name, key)
    assert both["g1"] == second["g1"]
    with pytest.raises(TypeError):
        first + 1


def test_groups_of_the_same_name_stay_two():
    p = np.array([0.3, 0.4])
    table = CalibrationTable.of([sums_of(p, p), sums_of(p[:1], p[:1])], 2)
    both = table + table
    assert [row["rounds"] for row in both] == [4.0, 2.0]


def rows_of(seed=0, count=80):
    x, y, _ = stream(seed, rows=count)
    return [({"x": float(x[i, 0]), "c": "uv"[i % 2]}, float(y[i])) for i in range(count)]


def test_of_a_model_and_what_it_becomes(tmp_path):
    model = gw.Groupwise([gw.by("c")], loss=LOSS)
    predictions = []
    for row, y in rows_of():
        ticket = model.predict(row)
        model.learn(ticket, y)
        predictions.append(ticket.prediction)
    table = model.calibration()
    labels = np.array([y for _, y in rows_of()])
    wanted = reference(np.array(predictions), labels, np.ones(80))
    assert table["always_on"]["log_loss"] == pytest.approx(wanted["log_loss"])
    assert [row["group"] for row in table] == ["c=u", "c=v", "always_on"]
    assert [row["group"] for row in model.calibration(largest=1)] == ["always_on"]
    model.save(tmp_path / "model.gw")
    for other in (gw.load(tmp_path / "model.gw"), copy.deepcopy(model)):
        assert other.calibration() == table
    assert pickle.loads(pickle.dumps(table)) + table == table + table


def test_rounds_before_there_were_bins_are_named(tmp_path):
    from groupwise import archive

    model = gw.Groupwise([gw.by("c")], loss=LOSS)
    for row, y in rows_of():
        model.learn_one(row, y)
    header, arrays = model.contents()
    kept = {name: array for name, array in arrays.items() if not name.startswith("calibration")}
    archive.write(tmp_path / "old.gw", header, kept)
    loaded = gw.load(tmp_path / "old.gw")
    row = loaded.calibration()["always_on"]
    assert (row["rounds"], row["before"], row["ece"], row["auc"]) == (0.0, 80.0, None, None)
    assert "80 rounds were settled before bins were kept" in str(loaded.calibration())
    assert loaded.calibration().curve("c=u") == []
    for row, y in rows_of(1, 10):
        loaded.learn_one(row, y)
    row = loaded.calibration()["always_on"]
    assert (row["rounds"], row["before"]) == (10.0, 80.0)


def test_partial_feedback_shows_the_explored_rounds():
    paying = gw.PayForFeedback(gw.Groupwise([gw.by("c")], loss=LOSS), horizon=80)
    for row, y in rows_of():
        paying.learn_one(row, y)
    row = paying.calibration()["always_on"]
    assert row["rounds"] == paying.regret()["always_on"]["rounds"] > 60
    assert row["ece_95"] > 0.1  # 16 labels or so, each standing for 5 rounds


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_a_stream_of_one_class_has_no_auc(label):
    model = gw.Groupwise([gw.by("c")], loss=LOSS)
    for row, _ in rows_of():
        model.learn_one(row, label)
    table = model.calibration()
    row = table["always_on"]
    assert row["auc"] is row["auc_low"] is row["auc_high"] is None
    assert row["mean_label"] == label
    assert row["ece"] > 0.0
    assert "no auc where all labels of a group are the same" in str(table)


@pytest.mark.parametrize("loss", [gw.losses.Square(), gw.losses.Absolute(0, 5)])
def test_numbers_have_no_calibration(loss):
    x, y, membership = random_arrays(seed=0)
    model = gw.Groupwise([gw.by("c")], loss=loss)
    for source in (model, gw.replay(x, y, membership, loss=loss)):
        with pytest.raises(gw.errors.ConfigurationError, match=r"is of probabilities.*Log"):
            source.calibration()


def test_before_the_first_label():
    model = gw.Groupwise([gw.by("c")], loss=LOSS)
    assert len(model.calibration()) == 0
    model.predict(rows_of()[0][0])
    assert len(model.calibration()) == 0
    assert "0 settled rounds" in str(model.calibration())


# How it looks.


def test_text_html_and_frames():
    sums = sums_of(np.array([0.3, 0.4]), np.array([0.0, 1.0]), group="<b>\n")
    table = CalibrationTable.of([sums, sums._replace(group="plain")], 2)
    heading, units, rule, *lines = str(table).splitlines()
    assert heading.split() == [
        *("group", "rounds", "mean_label", "mean_prediction", "gap", "brier", "log_loss", "auc"),
        *("ece", "ece_95"),
    ]
    assert units.split() == [*["share"] * 3, "share²", "nats", *["share"] * 3]
    assert set(rule) == {"─", " "}
    assert lines[0].startswith(r"<b>\n  ")
    assert repr(table) == str(table)
    shown = table._repr_html_()
    assert "<b>" not in shown
    assert r"&lt;b&gt;\n" in shown
    frame = table.to_frame("pandas")
    assert frame["ece"].tolist() == [row["ece"] for row in table]


# Predictions from elsewhere.


def test_logged_predictions_are_counted_like_our_own():
    result, y, members = replayed(fractional=True)
    p, tally = result.prediction, Tally()
    for first, last in ((0, 150), (150, 151), (151, 400)):
        part = scipy.sparse.csr_array(members[first:last])
        order = [2, 0, 3, 1] if first == 0 else [0, 1, 2, 3]
        part, names = part[:, order], [NAMES[g] for g in order]
        indptr, indices = part.indptr, part.indices
        tally.add(names, indptr, indices, part.data, p[first:last], y[first:last])
    table, wanted = tally.table(), result.calibration()
    assert table.settled == 400
    assert [row["group"] for row in table] == ["g2", "g0", "g1", "always_on"]
    for row in table:
        for key, value in wanted[row["group"]].items():
            if key != "group":
                assert row[key] == pytest.approx(value, rel=1e-9, abs=1e-12), key


def test_logged_certainty_that_was_wrong_costs_everything():
    tally = Tally()
    once = np.ones(2)
    tally.add(["g"], np.array([0, 1, 2]), np.array([0, 0]), once, np.array([0.0, 1.0]), once)
    row = tally.table()["g"]
    assert row["log_loss"] == math.inf
    assert row["gap"] == -0.5
