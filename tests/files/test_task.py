"""Labels as files have them, and what predictions lose on them."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from groupwise.errors import DataError
from groupwise.files.rows import Piece
from groupwise.files.source import Source
from groupwise.files.task import Task
from groupwise.losses import Log, Square

COLOURS = Task(Log(classes=["red", "green", "blue"]))
YES = Task(Log(classes=["no", "yes"]))
FILE = Source("file", Path("file"), "CSV", False, Path("file"))


def test_names_and_columns():
    assert (Task(Square()).name, Task(Square()).columns) == ("number", ["prediction"])
    assert (Task(Log()).name, Task(Log()).columns) == ("probability", ["probability:1"])
    assert YES.columns == ["probability:yes"]
    assert COLOURS.name == "classes"
    assert COLOURS.columns == ["probability:red", "probability:green", "probability:blue"]
    assert Task(Log(classes=[2.5, 3])).columns == ["probability:3"]
    assert Task(Log(classes=[False, True])).columns == ["probability:true"]


def test_predictions_have_a_column_each():
    assert Task(Square()).of_prediction(np.array([1.0, 2.0])).tolist() == [[1.0], [2.0]]
    assert Task(Log()).of_prediction(0.25).tolist() == [0.25]
    assert YES.of_prediction({"no": 0.75, "yes": 0.25}).tolist() == [0.25]
    assert YES.of_prediction(np.array([[0.75, 0.25]])).tolist() == [[0.25]]
    shares = {"red": 0.5, "green": 0.25, "blue": 0.25}
    assert COLOURS.of_prediction(shares).tolist() == [0.5, 0.25, 0.25]


def test_losses_by_hand():
    assert Task(Square()).losses(np.array([[1.0], [4.0]]), np.array([3.0, 4.0])).tolist() == [4, 0]
    binary = YES.losses(np.array([[0.25], [0.25], [0.25]]), np.array([1.0, 0.0, 0.5]))
    logs = -math.log(0.25), -math.log(0.75)
    assert binary.tolist() == pytest.approx([*logs, sum(logs) / 2])
    several = COLOURS.losses(np.array([[0.5, 0.2, 0.3], [0.0, 0.5, 0.5]]), np.array([2.0, 0.0]))
    assert several.tolist() == pytest.approx([-math.log(0.3), 15 * math.log(10)])
    sure = YES.losses(np.array([[0.0], [1.0], [1.0]]), np.array([1.0, 0.0, 1.0]))
    assert sure.tolist() == pytest.approx([15 * math.log(10), 15 * math.log(10), 0.0], rel=1e-2)


def piece(labels):
    return Piece(np.arange(11, 11 + len(labels)), pa.table({"x": [1.0] * len(labels), "y": labels}))


@pytest.mark.filterwarnings("error")
def test_a_prediction_whose_square_is_too_large_loses_infinitely_much_without_a_word():
    lost = Task(Square()).losses(np.array([[1e300], [0.5]]), np.array([1.0, 1.0]))
    assert lost.tolist() == [math.inf, 0.25]


def test_labels_as_the_model_has_them():
    for task, labels, expected in (
        (Task(Square()), [0.5, 1.0], [0.5, 1.0]),
        (Task(Log()), ["true", "False"], [True, False]),
        (Task(Log()), [0.0, 1.0], [0.0, 1.0]),
        (Task(Log(classes=[False, True])), ["True", "false"], [True, False]),
        (YES, ["no", "yes"], ["no", "yes"]),
        (Task(Log(classes=[1, 2])), [2.0, 1.0], [2.0, 1.0]),
    ):
        frame = task.labelled(piece(labels), "y", FILE)
        assert frame.column("y").to_pylist() == expected
        assert frame.column_names == ["x", "y"]


def test_a_label_that_is_no_class():
    with pytest.raises(DataError, match=r"Row 12 of file: the label is 'maybe', none of .*'no'"):
        YES.labelled(piece(["no", "maybe"]), "y", FILE)
    with pytest.raises(DataError, match="Row 11 of file: the label is missing"):
        YES.labelled(piece([None, "no"]), "y", FILE)
    with pytest.raises(DataError, match="the label is '3', none of the classes '1', '2'"):
        Task(Log(classes=[1, 2])).labelled(piece([3.0]), "y", FILE)


def test_labels_as_numbers():
    assert YES.encode(pa.array(["yes", "no"])).tolist() == [1.0, 0.0]
    assert COLOURS.encode(pa.array(["blue", "red"])).tolist() == [2.0, 0.0]
    assert Task(Log()).encode(pa.array([0.5, 1.0])).tolist() == [0.5, 1.0]


@pytest.mark.parametrize("classes", [["1", 1], [True, 2], [2, "b"]])
def test_classes_that_files_cannot_tell_apart(classes):
    with pytest.raises(DataError, match="not all texts, nor all numbers"):
        Task(Log(classes=classes)).labelled(piece(["1"]), "y", FILE)
