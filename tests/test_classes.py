"""Classes that have names: two of them are the binary case bit for bit, more are a chain."""

import copy
import json
import math
import pickle
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import groupwise as gw
from groupwise.errors import ConfigurationError, LabelError
from groupwise.losses import loss_from_dict

SPECIALISTS = gw.aggregators.Specialists()
YES = ("no", "yes")


def rows_of(count, seed=0):
    """Rows of two groups and a label that depends on the features."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        u, v = generator.normal(size=2).round(2).tolist()
        row = {"sex": "mf"[int(generator.integers(2))], "age": float(generator.random()), "u": u}
        yield row | ({"v": v} if v > 0 else {}), int(u + 0.5 * generator.normal() > 0.3)


def model_of(loss, **settings):
    return gw.Groupwise(
        [gw.by("sex"), gw.cut("age", [0.5])],
        **({"aggregator": SPECIALISTS, "loss": loss} | settings),
    )


# Labels and classes.


@pytest.mark.parametrize(
    ("label", "number"),
    [
        *((0, 0.0), (1, 1.0), (1.0, 1.0), (0.25, 0.25), (True, 1.0), (False, 0.0)),
        *((np.True_, 1.0), (np.False_, 0.0), (np.float32(0.5), 0.5), (np.int8(1), 1.0)),
    ],
)
def test_log_loss_takes_numbers_and_booleans(label, number):
    found = gw.losses.Log().encode(label)
    assert found == number
    assert type(found) is float


@pytest.mark.parametrize("label", [-0.1, 1.5, 2, float("inf"), -1e-9, 10**400])
def test_a_label_outside_the_unit_interval_is_none(label):
    with pytest.raises(LabelError, match=r"outside \[0, 1\].*losses.Log\(classes=\[...\]\)"):
        gw.losses.Log().encode(label)


@pytest.mark.parametrize("label", ["yes", "1", None, [1], b"yes"])
def test_a_label_that_is_no_number_asks_for_classes(label):
    with pytest.raises(LabelError, match=r"not a number.*losses.Log\(classes=\[...\]\)"):
        gw.losses.Log().encode(label)


@pytest.mark.parametrize(
    "classes",
    [
        *(["no", "yes"], [0, 1], [False, True], [-1.5, 2], ("a", 1, 2.5), np.array(["x", "y"])),
        *([np.int64(3), np.str_("b")], ["", " "], range(5)),
    ],
    ids=str,
)
def test_labels_are_the_names_of_classes(classes):
    loss: Any = gw.losses.Log(classes=classes)
    assert [loss.encode(name) for name in classes] == list(map(float, range(len(classes))))
    assert loss.encode_many(list(classes)).tolist() == list(map(float, range(len(classes))))
    again: Any = loss_from_dict(json.loads(json.dumps(loss.to_dict())))
    assert again == loss
    assert [type(one) for one in again.classes] == [type(one) for one in loss.classes]
    assert not any(isinstance(one, np.generic) for one in loss.classes)
    assert pickle.loads(pickle.dumps(loss)) == copy.deepcopy(loss) == loss
    assert hash(loss) == hash(again)


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        (["no"], "1 names"),
        ([], "0 names"),
        (range(2000), "2000 names"),
        (["a", "b", "a"], "'a' is twice"),
        ([0, False], "twice"),
        ([1, 1.0], "twice"),
        ("yes", "list of names"),
        (3, "list of names"),
        ({"a"}, "list of names"),
        ([None, "a"], "None cannot be"),
        ([("a",), "b"], "cannot be"),
        ([["a"], "b"], "cannot be"),
        ([float("nan"), 1], "nan cannot be"),
        ([float("inf"), 1], "inf cannot be"),
        ([b"a", "b"], "cannot be"),
    ],
    ids=str,
)
def test_classes_that_are_none(classes, text):
    with pytest.raises(ConfigurationError, match=text):
        gw.losses.Log(classes=classes)


def test_a_floor_is_for_two_classes():
    assert gw.losses.Log(0.01, ["a", "b"]).bounded
    with pytest.raises(ConfigurationError, match="Specialists"):
        gw.losses.Log(0.01, ["a", "b", "c"])


@pytest.mark.parametrize("label", ["maybe", 1, True, ["yes"], {"no": 1.0}, "Yes"])
def test_a_class_that_was_never_declared(label):
    model = model_of(gw.losses.Log(classes=YES))
    for row, y in rows_of(5):
        model.learn_one(row, YES[y])
    before, ticket = model.contents(), model.predict({"sex": "f", "age": 0.1})
    with pytest.raises(LabelError) as raised:
        model.learn(ticket, label)
    assert repr(label) in str(raised.value)
    assert "'no', 'yes'" in str(raised.value)
    assert "losses.Log(classes=[...])" in str(raised.value)
    after = model.contents()
    assert after[0] == before[0] | {"next": before[0]["next"] + 1}
    assert all(np.array_equal(after[1][k], before[1][k], equal_nan=True) for k in before[1])
    model.learn(ticket, "no")


@pytest.mark.parametrize("label", [None, float("nan"), np.nan])
def test_a_label_that_is_missing(label):
    with pytest.raises(LabelError, match="forget"):
        gw.losses.Log(classes=YES).encode(label)


def test_many_classes_are_not_all_listed():
    with pytest.raises(LabelError, match="and 80 more"):
        gw.losses.Log(classes=range(100)).encode(100)


def test_files_of_before_name_no_classes():
    """What is signed is what it was."""
    assert gw.losses.Log(0.5e-3).to_dict() == {"type": "Log", "floor": 0.5e-3}
    assert loss_from_dict({"type": "Log", "floor": 0.0}).classes is None


# Two classes.


def learned(named, binary, rounds=120, late=7, seed=0, names=YES):
    """Run two models over the same rounds, labels late and some never; all that they showed."""
    found = []
    waiting = []
    draw = np.random.default_rng(seed)
    for row, y in rows_of(rounds, seed):
        tickets = named.predict(row), binary.predict(row)
        found.append((tickets[0].prediction, tickets[1].prediction))
        waiting.append((*tickets, y))
        while len(waiting) > late:
            one, other, y = waiting.pop(int(draw.integers(len(waiting))))
            if draw.random() < 0.1:
                named.forget(one)
                binary.forget(other)
            else:
                one = gw.Ticket.from_json(one.to_json()) if draw.random() < 0.3 else one
                named.learn(one, names[y])
                binary.learn(other, float(y))
    return found


@pytest.mark.parametrize("names", [YES, (False, True), (0, 1), (1, 0), ("b", 2.5)], ids=str)
@pytest.mark.parametrize("late", [0, 7])
def test_two_named_classes_are_the_binary_case(names, late, tmp_path):
    named, binary = model_of(gw.losses.Log(classes=names)), model_of(gw.losses.Log())
    pairs = learned(named, binary, late=late, names=names)
    named.save(tmp_path / "named.gw")
    named = gw.load(tmp_path / "named.gw")
    assert named.loss.classes == names
    pairs += learned(named, binary, late=late, names=names, seed=1)
    for mapping, p in pairs:
        assert list(mapping) == list(names)
        assert mapping[names[1]] == p
        assert sum(mapping.values()) == pytest.approx(1.0, abs=2e-15)
        assert all(type(share) is float for share in mapping.values())
    assert named.regret().rows == binary.regret().rows
    states = named.contents()[1], binary.contents()[1]
    assert all(np.array_equal(states[0][k], states[1][k], equal_nan=True) for k in states[1])


FRAMES = {
    "polars text": lambda y: polars.Series(y),
    "polars categories": lambda y: polars.Series(y, dtype=polars.Categorical),
    "polars enum": lambda y: polars.Series(y, dtype=polars.Enum(["yes", "no", "other"])),
    "pandas text": lambda y: pandas.Series(y),
    "pandas objects": lambda y: pandas.Series(y, dtype=object),
    "pandas categories": lambda y: pandas.Series(y, dtype="category"),
    "pyarrow text": lambda y: pyarrow.array(y),
    "pyarrow dictionary": lambda y: pyarrow.array(y).dictionary_encode(),
}


def frame_of(rows, labels):
    """A frame of the library that the labels are from."""
    fields = {key: [row.get(key, 0.0) for row, _ in rows] for key in ("sex", "age", "u", "v")}
    if isinstance(labels, polars.Series):
        return polars.DataFrame(fields).with_columns(labels.alias("y"))
    if isinstance(labels, pandas.Series):
        return pandas.DataFrame(fields).assign(y=labels)
    return pyarrow.table(fields | {"y": labels})


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_names(kind):
    rows = list(rows_of(150))
    loop, replayed = (model_of(gw.losses.Log(classes=YES)) for _ in range(2))
    result = replayed.replay(frame_of(rows, FRAMES[kind]([YES[y] for _, y in rows])), "y", jobs=2)
    assert result.classes == YES
    assert result.prediction.shape == (150, 2)
    for t, (row, y) in enumerate(rows):
        ticket = loop.predict({**row, "v": row.get("v", 0.0)})
        assert dict(zip(YES, result.prediction[t].tolist(), strict=True)) == ticket.prediction
        assert result.loss[t] == loop.loss_of_ticket(ticket, YES[y])
        loop.learn(ticket, YES[y])
    assert loop.regret().rows == replayed.regret().rows


BOOLEANS = {
    "polars": lambda y: polars.Series(y),
    "pandas": lambda y: pandas.Series(y),
    "pandas with room for missing ones": lambda y: pandas.Series(y, dtype="boolean"),
    "pandas objects": lambda y: pandas.Series(y, dtype=object),
    "pyarrow": lambda y: pyarrow.array(y),
}


@pytest.mark.parametrize("kind", BOOLEANS)
@pytest.mark.parametrize("classes", [None, (False, True)])
def test_frames_of_booleans(kind, classes):
    rows = list(rows_of(60))
    binary, other = model_of(gw.losses.Log()), model_of(gw.losses.Log(classes=classes))
    wanted = binary.replay(frame_of(rows, polars.Series([float(y) for _, y in rows])), "y")
    labels = BOOLEANS[kind]([bool(y) for _, y in rows])
    found = other.replay(frame_of(rows, labels), "y").prediction
    assert np.array_equal(found if classes is None else found[:, 1], wanted.prediction)
    assert binary.regret().rows == other.regret().rows


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_with_a_class_that_was_never_declared(kind):
    rows = list(rows_of(20))
    labels = [YES[y] for _, y in rows]
    labels[13] = "other"
    model = model_of(gw.losses.Log(classes=YES))
    with pytest.raises(LabelError, match="'other' is none of the classes 'no', 'yes'") as raised:
        model.replay(frame_of(rows, FRAMES[kind](labels)), "y")
    assert raised.value.row == 13
    assert model.issued == 0


def test_a_frame_of_text_asks_for_classes():
    rows = list(rows_of(5))
    for loss in (gw.losses.Log(), gw.losses.Square()):
        with pytest.raises(LabelError, match=r"'y' holds String.*losses.Log\(classes=\[...\]\)"):
            model_of(loss).replay(frame_of(rows, polars.Series(["no"] * 5)), "y")
    labels = pandas.Series([True, "no", 1, 0, 1], dtype=object)
    with pytest.raises(LabelError, match=r"row 1: .*'no' is not a number"):
        model_of(gw.losses.Log()).replay(frame_of(rows, labels), "y")
    with pytest.raises(LabelError, match="not numbers"):
        model_of(gw.losses.Square()).replay(frame_of(rows, polars.Series([True] * 5)), "y")


def test_a_frame_with_a_missing_label():
    rows = list(rows_of(5))
    labels = polars.Series(["no", "yes", None, "no", "no"])
    with pytest.raises(LabelError, match=r"row 2: .*missing"):
        model_of(gw.losses.Log(classes=YES)).replay(frame_of(rows, labels), "y")


@pytest.mark.parametrize("kind", [list, np.array, pandas.Series, tuple])
def test_arrays_of_names(kind):
    generator = np.random.default_rng(3)
    X, members = generator.normal(size=(80, 3)), generator.random((80, 2)).round(1)
    members[:, 1] = 1.0
    y = (X[:, 0] > 0.2).astype(int)
    parts: Any = {
        "aggregator": SPECIALISTS,
        "learner": [gw.learners.Ridge(), gw.learners.Ridge(9.0)],
    }
    wanted: Any = gw.replay(X, y, members, loss=gw.losses.Log(), **parts)
    labels = kind([YES[one] for one in y])
    found: Any = gw.replay(X, labels, members, loss=gw.losses.Log(classes=YES), **parts)
    assert wanted.classes is None
    assert found.classes == YES
    assert np.array_equal(found.prediction[:, 1], wanted.prediction)
    assert found.prediction.sum(axis=1) == pytest.approx(1.0, abs=2e-15)
    assert np.array_equal(found.advice[..., 1], wanted.advice)
    assert np.array_equal(found.advice[..., 0], 1.0 - wanted.advice)
    assert np.array_equal(found.weights, wanted.weights)
    assert found.regret().rows == wanted.regret().rows
    assert found.curves(3).keys() == wanted.curves(3).keys()
    with pytest.raises(LabelError, match="row 2: Label 'x' is none of the classes"):
        gw.replay(X, ["no", "yes", "x"] + ["no"] * 77, members, loss=gw.losses.Log(classes=YES))


class Says:
    """Advises what the row says, by its own number."""

    def __init__(self, number):
        self.number = number

    def advise(self, row, weight):
        return row.mapping().get(f"a{self.number}", 0.0)

    def update(self, row, label, weight):
        pass


def test_the_smaller_probability_has_its_digits():
    """Near 1 a double has few digits of the rest."""
    loss = gw.losses.Log(classes=YES)
    features = ["a0", "a1"]
    model = gw.Groupwise(
        [gw.by("sex")], [Says(0), Says(1)], SPECIALISTS, loss, features, indicators=False
    )
    generator = np.random.default_rng(0)
    for t in range(100):
        near = generator.choice([1e-15, 3e-15, 1e-13, 1e-9, 0.2], size=2)
        advice = (1.0 - near if t % 3 else near).tolist()
        ticket = model.predict({"sex": "f"} | dict(zip(features, advice, strict=True)))
        with localcontext() as context:
            context.prec = 60
            odds = [Decimal(x) for x in ticket.weights.ravel().tolist()]
            said = [Decimal(x) for x in ticket.advice[..., 1].ravel().tolist()]
            p = sum(o * a for o, a in zip(odds, said, strict=True)) / sum(odds)
        assert ticket.prediction["yes"] == pytest.approx(float(p), rel=1e-14)
        assert ticket.prediction["no"] == pytest.approx(float(1 - p), rel=1e-13)
        model.learn(ticket, YES[int(generator.integers(2))])


def test_a_drawn_prediction_is_one_experts():
    """There both probabilities are that expert's, and not those of the mean."""
    loss = gw.losses.Log(0.01, YES)
    model = model_of(loss, aggregator=gw.aggregators.AdaNormalHedge(), play="sample")
    for row, y in rows_of(60):
        ticket = model.predict(row)
        shares = list(ticket.prediction.values())
        far = np.abs(ticket.advice.reshape(-1, 2) - shares).max(axis=1)
        assert far.min() <= 1e-15
        model.learn(ticket, YES[y])


def test_the_single_model_is_the_first_learner_that_was_given():
    """Banks may have an order of their own."""
    learners = [gw.learners.Logistic(bound=2.0), gw.learners.Logistic(bound=9.0)]
    both, first = (model_of(gw.losses.Log(), learner=x) for x in (learners, learners[0]))
    replayed = model_of(gw.losses.Log(), learner=learners)
    rows = [({**row, "v": row.get("v", 0.0)}, y) for row, y in rows_of(80)]
    for row, y in rows:
        both.learn_one(row, y)
        first.learn_one(row, y)
    replayed.replay(frame_of(rows, polars.Series([y for _, y in rows])), "y")
    assert both.regret().rows == replayed.regret().rows
    line, alone = both.regret()["always_on"], first.regret()["always_on"]
    found, wanted = (x["baseline_regret"] + x["best_loss"] for x in (line, alone))
    assert found == pytest.approx(wanted, rel=1e-12)


def test_nobody_awake_is_as_likely_as_not():
    model = model_of(gw.losses.Log(classes=YES), always_on=False)
    ticket = model.predict({"sex": None, "age": None, "u": 1.0})
    assert ticket.prediction == {"no": 0.5, "yes": 0.5}
    assert gw.Ticket.from_json(ticket.to_json()).prediction == ticket.prediction


def test_what_a_prediction_loses():
    model = model_of(gw.losses.Log(classes=YES))
    shares = {"yes": 0.75, "no": 0.25}
    assert model.loss_of(shares, "no") == model.loss_of([0.25, 0.75], "no") == math.log(4.0)
    assert model.loss_of(shares, "yes") == pytest.approx(model.loss_of(0.75, "yes"), rel=1e-15)
    floored = gw.Groupwise([], loss=gw.losses.Log(0.01, classes=YES))
    assert floored.loss_of(shares, "no") == pytest.approx(math.log(4.0, 100.0), rel=1e-15)


def test_partial_feedback_keeps_names(tmp_path):
    model = gw.PayForFeedback(model_of(gw.losses.Log(classes=YES)), horizon=1_000)
    for row, y in rows_of(47):
        ticket = model.predict(row)
        model.learn(ticket, YES[y])
    model.save(tmp_path / "paying.gw")
    again = gw.load(tmp_path / "paying.gw")
    assert again.regret().rows == model.regret().rows
    for row, y in rows_of(20, seed=1):
        assert again.predict(row).prediction == model.predict(row).prediction
        again.learn_one(row, YES[y])
        model.learn_one(row, YES[y])


# Aggregators.


def test_specialists_take_log_loss_as_it_is():
    for classes in (None, YES):
        with pytest.raises(ConfigurationError, match=r"leave the floor out.*AdaNormalHedge\(\)"):
            model_of(gw.losses.Log(0.01, classes))
    with pytest.raises(ConfigurationError, match="leave the floor out"):
        gw.replay([[1.0]], [1], [[1]], loss=gw.losses.Log(0.01), aggregator=SPECIALISTS)


def test_hedging_says_what_it_needs():
    with pytest.raises(ConfigurationError, match=r"Specialists\(\).*floor"):
        model_of(gw.losses.Log(), aggregator=gw.aggregators.AdaNormalHedge())


def test_files_of_specialists_with_a_floor_go_on(tmp_path):
    """There are such from before; they name their play."""
    model = model_of(gw.losses.Log(0.01), play="mean")
    for row, y in rows_of(20):
        model.learn_one(row, y)
    model.save(tmp_path / "old.gw")
    again = gw.load(tmp_path / "old.gw")
    assert again.play == "mean"
    assert again.loss == gw.losses.Log(0.01)
    for row, y in rows_of(20, seed=1):
        assert again.predict_one(row) == model.predict_one(row)
        again.learn_one(row, y)
        model.learn_one(row, y)
    assert again.regret().rows == model.regret().rows
