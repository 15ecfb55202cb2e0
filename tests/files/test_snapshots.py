"""Snapshots that say how their rows are read."""

import pytest

import groupwise as gw
from groupwise.errors import DataError, SnapshotError
from groupwise.files.snapshots import Further, Reading, learn, load, predict, save
from groupwise.files.source import opened
from tests.cli.commands import people, people_file, predictions_of, write_rows

KINDS = {"sex": "text", "city": "text", "age": "number", "pay": "number"}


@pytest.fixture
def saved(tmp_path):
    """A model that has seen one row, saved with how its rows are read."""
    model = gw.Groupwise([gw.by("sex")], loss=gw.losses.Square(-60, 90))
    model.learn_one({"sex": "f", "city": "north", "age": 30}, 5)
    save(model, tmp_path / "model.gw", Reading("pay", KINDS))
    return model, tmp_path / "model.gw"


def test_what_was_said_comes_back(saved, tmp_path):
    model, path = saved
    again, reading = load(path)
    assert reading == Reading("pay", KINDS)
    assert again.regret().rows == model.regret().rows
    model.save(tmp_path / "plain.gw")
    assert load(tmp_path / "plain.gw")[1] == Reading(None, None)


@pytest.mark.parametrize("table", [{"target": 3}, {"kinds": ["a"]}, {"kinds": {"a": "date"}}])
def test_what_cannot_be_read_is_damaged(table, saved):
    model, path = saved
    model.save(path, table=table)
    with pytest.raises(SnapshotError, match="is damaged"):
        load(path)


@pytest.mark.parametrize("known", [True, False])
def test_rows_are_learned_as_one_by_one(known, saved, tmp_path):
    model, path = saved
    if not known:
        model.save(path)
    with opened(str(people_file(tmp_path / "people.csv", 30))) as source:
        learned = learn(path, source, tmp_path / "new.gw", Further("pay"))
    assert (learned.rows, learned.settled) == (30, 31)
    squares = 0.0
    for *values, label in people(30):
        row = dict(zip(KINDS, values, strict=False))
        squares += (model.predict_one(row) - label) ** 2
        model.learn_one(row, label)
    again, reading = load(tmp_path / "new.gw")
    assert again.regret().rows == model.regret().rows
    assert reading == Reading("pay", KINDS)
    assert learned.loss == pytest.approx(squares / 30)
    assert "30 rows learned, 31 in all; their typical error is" in learned.told


def test_predictions_name_the_row_that_is_refused(saved, tmp_path):
    _, path = saved
    rows = [row[:3] for row in people(3)]
    with opened(str(write_rows(tmp_path / "rows.csv", list(KINDS)[:3], rows))) as source:
        assert predict(path, source, tmp_path / "p.csv", Further()) == (3, [])
    assert len(predictions_of(tmp_path / "p.csv")) == 3
    rows[1] = ("f", "north", "")
    write_rows(tmp_path / "rows.csv", list(KINDS)[:3], rows)
    refused = pytest.raises(DataError, match=r"Row 2 of .*'age'")
    with opened(str(tmp_path / "rows.csv")) as source, refused:
        predict(path, source, tmp_path / "q.csv", Further())
    assert not (tmp_path / "q.csv").exists()
