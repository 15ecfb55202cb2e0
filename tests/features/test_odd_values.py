"""Values of every type in fields that makers and features read: the same answer on every way."""

import copy
import datetime
import math
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas
import pytest

import groupwise as gw
from tests.few import few

ODD: list[Any] = [
    *(None, math.nan, Decimal("NaN"), np.float32(0.1), Fraction(1, 3), np.timedelta64(3, "D")),
    *(np.complex128(1 + 1j), np.array([1.0, 2.0]), pandas.NaT, pandas.NA, "3"),
    datetime.datetime.min.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=14))),
]
QUICK = len(ODD)
ODD += [
    *(math.inf, True, np.bool_(False), 10**400, 1e101, -1e308, "x", "", b"3", np.array(3.0)),
    *(Decimal("1.5"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1e400"), np.timedelta64(3)),
    *(np.float16(1.3), np.longdouble(2), np.int8(3), np.str_("3"), 1j, [], {}, (1,), object()),
    *(datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 3), datetime.timedelta(3)),
    *(np.datetime64("2024-01-01"), np.datetime64("NaT"), np.datetime64("9999999-01-01")),
    *(pandas.Timestamp("2024-01-01", tz="Europe/Paris"), "2024-02-30", datetime.datetime.max),
]
TEXT, NUMBERS = ["u", "v", "w"], [1.0, 2.0, 3.0]
FEATURES: dict[str, tuple[Any, list[Any]]] = {
    "nothing": (None, NUMBERS),
    "ranged": ({"f": (0, 7)}, NUMBERS),
    "past by": ([gw.past("y", by="f")], TEXT),
    "past of": ([gw.past("y", of="f", rises=True)], TEXT),
    "encoded": ([gw.encoded("f")], TEXT),
    "hinges": ([gw.hinges("f", [(2, 1)])], NUMBERS),
    "hinges of a range": ([{"f": (0, 7)}, gw.hinges(None, [(2, 1)])], NUMBERS),
    "calendar": ([gw.calendar("f")], ["2024-01-01", None]),
}


def answer(model: gw.Groupwise, value: Any) -> Any:
    """The prediction, or what is said of the value."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return model.predict_one({"f": value})
    except gw.GroupwiseError as error:
        return str(error)


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("place", few(range(len(ODD)), QUICK))
def test_a_model_that_was_loaded_says_the_same(features: str, place: int) -> None:
    """What is remembered about rows seen before, to be quick, decides nothing."""
    value = ODD[place]
    declared, before = FEATURES[features]
    model = gw.Groupwise([], features=declared)
    for one in before:
        model.learn_one({"f": one}, 0.3)
    model.predict_one({"f": before[0]})
    loaded = gw.Groupwise.restored(*model.contents())
    said = answer(model, value)
    assert said == answer(loaded, value)
    assert isinstance(said, float) or "\n" not in said
    if isinstance(said, str):
        return
    ticket = model.predict({"f": value})
    twin = copy.deepcopy(model)
    text = ticket.to_json()
    model.learn(ticket, 0.7)
    twin.learn(gw.Ticket.from_json(text), 0.7)
    one, other = model.contents(), twin.contents()
    assert one[0] == other[0]
    for name, array in one[1].items():
        assert np.array_equal(array, other[1][name], equal_nan=True), name


@pytest.mark.parametrize("when", [datetime.datetime(2024, 5, 1, 13, 30), datetime.date(2024, 5, 1)])
def test_dates_in_a_ticket_as_text_are_read_whatever_the_format(when: Any) -> None:
    model = gw.Groupwise([], features=[gw.calendar("f", format="%d/%m/%Y")])
    twin = copy.deepcopy(model)
    ticket = model.predict({"f": when})
    model.learn(ticket, 0.5)
    twin.learn(gw.Ticket.from_json(ticket.to_json()), 0.5)
    assert model.contents()[0]["derived"] == twin.contents()[0]["derived"]


@pytest.mark.parametrize("kind", [np.float32, np.float16, int, Decimal])
def test_numbers_of_every_kind_are_scaled_in_double_precision(kind: Any) -> None:
    model = gw.Groupwise([], features={"f": (0, 7)}, learner=gw.learners.Ridge(), clip=False)
    model.learn_one({"f": kind(5)}, 1.0)
    for value in (kind(3), kind(2) / kind(3)):
        ticket = model.predict({"f": value})
        assert ticket.encoded is not None
        assert ticket.encoded.values[-1] == float(value) / 7
