"""What the tests of derived features share: streams, and the plain loop."""

import datetime
from typing import Any

import numpy as np

import groupwise as gw
from tests.states import state_of

START = datetime.datetime(2023, 12, 30, 20, 15)


def stream(count: int, seed: int = 0, missing: bool = True) -> list[dict[str, Any]]:
    """Rows with a label: moments, text with few and many values, numbers, some of it missing."""
    generator = np.random.default_rng(seed)
    found = []
    for t in range(count):
        gone = missing and generator.random() < 0.1
        found.append(
            {
                "when": None if gone and t % 2 else START + datetime.timedelta(minutes=95 * t),
                "store": None if gone and not t % 2 else f"s{generator.integers(0, 3)}",
                "city": f"c{int(generator.exponential(9.0))}",
                "age": int(generator.integers(18, 70)),
                "size": float(generator.normal()),
                "flag": int(generator.integers(0, 2)),
                "y": float(10.0 * generator.random() - 2.0),
            }
        )
    return found


def makers(**changed: Any) -> list[Any]:
    """All makers together, one reading what others make."""
    parameters: dict[str, Any] = {"keys": 1 << 16, **changed}
    return [
        gw.calendar("when", aside=("time",)),
        gw.past("y", lags=(1, 3), mean=(0.5, 0.9), of="store"),
        gw.past("y", lags=(1,), mean=(1.0,), by="when hour", of="store", rises=True, **parameters),
        gw.encoded("city", strength=2.0, **parameters),
        gw.hinges(["age", "size", "y 1 ago of store", "city encoded"], {10: 1, 25: 3, 60: 7}),
    ]


LOSS = gw.losses.Square(-2, 8)


def model(features: Any = None, **options: Any) -> gw.Groupwise:
    """A model with all makers, or with those given; its groups read what they make."""
    features = makers() if features is None else features
    groups = [gw.by("store"), gw.by("when hour")]
    return gw.Groupwise(groups, **{"features": features, "loss": LOSS, **options})


def loop(one: gw.Groupwise, rows: list[dict[str, Any]]) -> list[gw.Ticket]:
    """Predict and learn every row; the tickets."""
    tickets = []
    for row in rows:
        tickets.append(one.predict({name: value for name, value in row.items() if name != "y"}))
        one.learn(tickets[-1], row["y"])
    return tickets


def remembered(one: gw.Groupwise) -> Any:
    """All that makers remember, in values that can be compared."""
    assert one._derived is not None
    fields, arrays = one._derived.save()
    return fields, {name: array.tolist() for name, array in arrays.items()}


def assert_same(one: gw.Groupwise, other: gw.Groupwise) -> None:
    """Two models know the same, bit for bit."""
    assert one.feature_names == other.feature_names
    assert one.group_names == other.group_names
    assert remembered(one) == remembered(other)
    left, right = state_of(one), state_of(other)
    assert left.keys() == right.keys()
    for name, array in left.items():
        assert np.array_equal(array, right[name], equal_nan=True), name
