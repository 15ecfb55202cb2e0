"""Replays in segments: the same for any number of workers, and those without segments nearly."""

import copy
from typing import Any

import numpy as np
import polars
import pytest

import groupwise as gw
from groupwise.engines import LocalEngine
from tests.few import few

Ridge = gw.learners.Ridge
ROWS, SEGMENT = 1_500, 400
WELL, ELSE = 1e-8, 2e-7
"""How far segments may be from none, of the label's range: on well-conditioned data, and else."""


def kinds(rng, rows):
    """Features of every kind that learners meet, with a column of ones first."""
    one, normal = np.ones((rows, 1)), rng.normal(size=(rows, 4))
    time = np.arange(rows)[:, None]
    levels = np.hstack([np.eye(5)[rng.integers(0, 5, rows)], np.eye(24)[rng.integers(0, 24, rows)]])
    yield "normal", np.hstack([one, normal])
    yield "offsets", np.hstack([one, normal + 1e6])
    sent = 1.7e9 + 60.0 * time
    yield "timestamps", np.hstack([one, sent, sent - 3600.0 * rng.random((rows, 1)), normal])
    yield "collinear", np.hstack([one, normal, normal[:, :1] + 0.3 * normal[:, 1:2]])
    yield "nearly collinear", np.hstack([one, normal, normal[:, :1] + 1e-6 * normal[:, 1:2]])
    yield "levels", np.hstack([one, levels])
    yield "levels alone", levels
    yield "scales", np.hstack([one, normal * [1e-20, 1e10, 1e20, 1e-5]])
    yield "bursts", np.hstack([one, normal * (1.0 + 1e6 * (rng.random((rows, 1)) < 0.01))])
    yield "late", np.hstack([one, normal * (time > rows / 2)])
    yield "gone", np.hstack([one, normal * (time < rows / 4), normal])


KINDS = [name for name, _ in kinds(np.random.default_rng(0), 8)]
LEARNERS = {
    "small penalty": Ridge(1e-6),
    "forward": Ridge(1.0, forward=True),
    "forgetting": Ridge(0.01, forgetting=0.99),
    "forgetting slowly": Ridge(1.0, forgetting=0.999),
    "forgetting quickly": Ridge(1.0, forgetting=0.9),
    "portfolio": None,
    "several": [Ridge(0.1), Ridge(1.0, everybody=True), Ridge(0.1, forgetting=0.95)],
}


def stream(kind, seed=0, rows=ROWS):
    """X, y and a membership with fractions and small groups."""
    rng = np.random.default_rng(seed)
    X = dict(kinds(rng, rows))[kind]
    spread = (X - X.mean(0)) / (X.std(0) + 1e-300)
    told = spread @ rng.normal(size=X.shape[1]) / np.sqrt(X.shape[1])
    y = np.clip(0.5 + 0.15 * told + 0.05 * rng.normal(size=rows), 0.0, 1.0)
    small = rng.random((rows, 2)) < [0.3, 0.02]
    return X, y, np.column_stack([np.ones(rows), small, rng.random(rows)])


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", few(KINDS, 4))
def test_segments_change_numbers_by_rounding_alone(kind, learner):
    X, y, members = stream(kind)
    about: dict[str, Any] = {"learner": LEARNERS[learner]}
    plain: Any = gw.replay(X, y, members, **about)
    cut: Any = gw.replay(X, y, members, segment=SEGMENT, jobs=1, **about)
    most = WELL if kind in ("normal", "late", "levels alone") else ELSE
    assert np.abs(plain.advice - cut.advice).max() <= most
    assert np.abs(plain.prediction - cut.prediction).max() <= most
    for one, other in zip(plain.regret(), cut.regret(), strict=True):
        assert other["best_loss"] == pytest.approx(
            one["best_loss"], abs=one["best_error"] + other["best_error"]
        )
        assert other["regret"] <= other["certificate"] + 1e-9
        assert other["status"] == one["status"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "timestamps", "levels"])
def test_long_streams_stay_as_close(kind):
    X, y, members = stream(kind, 1, 100_000)
    about: dict[str, Any] = {
        "learner": [Ridge(1e-3), Ridge(1.0, forgetting=0.999)],
        "keep": ["advice"],
    }
    plain: Any = gw.replay(X, y, members, **about)
    cut: Any = gw.replay(X, y, members, segment=7_000, **about)
    assert np.abs(plain.advice - cut.advice).max() <= (WELL if kind == "normal" else ELSE)


def far(rng, rows):
    """Columns of which little is left without another: learners keep it, and so must segments."""
    one, normal = np.ones((rows, 1)), rng.normal(size=(rows, 3))
    later, time = rng.random((rows, 1)), np.arange(rows)[:, None]
    clock = 1.7e9 + time
    yield "clocks", np.hstack([one, clock, clock + later, normal]), later
    yield "clocks alone", np.hstack([clock, clock + later, normal]), later
    days = 1.7e9 + time // 700 * 86_400.0
    yield "days", np.hstack([one, days, days + later, normal]), later
    began = np.where(time > rows / 3, np.hstack([clock, clock + later]), 0.0)
    yield "from a row on", np.hstack([one, began, normal]), later
    yield "milliseconds", np.hstack([one, clock, clock + 1e-3 * later, normal]), later
    yield "offsets", np.hstack([one, 1e8 + normal]), normal[:, :1]
    yield "offsets alone", 1e8 + normal, normal[:, :1]


@pytest.mark.parametrize("kind", [name for name, *_ in far(np.random.default_rng(0), 8)])
def test_what_columns_have_alone_goes_through_segments(kind):
    rng = np.random.default_rng(0)
    X, told = {name: about for name, *about in far(rng, 3_000)}[kind]
    y = np.clip(0.5 + 0.3 * told[:, 0] + 0.05 * rng.normal(size=len(X)), 0.0, 1.0)
    learners = [Ridge(1e-3), Ridge(1.0, forward=True), Ridge(0.01, forgetting=0.999)]
    for learner in learners:
        plain: Any = gw.replay(X, y, np.ones((len(X), 1)), learner=learner)
        cut: Any = gw.replay(X, y, np.ones((len(X), 1)), learner=learner, segment=500, jobs=1)
        assert np.abs(plain.advice - cut.advice).max() <= ELSE / 4


def frame(rows, seed=0):
    """Text whose levels come late, numbers, dates, weights, and another model's predictions."""
    rng = np.random.default_rng(seed)
    newest = 2 + np.arange(rows) * 6 // rows
    x = rng.normal(size=rows)
    late = np.where(np.arange(rows) < rows // 2, 0.0, rng.normal(size=rows))
    y = np.clip(0.5 + 0.1 * x + 0.1 * late + 0.05 * rng.normal(size=rows), 0.0, 1.0)
    return polars.DataFrame(
        {
            "city": [f"c{k}" for k in rng.integers(0, newest)],
            "sex": rng.choice(["f", "m"], rows),
            "x": x,
            "late": late,
            "when": np.datetime64("2026-01-01", "ms") + np.arange(rows) * np.timedelta64(1, "h"),
            "w": rng.random(rows),
            "theirs": np.clip(y + 0.1 * rng.normal(size=rows), 0.0, 1.0),
            "y": y,
        }
    )


def model(**changed):
    """All that the default has, with makers, experts, intersections and intervals."""
    features = [
        *("city", "sex", "x", "late"),
        *(gw.past("y", by="city"), gw.hinges("x"), gw.encoded("city"), gw.calendar("when")),
    ]
    about = {"features": features, "intersections": 2, "experts": ["theirs"], "intervals": 0.9}
    groups = [gw.by("city"), gw.by("sex")]
    return gw.Groupwise(groups, **{**about, **changed})


def state(one):
    """Everything that was learned and recorded."""
    return {name: value.tobytes() for name, value in one.contents()[1].items()}


@pytest.mark.parametrize("segment", [1, 2])
@pytest.mark.parametrize("learner", [Ridge(0.01), Ridge(10.0, forgetting=0.9), None])
def test_a_penalty_is_not_lost_beside_huge_rows(learner, segment):
    """Fewer rows than columns: what is said in the others is the penalty's alone to decide."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(4, 3)) * [1e25, 1e21, 1e3]
        y, members = rng.random(4), np.ones((4, 1))
        whole: Any = gw.replay(X, y, members, learner=learner)
        apart: Any = gw.replay(X, y, members, learner=learner, segment=segment)
        assert np.abs(whole.advice - apart.advice).max() <= 1e-12


def test_the_same_bits_for_any_number_of_workers_and_any_frames():
    rows = frame(900)
    found = []
    for jobs, frames in [(1, rows), (2, rows), (3, [rows[:100], rows[100:730], rows[730:]])]:
        one = model()
        result = one.replay(frames, "y", jobs=jobs, segment=200)
        found.append((result.prediction, result.interval, one.regret().rows, state(one)))
    for other in found[1:]:
        for k in range(2):
            assert np.array_equal(found[0][k], other[k], equal_nan=True)
        assert found[0][2:] == other[2:]
    with LocalEngine(2) as engine:
        one = model()
        result = one.replay(rows, "y", segment=200, engine=engine)
    assert np.array_equal(result.prediction, found[0][0])


def test_the_same_bits_wherever_frames_end():
    """Also where columns lean on each other, so that rows are folded in once more without that."""
    X, y, _ = stream("timestamps", rows=300)
    frame = polars.DataFrame({**{f"x{j}": one for j, one in enumerate(X.T)}, "y": y})
    theta = []
    for length in (300, 110, 7):
        model = gw.Groupwise([], Ridge(1e-6))
        model.replay(frame.iter_slices(length), "y", segment=100, jobs=1)
        theta.append(model.contents()[1]["ridge.theta"])
    assert np.array_equal(theta[0], theta[1])
    assert np.array_equal(theta[0], theta[2])


@pytest.mark.parametrize("cut", [22, 190])
def test_the_same_bits_for_any_frames_where_columns_lean(cut):
    rng = np.random.default_rng(0)
    far, y = 1e8 + rng.normal(size=(2, 300)), rng.random(300)
    rows = polars.DataFrame({"a": far[0], "b": far[1], "sex": ["f", "m", "m"] * 100, "y": y})
    found = []
    for frames in (rows, [rows[:cut], rows[cut:]]):
        one = gw.Groupwise([gw.by("sex")], Ridge(0.01, forgetting=0.9))
        found.append((one.replay(frames, "y", segment=220).prediction.tobytes(), state(one)))
    assert found[0] == found[1]


def test_makers_layers_experts_and_intersections_go_along():
    rows = frame(900)
    plain, cut = model(), model()
    one, other = plain.replay(rows, "y"), cut.replay(rows, "y", segment=170)
    assert plain.group_names == cut.group_names
    assert plain.feature_names == cut.feature_names
    assert np.abs(one.prediction - other.prediction).max() <= WELL
    assert np.allclose(one.interval, other.interval, atol=1e-6, equal_nan=True)
    assert [one.groups(t) for t in (0, 500)] == [other.groups(t) for t in (0, 500)]
    assert [row["missed"] for row in cut.coverage()] == [row["missed"] for row in plain.coverage()]


def test_a_model_goes_on_from_segments(tmp_path):
    rows = frame(900)
    whole, parts = model(), model()
    whole.replay(rows, "y", segment=150)
    parts.replay(rows[:450], "y", segment=150)
    parts.save(tmp_path / "model.gw")
    parts = gw.load(tmp_path / "model.gw")
    parts.replay(rows[450:], "y", segment=150)
    assert state(whole) == state(parts)  # where segments begin with the same rows
    plain = model()
    plain.replay(rows, "y")
    more = frame(80, seed=1)
    for row in more.to_dicts():
        label = row.pop("y")
        assert whole.predict_one(row) == pytest.approx(plain.predict_one(row), abs=WELL)
        whole.learn_one(row, label)
        plain.learn_one(row, label)
    assert np.abs(
        whole.replay(frame(80, seed=2), "y").prediction
        - plain.replay(frame(80, seed=2), "y").prediction
    ).max() == pytest.approx(0.0, abs=WELL)
    for one, other in zip(whole.regret(), plain.regret(), strict=True):
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-6)
        assert one["certificate"] == pytest.approx(other["certificate"], abs=1e-6)
        assert one["a_priori"] == pytest.approx(other["a_priori"], abs=1e-5)


def test_an_error_leaves_the_model_as_it_was():
    rows = frame(300)
    bad = rows.with_columns(y=polars.lit(7.0))
    one = model()
    one.replay(rows[:100], "y", segment=50)
    before = copy.deepcopy(one.contents())
    with pytest.raises(gw.errors.LabelError, match="outside"):
        one.replay([rows[100:200], bad[200:]], "y", segment=50)
    after = one.contents()
    assert before[0] == after[0]
    assert all(np.array_equal(before[1][name], after[1][name]) for name in before[1])


@pytest.mark.parametrize("segment", [1, 7, 20, 25])
def test_segments_that_nobody_is_awake_in(segment):
    """Before the first group, and between others."""
    rows = frame(60).select("sex", "x", "y")
    absent = ((polars.arange(0, 60) < 20) | (polars.arange(0, 60) // 20 == 2)).alias("absent")
    rows = rows.with_columns(sex=polars.when(absent).then(None).otherwise("sex"))
    plain, cut = (gw.Groupwise([gw.by("sex")], always_on=False) for _ in range(2))
    one, other = plain.replay(rows, "y"), cut.replay(rows, "y", segment=segment)
    assert np.abs(one.prediction - other.prediction).max() <= WELL
    assert cut.group_names == plain.group_names


class Mean:
    """A learner of one's own."""

    def __init__(self):
        self.sums = [0.0, 0.0]

    def advise(self, row, weight):
        return self.sums[0] / max(self.sums[1], 1.0)

    def update(self, row, label, weight):
        self.sums = [self.sums[0] + label, self.sums[1] + 1.0]


@pytest.mark.parametrize(
    ("about", "options", "says"),
    [
        ({"learner": gw.learners.Logistic(), "loss": gw.losses.Log()}, {}, "Logistic cannot begin"),
        ({"learner": Mean()}, {}, "Mean cannot begin"),
        ({"learner": [Ridge(), Mean()]}, {}, "Mean cannot begin"),
        ({}, {"segment": 0}, "1 or more"),
        ({}, {"segment": 2.5}, "number of rows"),
        ({}, {"segment": True}, "number of rows"),
        ({}, {"aggregators_at": "month"}, "stream"),
        ({}, {"segment": None, "aggregators_at": "segment"}, "needs segment="),
    ],
)
def test_what_cannot_be_is_refused_by_name(about, options, says):
    one = gw.Groupwise([gw.by("sex")], **about)
    rows = frame(20).select("sex", "x", "y")
    with pytest.raises(gw.errors.ConfigurationError, match=says):
        one.replay(rows, "y", **{"segment": 5, **options})
    assert one.issued == 0


def adversarial(rows, seed):
    """Labels against what a model has predicted, which changes its mind every hundred rows."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(rows), rng.choice([-1.0, 1.0], rows), rng.normal(size=rows)])
    members = np.column_stack([np.ones(rows), rng.random(rows) < 0.5, rng.random(rows) < 0.2])
    y = (np.arange(rows) // 100 % 2).astype(float)
    for _ in range(3):
        said = gw.replay(X, y, members, keep=[]).prediction
        y = np.where(rng.random(rows) < 0.7, said < 0.5, y).astype(float)
    return X, y, members


@pytest.mark.parametrize("at", ["stream", "segment"])
@pytest.mark.parametrize("aggregator", ["Prod", "AdaNormalHedge", "Specialists"])
def test_regret_is_within_certificates_that_add_up(aggregator, at):
    for seed in range(2):
        X, y, members = adversarial(600, seed)
        about = {"aggregator": getattr(gw.aggregators, aggregator)(), "aggregators_at": at}
        for segment in (37, 100, 600):
            found = gw.replay(X, y, members, segment=segment, **about)
            for row in found.regret():
                assert row["regret"] <= row["certificate"]
                assert row["status"] in ("proved", "loose", "vacuous")
                assert (row["a_priori"] is None) == (at == "segment" and segment < 600)


def test_bounds_of_an_aggregator_that_begins_anew_are_sums():
    # Experts that come with the rows, so that every segment can be replayed by itself.
    X, y, members = adversarial(400, 5)
    theirs = np.clip(y + np.random.default_rng(0).normal(size=400), 0.0, 1.0)

    def replayed(rows, **about):
        experts = {"theirs": theirs[rows]}
        parts = X[rows] * 0.0, y[rows], members[rows]
        return gw.replay(*parts, learner=Ridge(), experts=experts, **about)

    whole = replayed(slice(None), segment=100, aggregators_at="segment")
    apart = [replayed(slice(k, k + 100)) for k in range(0, 400, 100)]
    assert np.array_equal(whole.prediction, np.concatenate([one.prediction for one in apart]))
    terms = [[row["aggregator"] for row in one.regret("theirs")] for one in apart]
    found = [row["aggregator"] for row in whole.regret("theirs")]
    assert found == pytest.approx(np.sum(terms, axis=0).tolist(), rel=1e-9)


def test_tasks_wait_for_others_and_say_what_went_wrong():
    with LocalEngine(2) as engine:
        handles = [engine.put(1)]
        for _ in range(50):
            handles.append(engine.submit(lambda a, b: a + b, handles[-1], 1))
        assert engine.get(handles[-1]) == 51
        wrong = engine.submit(lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            engine.get(engine.submit(lambda a: a, wrong))
