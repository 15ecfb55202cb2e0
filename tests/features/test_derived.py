"""All makers together: the loop, replays, files, tickets as text, threads, and what is refused."""

import copy
import json
import pickle
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import groupwise as gw
from groupwise.errors import (
    ConfigurationError,
    FeatureError,
    LabelError,
    SnapshotError,
    TicketError,
)
from tests import crafted
from tests.features.making import (
    LOSS,
    assert_same,
    loop,
    makers,
    model,
    remembered,
    stream,
)
from tests.few import few

ROWS = stream(180)
NAMED = ["age", {"size": (-3, 3), "flag": None}, *makers()]
FEATURES = {"every field": makers(), "named fields": NAMED, "few keys": makers(keys=7)}


def frame_of(rows, library=polars):
    return pyarrow.Table.from_pylist(rows) if library is pyarrow else library.DataFrame(rows)


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("library", few([polars, pandas, pyarrow], 1))
def test_the_loop_and_a_replay_agree(features, library):
    one, other = model(FEATURES[features]), model(FEATURES[features])
    tickets = loop(one, ROWS)
    result = other.replay(frame_of(ROWS, library), target="y")
    assert np.array_equal(result.prediction, [ticket.prediction for ticket in tickets])
    assert_same(one, other)
    assert len([name for name in one.feature_names if " above " in name]) > 20


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("size", few([37, 61, 1], 1))
def test_chunks_and_jobs_and_both_ways_in_turn(features, size, tmp_path):
    one = model(FEATURES[features])
    tickets = loop(one, ROWS)
    other = model(FEATURES[features])
    predictions = []
    for number, first in enumerate(range(0, len(ROWS), size)):
        part = ROWS[first : first + size]
        if number % 5 == 3:
            other.save(tmp_path / "m.gw")
            other = gw.load(tmp_path / "m.gw")
        if number % 3 == 1:
            predictions += [ticket.prediction for ticket in loop(other, part)]
        else:
            frame = polars.DataFrame(
                part, schema_overrides={"when": polars.Datetime("us"), "store": polars.String}
            )
            found = other.replay(frame, target="y", jobs=1 + number % 2)
            predictions += found.prediction.tolist()
    assert predictions == [ticket.prediction for ticket in tickets]
    assert_same(one, other)


def test_an_iterable_of_frames_is_one_stream():
    one, other = model(), model()
    one.replay(frame_of(ROWS), target="y")
    frame = frame_of(ROWS)
    other.replay((frame[i : i + 50] for i in range(0, len(ROWS), 50)), target="y")
    assert_same(one, other)


def test_rows_that_nobody_is_awake_for_are_remembered():
    """They teach learners nothing, but their labels are settled."""
    rows = [{"g": "a" if t % 4 else None, "x": float(t), "y": t / 50} for t in range(50)]
    features = [gw.past("y", lags=(1, 2)), gw.hinges(knots=((8, 1), (20, 3)))]
    one, other = (gw.Groupwise([gw.by("g")], features=features, always_on=False) for _ in range(2))
    tickets = loop(one, rows)
    assert tickets[5].derived["y 1 ago"] == pytest.approx(4 / 50, abs=2.0**-40)
    result = other.replay(polars.DataFrame(rows), target="y")
    assert np.array_equal(result.prediction, [ticket.prediction for ticket in tickets])
    assert_same(one, other)


def late(one, rows, outstanding, seed=0, through=lambda ticket: ticket):
    """Settle labels late, in an order that chance chooses."""
    generator, waiting, predictions = random.Random(seed), [], []
    for row in rows:
        given = {name: value for name, value in row.items() if name != "y"}
        waiting.append((through(one.predict(given)), row["y"]))
        predictions.append(waiting[-1][0].prediction)
        while len(waiting) > outstanding:
            one.learn(*waiting.pop(generator.randrange(len(waiting))))
    for ticket, y in waiting:
        one.learn(ticket, y)
    return predictions


@pytest.mark.parametrize("passage", ["json", "pickle"])
def test_tickets_through_text(passage):
    def through(ticket):
        if passage == "pickle":
            return pickle.loads(pickle.dumps(ticket))
        return gw.Ticket.from_json(ticket.to_json())

    one, other = model(), model()
    assert late(one, ROWS, 20) == late(other, ROWS, 20, through=through)
    assert_same(one, other)


def test_a_ticket_holds_what_was_made_then(tmp_path):
    """It is settled with it, by a model that was loaded, and has more knots by now."""
    one = model()
    loop(one, ROWS[:55])
    row = {name: value for name, value in ROWS[55].items() if name != "y"}
    ticket = one.predict(row)
    text = ticket.to_json()
    assert json.loads(text)["derived"] == ticket.derived
    assert ticket.row == row
    loop(one, ROWS[56:120])
    assert len(one.predict(row).derived) > len(ticket.derived)
    one.save(tmp_path / "m.gw")
    other = gw.load(tmp_path / "m.gw")
    one.learn(ticket, 1.0)
    other.learn(gw.Ticket.from_json(text), 1.0)
    assert_same(one, other)


@pytest.mark.parametrize("change", [{"age above 40": 0.5}, {"y 1 ago of store": 0.1}, 3, [1]])
def test_tickets_that_were_changed_are_refused(change):
    one = model()
    row = {name: value for name, value in ROWS[0].items() if name != "y"}
    page = json.loads(one.predict(row).to_json())
    page["derived"] = {**page["derived"], **change} if isinstance(change, dict) else change
    with pytest.raises(TicketError):
        one.learn(gw.Ticket.from_json(json.dumps(page)), 1.0)


def test_a_learn_that_raises_leaves_makers_as_they_were():
    one = model()
    loop(one, ROWS[:30])
    before = remembered(one)
    row = {name: value for name, value in ROWS[30].items() if name != "y"}
    ticket = one.predict(row)
    for label in (99.0, None, "text", float("nan")):
        with pytest.raises(LabelError):
            one.learn(ticket, label)
    with pytest.raises(LabelError), one.all_or_nothing():
        loop(one, [*ROWS[31:60], {**ROWS[60], "y": 99.0}])
    bad = [*ROWS[31:60], {**ROWS[60], "y": 99.0}]
    with pytest.raises(LabelError):
        one.replay([frame_of(ROWS[31:60]), frame_of(bad)], target="y")
    assert remembered(one) == before
    one.learn(ticket, 1.0)
    with pytest.raises(TicketError):
        one.learn(ticket, 1.0)
    other = model()
    loop(other, [*ROWS[:30], {**ROWS[30], "y": 1.0}])
    assert_same(one, other)


def test_copies_go_their_own_way():
    one = model()
    loop(one, ROWS[:50])
    copies = copy.deepcopy(one), pickle.loads(pickle.dumps(one))
    before = remembered(one)
    for twin in copies:
        loop(twin, ROWS[50:])
    assert remembered(one) == before
    loop(one, ROWS[50:])
    for twin in copies:
        assert_same(one, twin)


def test_threads_lose_no_label():
    one = model()
    parts = [ROWS[i::4] for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda part: loop(one, part), parts))
    (_, _, past, encoded, _), arrays = remembered(one)
    assert arrays["derived.1.overall"][0] == len(ROWS)
    assert sum(record[0] for record in arrays["derived.3.records"]) == len(ROWS)
    assert {key[0] for key in encoded["keys"]} == {row["city"] for row in ROWS}
    assert len(past["levels"]) == len(arrays["derived.2.levels"])


@pytest.mark.parametrize("outstanding", few([7, 0, 60], 2))
@pytest.mark.parametrize("aggregator", ["Specialists", "AdaNormalHedge", "Prod"])
def test_certificates_hold_against_adversaries(outstanding, aggregator):
    """Labels are those that are farthest from what was predicted, and come late."""
    one = model(aggregator=getattr(gw.aggregators, aggregator)())
    generator, waiting = random.Random(outstanding), []
    for t, row in enumerate(ROWS):
        ticket = one.predict({name: value for name, value in row.items() if name != "y"})
        waiting.append((ticket, LOSS.high if ticket.prediction < 3.0 else LOSS.low))
        while len(waiting) > outstanding:
            one.learn(*waiting.pop(generator.randrange(len(waiting))))
        if t % 45 == 44:
            for line in one.regret():
                slack = 1e-9 * (1.0 + 100.0 * line["rounds"])
                assert line["regret"] <= line["certificate"] + slack, line
    assert one.regret().settled == len(ROWS) - outstanding


def test_partial_feedback_remembers_what_it_sees():
    paying = gw.PayForFeedback(model(makers()[:4]), horizon=1000)
    for row in ROWS[:100]:
        ticket = paying.predict({name: value for name, value in row.items() if name != "y"})
        paying.learn(ticket, row["y"])
    overall = remembered(paying.model)[1]["derived.1.overall"]
    assert overall[0] == 10.0


@pytest.mark.slow
def test_probabilities():
    rows = [{**row, "y": float(row["y"] > 3.0)} for row in ROWS[:90]]
    one, other = (model(loss=gw.losses.Log(), recalibrate=True) for _ in range(2))
    tickets = loop(one, rows)
    result = other.replay(frame_of(rows), target="y")
    assert np.array_equal(result.prediction, [ticket.prediction for ticket in tickets])
    assert_same(one, other)


def test_a_snapshot_holds_makers_and_what_they_know(tmp_path):
    for number, features in enumerate(FEATURES.values()):
        one = model(features)
        loop(one, ROWS[:70])
        one.save(tmp_path / f"{number}.gw")
        other = gw.load(tmp_path / f"{number}.gw")
        assert other.features == features
        assert_same(one, other)
        other.save(tmp_path / "again.gw")
        assert (tmp_path / "again.gw").read_bytes() == (tmp_path / f"{number}.gw").read_bytes()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    one = model()
    loop(one, ROWS[:50])
    path = tmp_path_factory.mktemp("saved") / "m.gw"
    one.save(path)
    return crafted.opened(path)


@pytest.mark.parametrize("seed", few(range(6), 2))
def test_changed_files_are_refused_or_work(saved, seed, tmp_path):
    """Only what makers know is changed here; the rest is tested elsewhere."""
    generator, found = random.Random(seed), []
    for _ in range(40):
        header, arrays = copy.deepcopy(saved)
        if generator.random() < 0.5:
            change = crafted.change_page(header["derived"], generator)
        else:
            own = {name: array for name, array in arrays.items() if name.startswith("derived.")}
            arrays = {name: array for name, array in arrays.items() if name not in own}
            change = crafted.change_arrays(own, generator)
            arrays.update(own)
            header["arrays"] = sorted(arrays)
        path = crafted.written(tmp_path / "m.gw", crafted.Snapshot(header, arrays))
        try:
            found.append(crafted.outcome(path))
            if found[-1] == crafted.LOADED:
                one = gw.load(path)
                crafted.used(one, [({**row, "y": None}, 0.5) for row in ROWS[70:72]])
                for row in ROWS[70:80]:
                    given = {name: value for name, value in row.items() if name != "y"}
                    assert np.isfinite(one.predict(given).prediction)
                    one.learn_one(given, row["y"])
        except Exception as error:
            error.add_note(str(change))
            raise
    assert set(found) == {crafted.REFUSED, crafted.LOADED}


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("derived.1.levels", (0, 0), 0.0),
        ("derived.1.levels", (0, 0), 0.5),
        ("derived.1.levels", (0, 0), -1.0),
        ("derived.1.levels", (0, 1), 2.0),
        ("derived.1.levels", (0, 4), 1e9),
        ("derived.1.levels", (0, 5), 0.0),
        ("derived.1.owners", (0, 0), 0.0),
        ("derived.1.owners", (0, 1), -1e6),
        ("derived.1.overall", 1, 1e6),
        ("derived.3.records", (0, 0), -1.0),
        ("derived.4.knots", (0, 1), 0.0),
        ("derived.4.knots", (0, 0), np.inf),
        ("derived.4.values", 0, 1e200),
    ],
)
def test_numbers_that_no_labels_give_are_damage(saved, name, place, value, tmp_path):
    header, arrays = copy.deepcopy(saved)
    arrays[name][place] = value
    with pytest.raises(SnapshotError, match="damaged"):
        gw.load(crafted.written(tmp_path / "m.gw", crafted.Snapshot(header, arrays)))


def test_models_without_makers_have_tickets_and_files_as_before(tmp_path):
    one = gw.Groupwise([gw.by("g")])
    one.learn_one({"g": "a", "u": 0.5}, 0.5)
    ticket = one.predict({"g": "a", "u": 0.5})
    assert ticket.derived is None
    assert "derived" not in json.loads(ticket.to_json())
    one.save(tmp_path / "m.gw")
    header, arrays = crafted.opened(tmp_path / "m.gw")
    assert not [name for name in arrays if name.startswith("derived")]
    del header["derived"]
    path = crafted.written(tmp_path / "m.gw", crafted.Snapshot(header, arrays))
    assert gw.load(path).predict({"g": "a", "u": 0.5}).prediction == ticket.prediction


class TestRefused:
    @pytest.mark.parametrize(
        ("features", "message"),
        [
            (gw.past("y"), "give a list"),
            ([gw.past("y"), gw.past("y")], "would exist twice"),
            (["y 1 ago", gw.past("y")], "would exist twice"),
            ([{"a": None}, "a", gw.past("y")], "occurs twice"),
            ([gw.past("y"), 3], "no name of a field"),
            ([gw.hinges("y 1 ago"), gw.past("y")], "Put gw.past before it in features"),
            ([gw.past("y", by="d hour"), gw.calendar("d")], "Put gw.calendar before it"),
            ([gw.past], "no name of a field"),
        ],
    )
    def test_lists_of_features(self, features, message):
        with pytest.raises(FeatureError, match=message):
            gw.Groupwise([], features=features)

    def test_rows(self):
        one = gw.Groupwise([], features=[gw.past("y")])
        with pytest.raises(FeatureError, match="There is a field 'y 1 ago' already"):
            one.predict({"y 1 ago": 0.5})
        frame = polars.DataFrame({"y 1 ago": [0.5], "y": [0.5]})
        with pytest.raises(FeatureError, match="There is a field 'y 1 ago' already"):
            one.replay(frame, target="y")
        with pytest.raises(FeatureError, match="A row is a mapping"):
            one.predict([1.0])  # type: ignore[arg-type]
        with pytest.raises(FeatureError, match="Field 'x' is nan"):
            one.predict({"x": float("nan")})
        assert remembered(one)[1]["derived.0.overall"] == [0.0, 0.0]

    def test_actions(self):
        contexts = np.array([[0.0], [1.0]])
        learner = gw.learners.ContextualFTPL(gw.oracles.Stumps(), contexts)
        with pytest.raises(ConfigurationError, match="leave the makers out"):
            gw.Groupwise([], learner=learner, loss=gw.losses.ZeroOne(), features=["x", gw.hinges()])


def test_groups_read_what_is_made():
    groups = [
        gw.by("when weekday"),
        gw.cut("y mean 0.9", [0.5]),
        gw.by("when month") & gw.by("flag"),
    ]
    features = [gw.calendar("when"), gw.past("y")]
    one, other = (gw.Groupwise(groups, features=features, loss=LOSS) for _ in range(2))
    tickets = loop(one, ROWS)
    result = other.replay(frame_of(ROWS), target="y")
    assert np.array_equal(result.prediction, [ticket.prediction for ticket in tickets])
    assert_same(one, other)
    assert {"y mean 0.9: <= 0.5", "y mean 0.9: > 0.5"} <= set(one.group_names)


def test_adapters_take_makers():
    from sklearn.base import clone

    from groupwise.compat.sklearn import GroupwiseRegressor

    frame = pandas.DataFrame(stream(90, missing=False))
    features = ["age", gw.past("y", of="store"), gw.hinges("size", {20: 3})]
    estimator = clone(GroupwiseRegressor(["store"], features=features, range=(-2, 8)))
    estimator.fit(frame.drop(columns="y"), frame["y"])
    names = estimator.model_.feature_names
    assert [name for name in names if name.startswith("y ")] == [
        "y 1 ago of store",
        "y mean 0.9 of store",
    ]
    assert np.isfinite(estimator.predict(frame.drop(columns="y"))).all()
