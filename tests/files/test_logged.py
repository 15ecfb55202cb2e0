"""Logged predictions: which columns they are in, and what they lose on every group."""

import math

import numpy as np
import pyarrow as pa
import pytest

from groupwise.errors import ConfigurationError, DataError
from groupwise.files.logged import Logged, Scores, find_logged, said_for_sure
from groupwise.files.rows import Piece
from groupwise.files.scan import scan
from groupwise.files.source import opened
from groupwise.files.task import Task
from groupwise.groups import Groups, by, weight
from groupwise.losses import Log, Square
from tests.cli.commands import write_rows

YES = Task(Log(classes=["no", "yes"]))
COLOURS = Task(Log(classes=["red", "green", "blue"]))
HEADER = ("a", "b:yes", "c_yes", "d:red", "d:green", "d:blue", "e:red", "e:green", "far", "y")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    rows = [(0.5, 0.1, 0.2, 0.2, 0.3, 0.5, 0.5, 0.5, 1.5, "no")] * 4
    data = write_rows(tmp_path_factory.mktemp("logged") / "d.csv", HEADER, rows)
    with opened(str(data)) as source:
        yield scan(source, "y")


def test_the_columns_of_a_model(found):
    assert find_logged(found, YES, "y", ["a", "b", "c"]) == (
        Logged("a", ("a",)),
        Logged("b", ("b:yes",)),
        Logged("c", ("c_yes",)),
    )
    assert find_logged(found, COLOURS, "y", ["d"]) == (Logged("d", ("d:red", "d:green", "d:blue")),)
    assert find_logged(found, Task(Square()), "y", ["far"]) == (Logged("far", ("far",)),)


@pytest.mark.parametrize(
    ("task", "names", "error", "message"),
    [
        (YES, ["none"], DataError, "no column 'none' for predictions"),
        (YES, ["far"], DataError, "holds 1.5, and probabilities are from 0 to 1"),
        (YES, ["y"], ConfigurationError, "is the label itself"),
        (YES, ["a", "a"], ConfigurationError, "named twice"),
        (YES, ["a", "b", "c", "d"], ConfigurationError, "at most 3 models"),
        (Task(Square()), ["b"], DataError, "no column 'b' for predictions"),
        (COLOURS, ["a"], DataError, r"one column, and 'y' has 3 classes: .*'a:red', 'a:green'"),
        (COLOURS, ["e"], DataError, "has 'e:red', 'e:green', and no column 'e:blue'"),
        (COLOURS, ["z"], DataError, "no column 'z:red' for predictions"),
    ],
)
def test_refused(found, task, names, error, message):
    with pytest.raises(error, match=message):
        find_logged(found, task, "y", names)


def test_probabilities_of_classes_add_up_to_one():
    columns = {"m:a": [0.2, 0.33], "m:b": [0.3, 0.33], "m:c": [0.5, 0.33]}
    logged = Logged("m", tuple(columns))
    read = logged.read(Piece(np.array([7, 9]), pa.table(columns)), "file")
    assert read.sum(axis=1).tolist() == pytest.approx([1.0, 1.0])
    assert read[1].tolist() == pytest.approx([1 / 3] * 3)
    columns["m:c"][1] = 0.9
    with pytest.raises(DataError, match=r"Row 9 of file: .*'m' add up to 1.56, not to 1"):
        logged.read(Piece(np.array([7, 9]), pa.table(columns)), "file")


@pytest.fixture
def stream():
    """Groups of some rows, one of them fractional, and draws for them."""
    generator = np.random.default_rng(3)
    names, shares = generator.choice(["u", "v"], 60), generator.random(60).round(2)
    frame = pa.table({"g": names.tolist(), "w": shares.tolist()})
    members = {"g=u": names == "u", "g=v": names == "v", "w": shares, "always_on": np.ones(60)}
    return generator, Groups([by("g"), weight("w")], always_on=True).of_frame(frame), members


def test_scores_of_probabilities(stream):
    generator, membership, members = stream
    chance, labels = generator.random(60), (generator.random(60) < 0.5).astype(float)
    scores = Scores(YES)
    scores.add(membership, chance[:, None], labels)
    table = scores.calibration()["yes"]
    lost = np.where(labels == 1.0, -np.log(chance), -np.log(1.0 - chance))
    for group, inside in members.items():
        assert scores.losses[group] == pytest.approx(float(inside @ lost))
        row, total = table[group], inside.sum()
        assert row["rounds"] == pytest.approx(total)
        assert row["gap"] == pytest.approx(inside @ (chance - labels) / total)
        assert row["brier"] == pytest.approx(inside @ (chance - labels) ** 2 / total)
        assert row["log_loss"] == pytest.approx(inside @ lost / total)


def test_scores_of_classes(stream):
    generator, membership, members = stream
    shares, labels = generator.dirichlet([1, 1, 1], 60), generator.integers(3, size=60)
    scores = Scores(COLOURS)
    scores.add(membership, shares, labels.astype(float))
    lost = -np.log(shares[np.arange(60), labels])
    tables = scores.calibration()
    assert list(tables) == ["red", "green", "blue"]
    for group, inside in members.items():
        assert scores.losses[group] == pytest.approx(float(inside @ lost))
        for k, name in enumerate(tables):
            row, came = tables[name][group], (labels == k).astype(float)
            assert row["mean_label"] == pytest.approx(inside @ came / inside.sum())
            assert row["brier"] == pytest.approx(inside @ (shares[:, k] - came) ** 2 / inside.sum())
            assert row["log_loss"] == pytest.approx(inside @ lost / inside.sum())


def test_who_was_sure_and_wrong(stream):
    _, membership, _ = stream
    labels = np.zeros(60)
    scores = Scores(YES)
    scores.add(membership, np.full((60, 1), 0.25), labels)
    assert said_for_sure("mine", scores) == []
    chance = np.full((60, 1), 0.25)
    chance[7] = 1.0
    labels[9], chance[9] = 1.0, 1e-17
    labels[11], chance[11] = 1.0, 1.0  # sure, and right
    scores.add(membership, chance, labels)
    (said,) = said_for_sure("mine", scores)
    assert said.startswith("mine gave no more than 1e-15 to what came in 2 rows.")
    assert math.isfinite(scores.losses["always_on"])


def test_numbers_have_no_calibration(stream):
    _, membership, _ = stream
    scores = Scores(Task(Square()))
    scores.add(membership, np.ones((60, 1)), np.zeros(60))
    assert scores.losses["always_on"] == 60.0
    assert scores.calibration() == {}
