"""The past as features, against its definition written out over all labels settled so far."""

import random

import numpy as np
import polars
import pytest

import groupwise as gw
from groupwise.errors import ConfigurationError, FeatureError
from tests.features.making import LOSS, loop, makers, model, remembered, stream
from tests.few import few


class History:
    """Every label that was settled, with its row: the definition, term by term."""

    def __init__(self, maker, loss=LOSS):
        self.maker, self.loss = maker, loss
        self.labels = []  # (of, by, label, rise or None)

    def key(self, row, columns):
        values = [row[column] for column in columns]
        return None if any(value is None for value in values) else tuple(map(str, values))

    def settle(self, row, y):
        label = (y - self.loss.low) / (self.loss.high - self.loss.low)
        owner = self.key(row, self.maker.of)
        before = [one for one in self.labels if owner is not None and one[0] == owner]
        rise = label - before[-1][2] if before else None
        self.labels.append((owner, self.key(row, self.maker.by), label, rise))

    def expected(self, row):
        owner, level = self.key(row, self.maker.of), self.key(row, self.maker.by)
        own = [one for one in self.labels if owner is not None and one[0] == owner]
        same = [one for one in own if level is not None and one[1] == level]
        labels = [one[2] for one in same]
        rises = [one[3] for one in same if one[3] is not None]
        fallback = [one[2] for one in own or self.labels] or [0.5]
        usual = sum(fallback) / len(fallback)
        found = self.of(labels, usual)
        return found + self.of(rises, 0.0) if self.maker.rises else found

    def of(self, values, otherwise):
        if not values:
            return [otherwise] * (len(self.maker.lags) + len(self.maker.mean))
        lags = [values[-lag] if lag <= len(values) else values[0] for lag in self.maker.lags]
        weights = [
            [decay ** (len(values) - 1 - i) for i in range(len(values))]
            for decay in self.maker.mean
        ]
        return lags + [float(np.average(values, weights=one)) for one in weights]


MAKERS = {
    "plain": gw.past("y"),
    "several": gw.past("y", lags=(1, 2, 7), mean=(0.5, 0.99, 1.0)),
    "by": gw.past("y", lags=(2, 5), mean=(0.8,), by="store"),
    "of": gw.past("y", lags=(1,), mean=(), of="store", rises=True),
    "both": gw.past("y", lags=(3, 1), mean=(0.9, 0.3), by=["flag", "city"], of="store", rises=True),
    "means": gw.past("y", lags=(), mean=(0.9,), by=("store", "flag"), rises=True),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("late", few([9, 0, 1, 60], 1))
def test_late_labels_in_any_order(name, late):
    maker, generator = MAKERS[name], random.Random(late)
    one, history, open_tickets = model([maker, gw.calendar("when")]), History(maker), []
    for row in stream(120, seed=late):
        y = row.pop("y")
        ticket = one.predict(row)
        found = [ticket.derived[field] for field in maker.fields]
        np.testing.assert_allclose(found, history.expected(row), rtol=1e-12, atol=1e-12)
        open_tickets.append((ticket, row, y))
        while len(open_tickets) > late:
            chosen, its_row, label = open_tickets.pop(generator.randrange(len(open_tickets)))
            one.learn(chosen, label)
            history.settle(its_row, label)


def test_what_predictions_ask_changes_nothing():
    one = model()
    rows = stream(50)
    loop(one, rows)
    before = remembered(one)
    for row in stream(20, seed=1):
        del row["y"]
        one.predict(row)
        one.predict_one(row)
    ticket = one.predict(row)
    one.forget(ticket)
    assert remembered(one) == before


def test_mean_of_a_far_past_is_a_mean():
    """Weights are normalised from the first label on, and stay so."""
    one = gw.Groupwise([], features=[gw.past("y", lags=(), mean=(0.3, 0.999, 1.0))])
    for t in range(3000):
        one.learn_one({}, 0.25 if t < 1000 else 0.75)
    slow = sum(0.999**k * (0.75 if k < 2000 else 0.25) for k in range(3000))
    slow /= sum(0.999**k for k in range(3000))
    found = list(one.predict({}).derived.values())
    np.testing.assert_allclose(found, [0.75, slow, 7.0 / 12.0], rtol=1e-12)


@pytest.mark.parametrize("keys", few([1, 2, 5, 12], 2))
def test_the_keys_settled_last_are_remembered(keys):
    rows = stream(150, seed=3, missing=False)
    maker = gw.past("y", lags=(1, 2), mean=(0.9,), by="city", rises=True, keys=keys)
    one = model([maker, gw.calendar("when")])
    loop(one, rows)
    fields, _ = remembered(one)
    latest = list(dict.fromkeys(row["city"] for row in reversed(rows)))[:keys]
    assert fields[0]["levels"] == [[city] for city in reversed(latest)]
    other = model([maker, gw.calendar("when")])
    for first in range(0, 150, 40):
        other.replay(polars.DataFrame(rows[first : first + 40]), target="y")
    assert remembered(other) == remembered(one)


def test_values_are_keys_by_their_name():
    """1, 1.0 and "1" are the same value, as they are in groups."""
    one = gw.Groupwise([], features=["u", gw.past("y", mean=(), by="k")])
    for k, y in ((1, 0.1), (1.0, 0.2), ("1", 0.3), (True, 0.4)):
        one.learn_one({"k": k, "u": 0.0}, y)
    made = [one.predict({"k": k, "u": 0.0}).derived["y 1 ago by k"] for k in (1, "true", "2", None)]
    assert made == pytest.approx([0.3, 0.4, 0.25, 0.25], abs=2.0**-40)


@pytest.mark.parametrize(
    "loss",
    [
        gw.losses.Absolute(-2, 8),
        gw.losses.Unbounded(),
        gw.losses.Log(),
        gw.losses.Log(classes=["no", "yes"]),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_labels_of_other_losses(loss):
    aggregator = gw.aggregators.AdaNormalHedge() if not isinstance(loss, gw.losses.Log) else None
    clip = loss.ranged
    options = {"loss": loss, "aggregator": aggregator, "clip": clip}
    labels = [0.25, 1.0, 0.0, 0.5] if loss.classes is None else ["no", "yes", "yes", "no"]
    one = gw.Groupwise([], features=[gw.past("y", lags=(1, 2), mean=(1.0,))], **options)
    first = one.predict({})
    assert list(first.derived.values()) == [0.5 if loss.ranged else 0.0] * 3
    for label in labels:
        one.learn_one({}, label)
    scaled = [loss.encode(label) for label in labels]
    expected = [scaled[3], scaled[2], sum(scaled) / 4]
    assert list(one.predict({}).derived.values()) == pytest.approx(expected, abs=2.0**-40)
    other = gw.Groupwise([], features=[gw.past("y", lags=(1, 2), mean=(1.0,))], **options)
    other.replay(polars.DataFrame({"z": [None] * 4, "y": labels}), target="y")
    assert remembered(other) == remembered(one)


def test_several_classes_are_refused():
    loss = gw.losses.Log(classes=["a", "b", "c"])
    for maker in (gw.past("y"), gw.encoded("city")):
        with pytest.raises(ConfigurationError, match="not of several classes"):
            gw.Groupwise([gw.by("g")], loss=loss, features=[maker])
    one = gw.Groupwise([gw.by("g")], loss=loss, features=[gw.hinges("u", knots=[(2, 1)])])
    for u in (1.0, 2.0, 3.0):
        one.learn_one({"g": "x", "u": u}, "b")


@pytest.mark.parametrize(
    "parameters",
    [
        {"label": 3},
        {"lags": (0,)},
        {"lags": (1, 1)},
        {"lags": (1.5,)},
        {"lags": (True,)},
        {"lags": (10_001,)},
        {"lags": "1"},
        {"mean": (0.0,)},
        {"mean": (1.5,)},
        {"mean": (float("nan"),)},
        {"mean": (0.9, 0.9)},
        {"lags": (), "mean": ()},
        {"by": 3},
        {"by": ["a", "a"]},
        {"by": "a", "of": "a"},
        {"of": [None]},
        {"rises": 1},
        {"keys": 0},
        {"keys": 1.5},
        {"keys": 1 << 30},
    ],
    ids=str,
)
def test_bad_parameters(parameters):
    with pytest.raises(FeatureError):
        gw.past(**{"label": "y", **parameters})


def test_rows_without_the_columns():
    one = gw.Groupwise([], features=[gw.past("y", by="store")])
    with pytest.raises(FeatureError, match=r"no field 'store', which gw.past reads"):
        one.predict({"u": 1.0})
    with pytest.raises(FeatureError, match="names no group"):
        one.predict({"store": [1]})
    with pytest.raises(FeatureError, match=r"no column 'store', which gw.past reads"):
        one.replay(polars.DataFrame({"u": [1.0], "y": [0.5]}), target="y")


def test_the_label_is_no_field_of_rows():
    one = gw.Groupwise([], features=[gw.past("y")])
    with pytest.raises(FeatureError, match="not known when a row is predicted"):
        one.predict({"u": 1.0, "y": 0.5})
    with pytest.raises(FeatureError, match="not known when a row is predicted"):
        one.replay(polars.DataFrame({"y": [0.5], "label": [0.5]}), target="label")
    with pytest.raises(FeatureError, match="not known when a row is predicted"):
        gw.Groupwise([], features=["y", gw.past("y")])


def test_makers_are_values():
    assert gw.past("y", lags=[1, 2], by="a") == gw.past("y", lags=(1, 2), by=["a"])
    assert len({*map(repr, makers())}) == 5
