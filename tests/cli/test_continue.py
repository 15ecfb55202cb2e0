"""``regret``, ``predict`` and ``learn``: what a snapshot is good for afterwards."""

import json
import subprocess
import sys
import tomllib

import pytest

import groupwise as gw
from groupwise.writing import alone
from tests.cli.commands import (
    people,
    people_file,
    predictions_of,
    refused,
    regret_of,
    succeed,
    write_rows,
)

HEADER = ("sex", "city", "age", "pay")
CONFIG = """
target = "pay"
range = [-60, 90]
[features]
age = [18, 65]
[[groups]]
by = "sex"
[[groups]]
by = "city"
"""

pytestmark = pytest.mark.usefixtures("two_panels")


@pytest.fixture
def halves(tmp_path):
    """A file, its halves, and a run over the first half."""
    rows = people(200)
    (tmp_path / "config.toml").write_text(CONFIG)
    for name, part in (("all", rows), ("first", rows[:100]), ("second", rows[100:])):
        write_rows(tmp_path / f"{name}.csv", HEADER, part)
    options = ("--config", tmp_path / "config.toml", "--out")
    succeed("run", tmp_path / "first.csv", *options, tmp_path / "half")
    return tmp_path


def test_learn_goes_on_bit_for_bit(halves):
    succeed("run", halves / "all.csv", "--config", halves / "config.toml", "--out", halves / "out")
    snapshot = halves / "half" / "model.gw"
    result = succeed("learn", snapshot, halves / "second.csv")
    assert "100 rows learned, 200 in all" in result.stdout
    rows = json.loads(succeed("regret", snapshot, "--json").stdout)["rows"]
    assert {row["group"]: row for row in rows} == regret_of(halves / "out")
    later = succeed("predict", snapshot, halves / "first.csv").stdout
    assert later == succeed("predict", halves / "out" / "model.gw", halves / "first.csv").stdout


def test_a_dash_is_standard_output(halves, monkeypatch):
    monkeypatch.chdir(halves)
    snapshot = halves / "half" / "model.gw"
    told = succeed("predict", snapshot, "second.csv").stdout
    result = succeed("predict", snapshot, "second.csv", "--out", "-")
    assert (result.stdout, result.stderr) == (told, "")
    assert tomllib.loads(succeed("init", "second.csv", "--out", "-").stdout)["target"] == "pay"
    assert "give --out a name" in refused("learn", snapshot, "second.csv", "--out", "-")
    assert not (halves / "-").exists()


def test_predict_changes_nothing_and_needs_no_label(halves):
    snapshot = halves / "half" / "model.gw"
    before = snapshot.read_bytes()
    rows = [row[:3] for row in people(5, seed=1)]
    write_rows(halves / "new.csv", HEADER[:3], rows)
    result = succeed("predict", snapshot, halves / "new.csv", "--out", halves / "predicted.csv")
    assert "5 predictions" in result.stdout
    assert snapshot.read_bytes() == before
    model = gw.load(snapshot)
    found = predictions_of(halves / "predicted.csv")
    for row, values in zip(found, rows, strict=True):
        expected = model.predict_one(dict(zip(HEADER, values, strict=False)))
        assert float(row["prediction"]) == expected
        assert row["groups"] == f"sex={values[0]}; city={values[1]}; always_on"


def test_learn_elsewhere_leaves_the_old_snapshot(halves):
    snapshot = halves / "half" / "model.gw"
    before = snapshot.read_bytes()
    succeed("learn", snapshot, halves / "second.csv", "--out", halves / "new.gw")
    assert snapshot.read_bytes() == before
    assert gw.load(halves / "new.gw").regret().settled == 200


def test_what_goes_wrong_leaves_the_old_snapshot(halves):
    snapshot = halves / "half" / "model.gw"
    before = snapshot.read_bytes()
    bad = write_rows(halves / "bad.csv", HEADER, [*people(10), ("f", "north", 30, 1e6)])
    message = refused("learn", snapshot, bad)
    assert "Row 11 of" in message
    assert "outside the range -60 to 90" in message
    assert "--widen" in message
    assert "--skip-bad" in message
    text = write_rows(halves / "text.csv", HEADER, [("f", "north", "old", 3)])
    assert "Row 1 of" in refused("learn", snapshot, text)
    assert "'age'" in refused("predict", snapshot, text)
    absent = write_rows(halves / "absent.csv", HEADER[1:], [row[1:] for row in people(3)])
    message = refused("learn", snapshot, absent)
    assert "no column 'sex' that the model reads" in message
    assert "It has: 'city', 'age', 'pay'." in message
    message = refused(
        "learn", snapshot, write_rows(halves / "new.csv", HEADER[:3], [("f", "n", 3)])
    )
    assert "no column 'pay' for the label. It has: 'sex', 'city', 'age'." in message
    assert snapshot.read_bytes() == before
    assert {path.name for path in snapshot.parent.iterdir()} >= {"model.gw"}
    assert not [path for path in snapshot.parent.iterdir() if path.name.startswith(".")]


def test_a_snapshot_made_in_python(tmp_path):
    model = gw.Groupwise([gw.by("sex")], loss=gw.losses.Square(-60, 90))
    model.learn_one({"sex": "f", "city": "north", "age": 30}, 5)
    model.save(tmp_path / "model.gw")
    data = people_file(tmp_path / "people.csv", 20)
    assert "Give --target" in refused("learn", tmp_path / "model.gw", data)
    succeed("learn", tmp_path / "model.gw", data, "--target", "pay")
    for *values, label in people(20):
        model.learn_one(dict(zip(HEADER, values, strict=False)), label)
    assert gw.load(tmp_path / "model.gw").regret().rows == model.regret().rows


def test_no_snapshot(tmp_path):
    data = people_file(tmp_path / "people.csv", 20)
    assert "not a groupwise snapshot" in refused("regret", data)
    assert "Cannot read" in refused("predict", tmp_path / "none.gw", data)
    assert "Cannot read" in refused("learn", tmp_path / "none.gw", data)


@pytest.mark.slow
def test_two_that_learn_into_one_file_lose_nothing(tmp_path):
    """Two processes, which start while a third has the file."""
    options = ("--target", "pay", "--range=-100,100", "--groups", "city")
    few = people_file(tmp_path / "few.csv", 50)
    succeed("run", few, *options, "--out", tmp_path / "out")
    snapshot = tmp_path / "out" / "model.gw"
    data = [people_file(tmp_path / f"{seed}.csv", 2975, seed) for seed in (1, 2)]
    learn = [sys.executable, "-m", "groupwise", "learn"]
    with alone(snapshot, lambda: None):
        assert "Another process is learning into" in refused("learn", snapshot, few, "--no-wait")
        both = [
            subprocess.Popen([*learn, snapshot, one], stderr=subprocess.PIPE, text=True)
            for one in data
        ]
        for process in both:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert f"waiting for {snapshot}, which another process is learning into" in said
    assert [process.wait() for process in both] == [0, 0]
    for process in both:
        process.communicate()
    assert gw.load(snapshot).regret().settled == 6_000
    assert not [path for path in snapshot.parent.iterdir() if path.name.startswith(".")]


def test_a_model_in_a_wrapper_is_for_python(tmp_path):
    gw.PayForFeedback(gw.Groupwise([gw.by("sex")]), horizon=50).save(tmp_path / "model.gw")
    assert "groupwise.load(path) in Python" in refused("regret", tmp_path / "model.gw")
