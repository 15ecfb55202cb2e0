"""Dates by their parts: Python's own calendar, row by row and in frames of every library."""

import datetime
import zoneinfo

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import groupwise as gw
from groupwise.errors import FeatureError
from tests.features.making import assert_same, remembered

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
UTC = datetime.UTC
YEAR = datetime.timedelta(days=365.25)
PARTS = ("hour", "day", "weekday", "month", "time", "elapsed")
WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]

MOMENTS = [
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime.datetime(2024, 2, 29, 0, 0),
    datetime.datetime(2024, 3, 31, 2, 30, 15, 1),
    datetime.datetime(1900, 1, 1, 12, 0),
    datetime.datetime(2261, 12, 31, 23, 59),
]


def a_model():
    return gw.Groupwise([gw.by("d hour")], features=[gw.calendar("d", PARTS)])


def expected(moment, origin):
    years = (moment - origin) / YEAR
    name = WEEKDAYS[moment.weekday()]
    clock = str(moment.hour), moment.strftime("%H:%M")
    return [clock[0], str(moment.day), name, str(moment.month), clock[1], years]


def check(found, wanted):
    assert list(found)[:-1] == wanted[:-1]
    assert list(found)[-1] == pytest.approx(wanted[-1], rel=1e-15)


@pytest.mark.parametrize("form", ["datetime", "text", "numpy", "pandas", "date"])
def test_the_parts_of_a_row(form):
    forms = {
        "datetime": lambda one: one,
        "text": lambda one: one.isoformat(" " if one.day % 2 else "T"),
        "numpy": np.datetime64,
        "pandas": pandas.Timestamp,
        "date": lambda one: one.date(),
    }
    one, origin = a_model(), None
    for moment in MOMENTS:
        exact = datetime.datetime.combine(moment, datetime.time()) if form == "date" else moment
        origin = exact if origin is None else origin
        ticket = one.predict({"d": forms[form](moment)})
        wanted = expected(exact, origin)
        if form == "date":
            wanted[0] = wanted[4] = None
        check(ticket.derived.values(), wanted)
        assert ticket.names == (
            ["always_on"] if form == "date" else [f"d hour={moment.hour}", "always_on"]
        )
        one.learn(gw.Ticket.from_json(ticket.to_json()), 0.5)


def frames(values):
    """The same column in every library, with the values that rows of it have."""
    exact = np.array(values, dtype="M8[us]")
    nanoseconds = pandas.Series(exact.astype("M8[ns]"))
    yield "pandas ns", pandas.DataFrame({"d": nanoseconds})
    yield "pandas us", pandas.DataFrame({"d": pandas.Series(exact)})
    yield "polars us", polars.DataFrame({"d": values}, schema={"d": polars.Datetime("us")})
    yield "polars ns", polars.DataFrame({"d": values}, schema={"d": polars.Datetime("ns")})
    yield "polars ms", polars.DataFrame({"d": values}, schema={"d": polars.Datetime("ms")})
    yield "pyarrow", pyarrow.table({"d": pyarrow.array(values, pyarrow.timestamp("us"))})
    yield "objects", pandas.DataFrame({"d": pandas.Series(values, dtype=object)})
    texts = [None if one is None else one.isoformat() for one in values]
    yield "text", polars.DataFrame({"d": texts})
    yield "repeated text", pandas.DataFrame({"d": pandas.Categorical(texts)})


@pytest.mark.parametrize("gaps", [False, True])
def test_the_parts_of_frames(gaps):
    moments = [one.replace(microsecond=one.microsecond // 1000 * 1000) for one in MOMENTS * 2]
    values = [None if gaps and t in (0, 4) else one for t, one in enumerate(moments)]
    looped = a_model()
    for value in values:
        looped.learn_one({"d": value}, 0.5)
    for name, frame in frames(values):
        one = a_model()
        label = [0.5] * len(values)
        if isinstance(frame, polars.DataFrame):
            frame = frame.with_columns(y=polars.Series(label))
        elif isinstance(frame, pandas.DataFrame):
            frame = frame.assign(y=label)
        else:
            frame = frame.append_column("y", pyarrow.array(label))
        one.replay(frame, target="y")
        try:
            assert_same(one, looped)
        except AssertionError as error:
            error.add_note(name)
            raise


def test_zones_have_clocks_of_their_own():
    """Parts are those of the wall clock; what went by is that of the world."""
    start = datetime.datetime(2024, 3, 30, 22, 30, tzinfo=UTC)
    moments = [start + datetime.timedelta(hours=h) for h in range(9)]
    local = [one.astimezone(BERLIN) for one in moments]
    one = a_model()
    for moment, wall in zip(moments, local, strict=True):
        ticket = one.predict({"d": wall})
        check(ticket.derived.values(), [*expected(wall, local[0])[:-1], (moment - start) / YEAR])
        one.learn(ticket, 0.5)
    for frame in (
        polars.DataFrame({"d": local}, schema={"d": polars.Datetime("us", "Europe/Berlin")}),
        pandas.DataFrame({"d": pandas.Series(local)}),
        polars.DataFrame({"d": [wall.isoformat() for wall in local]}),
    ):
        other = a_model()
        column = {"y": 0.5}
        frame = (
            frame.with_columns(polars.lit(0.5).alias("y"))
            if isinstance(frame, polars.DataFrame)
            else frame.assign(**column)
        )
        other.replay(frame, target="y")
        assert_same(other, one)


def test_dates_of_frames():
    days = [None, *(one.date() for one in MOMENTS)]
    one = a_model()
    for day in days:
        one.learn_one({"d": day}, 0.5)
    for frame in (
        polars.DataFrame({"d": days, "y": [0.5] * 6}),
        pandas.DataFrame({"d": days, "y": [0.5] * 6}),
        polars.DataFrame({"d": [day and str(day) for day in days], "y": [0.5] * 6}),
    ):
        other = a_model()
        other.replay(frame, target="y")
        assert_same(one, other)


def test_nanoseconds_are_dropped():
    values = [
        np.datetime64("1969-12-31T23:59:59.999999999"),
        np.datetime64("2020-01-01T00:00:00.1234567"),
    ]
    one = a_model()
    for value in values:
        one.learn_one({"d": pandas.Timestamp(value)}, 0.5)
    frames = [
        pandas.DataFrame({"d": pandas.Series(values, dtype="M8[ns]"), "y": 0.5}),
        polars.DataFrame({"d": np.array(values, dtype="M8[ns]"), "y": [0.5, 0.5]}),
    ]
    for frame in frames:
        other = a_model()
        other.replay(frame, target="y")
        assert remembered(other) == remembered(one)


def test_elapsed_counts_from_what_was_settled_first():
    day = datetime.timedelta(days=1)
    one = gw.Groupwise([], features=[gw.calendar("d", "elapsed")])
    tickets = [one.predict({"d": MOMENTS[1] + i * day}) for i in range(3)]
    assert [ticket.derived["d elapsed"] for ticket in tickets] == [0.0, 0.0, 0.0]
    one.learn(tickets[1], 0.5)
    assert one.predict({"d": MOMENTS[1] + 3 * day}).derived["d elapsed"] == 2 * day / YEAR
    one.learn(tickets[0], 0.5)
    assert one.predict({"d": MOMENTS[1]}).derived["d elapsed"] == -day / YEAR


def test_parts_aside_are_no_features():
    features = [gw.calendar("d", "elapsed", aside=["hour", "time"]), gw.past("y", by="d time")]
    one = gw.Groupwise([gw.by("d hour")], features=features, indicators=False)
    for moment in MOMENTS[:3]:
        one.learn_one({"d": moment}, 0.5)
    names = ["(intercept)", "d elapsed", "y 1 ago by d time", "y mean 0.9 by d time"]
    assert one.feature_names == names
    assert one.group_names == ["d hour=23", "always_on", "d hour=0", "d hour=2"]
    other = gw.Groupwise([gw.by("d hour")], features=features, indicators=False)
    other.replay(polars.DataFrame({"d": MOMENTS[:3], "y": [0.5] * 3}), target="y")
    assert_same(one, other)
    named = gw.Groupwise([], features=["u", *features])
    named.learn_one({"d": MOMENTS[0], "u": 1.0}, 0.5)
    named.learn_one({"d": MOMENTS[0], "u": 1.0}, 0.5)
    assert named.feature_names == ["(intercept)", "u", *names[1:]]


@pytest.mark.parametrize("bad", ["yesterday", "31/12/2020", 1.5, 1_600_000_000, [1], True, ""])
def test_what_is_no_date_is_refused(bad):
    one = a_model()
    with pytest.raises(FeatureError, match=r"'d' holds .*no date that can be read"):
        one.predict({"d": bad})
    frame = pandas.DataFrame({"d": pandas.Series([MOMENTS[1], bad], dtype=object), "y": 0.5})
    with pytest.raises(FeatureError, match=r"row 1: .*no date that can be read"):
        one.replay(frame, target="y")
    if not isinstance(bad, list):
        with pytest.raises(FeatureError, match=r"row 0: .*no date that can be read"):
            one.replay(polars.DataFrame({"d": [bad], "y": [0.5]}), target="y")
    with pytest.raises(FeatureError, match=r"no field 'd', which gw.calendar reads"):
        one.predict({"u": 1.0})
    with pytest.raises(FeatureError, match=r"no column 'd', which gw.calendar reads"):
        one.replay(polars.DataFrame({"u": [1.0], "y": [0.5]}), target="y")


@pytest.mark.parametrize("bad", [["z", "a"], [True, False], [2.0, 1.0]])
def test_the_first_row_without_a_date_is_named(bad):
    with pytest.raises(FeatureError, match=rf"row 1: Field 'd' holds {bad[0]!r}"):
        a_model().replay(polars.DataFrame({"d": [None, *bad], "y": [0.5] * 3}), target="y")


def test_a_date_that_nobody_declared_names_the_calendar():
    with pytest.raises(FeatureError, match=r"features=\[gw.calendar\('d'\)\]"):
        gw.Groupwise([]).predict({"d": MOMENTS[0]})


@pytest.mark.parametrize(
    "parameters",
    [
        {"column": 1},
        {"parts": "second"},
        {"parts": ()},
        {"parts": 3},
        {"parts": ("hour", "hour")},
        {"aside": "hour"},
        {"aside": "elapsed"},
    ],
    ids=str,
)
def test_bad_parameters(parameters):
    with pytest.raises(FeatureError):
        gw.calendar(**{"column": "d", **parameters})


def test_text_in_another_format():
    maker = gw.calendar("d", PARTS, format="%d.%m.%Y %H:%M")
    one, other = (gw.Groupwise([], features=[maker]) for _ in range(2))
    moments = [datetime.datetime(2024, 1, 31, 7, 30), datetime.datetime(2024, 2, 1, 0, 5)]
    texts = [moment.strftime("%d.%m.%Y %H:%M") for moment in moments]
    for moment, text in zip(moments, texts, strict=True):
        ticket = one.predict({"d": text})
        check(ticket.derived.values(), expected(moment, moments[0]))
        one.learn(ticket, 0.5)
    other.replay(polars.DataFrame({"d": texts, "y": [0.5, 0.5]}), target="y")
    assert_same(one, other)
    with pytest.raises(FeatureError, match=r"such as %d\.%m\.%Y %H:%M has it"):
        one.predict({"d": "31/1/2024"})
    iso = one.predict({"d": "2024-01-31T07:30"})  # beside any format
    check(iso.derived.values(), expected(moments[0], moments[0]))
    dates = gw.Groupwise([], features=[gw.calendar("d", format="%m/%d/%Y")])
    assert dates.predict({"d": "2/1/2024"}).derived["d hour"] is None
    for bad in ("%H:%M", "", 3, "%d/%m"):
        with pytest.raises(FeatureError, match="day, month and year"):
            gw.calendar("d", format=bad)  # type: ignore[arg-type]
