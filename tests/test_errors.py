"""Errors say which row is to blame, in their message and as a number."""

import copy
import pickle
from typing import Any

import numpy as np
import polars as pl
import pytest

import groupwise as gw
from groupwise import errors

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.GroupwiseError)
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("row", [None, 0, 7])
def test_copies_and_pickles_keep_the_row(kind, row):
    error = kind("What is wrong.", row=row)
    for found in (error, copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(found) is kind
        assert found.row == row
        assert found.message == "What is wrong."
        assert str(found) == ("What is wrong." if row is None else f"row {row}: What is wrong.")


FRAMES: dict[str, tuple[dict[str, Any], Any]] = {
    "label": ({"y": [0.1, 0.2, 3.0]}, errors.LabelError),
    "absent label": ({"y": [0.1, 0.2, None]}, errors.LabelError),
    "feature": ({"x": [0.1, 0.2, float("nan")]}, errors.FeatureError),
    "weight": ({"w": [0.1, 0.2, 1.5]}, errors.GroupError),
    "weight as text": ({"w": ["0.1", "0.2", "more"]}, errors.GroupError),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame(name):
    columns, kind = FRAMES[name]
    frame = pl.DataFrame(
        {"x": [0.1, 0.2, 0.3], "w": [0.5, 0.5, 0.5], "y": [0.1, 0.2, 0.3]} | columns
    )
    model = gw.Groupwise([gw.weight("w")])
    with pytest.raises(kind) as caught:
        model.replay(frame, target="y")
    if name != "weight as text":  # refused as a whole
        assert caught.value.row == 2
        assert str(caught.value) == f"row 2: {caught.value.message}"


@pytest.mark.parametrize(
    ("loss", "label"),
    [
        (gw.losses.Square(0.0, 1.0), 3.0),
        (gw.losses.ZeroOne(), 0.5),
        (gw.losses.Unbounded(), float("nan")),
    ],
    ids=lambda value: str(value),
)
def test_labels(loss, label):
    with pytest.raises(errors.LabelError) as caught:
        loss.encode_many(np.array([0.0, 1.0, label, label]))
    assert caught.value.row == 2


def test_arrays():
    x, y, membership = np.ones((4, 1)), np.ones(4), np.ones((4, 1))
    for kind, arrays in (
        (errors.FeatureError, (np.array([[1.0], [1.0], [np.nan], [1.0]]), y, membership)),
        (errors.LabelError, (x, np.array([1.0, 1.0, 2.0, 1.0]), membership)),
        (errors.GroupError, (x, y, np.array([[1.0], [1.0], [-1.0], [1.0]]))),
    ):
        with pytest.raises(kind) as caught:
            gw.replay(*arrays)
        assert caught.value.row == 2


def test_long_values_are_not_quoted_whole():
    model = gw.Groupwise([])
    model.learn_one({"x": 1.0}, 0.5)
    with pytest.raises(errors.FeatureError) as caught:
        model.predict_one({"x": "a" * 100_000})
    text = str(caught.value)
    assert text.startswith("Field 'x' held numbers before and now holds 'aaa")
    assert text.endswith("or start a model in which it is text.")
    assert len(text) < 2_000
