"""Segments by command: files that are cut, what that will cost, audits, a model for every value."""

import json

import polars as pl
import pytest

import groupwise as gw
from tests.cli.commands import people_file, refused, succeed

pytestmark = pytest.mark.usefixtures("two_panels")


@pytest.fixture
def data(tmp_path):
    return people_file(tmp_path / "people.csv")


@pytest.mark.slow
@pytest.mark.parametrize("at", ["stream", "segment"])
def test_a_run(data, tmp_path, at):
    more = "--segment", 100, "--aggregators-at", at, "--jobs", 2
    said = succeed("run", data, "--target", "pay", *more, "--out", tmp_path / "out").stdout
    assert "300 rows in" in said
    names = {one.name for one in (tmp_path / "out").iterdir()}
    assert names == {"predictions", "regret.json", "model.gw", "report.html"}
    assert pl.read_parquet(tmp_path / "out" / "predictions").height == 300
    record = json.loads((tmp_path / "out" / "regret.json").read_text("utf-8"))
    for row in record["rows"]:
        assert row["regret"] <= row["certificate"]
        assert (row["a_priori"] is None) == (at == "segment")
    model = gw.load(tmp_path / "out" / "model.gw")
    assert model.issued == 300
    assert ("begun anew along the way" in str(model.regret())) == (at == "segment")


def test_an_estimate_writes_nothing(data, tmp_path):
    more = "--no-hinges", "--segment", 100, "--estimate", "--jobs", 2
    said = succeed("run", data, "--target", "pay", *more, "--out", tmp_path / "out").stdout
    told = said.splitlines()[-7:]
    assert told[0] == "300 rows in 3 segments, on 2 workers"
    words = ["core hours", "time", "memory", "state", "bytes moved", "bottleneck"]
    assert [line[:13].strip() for line in told[1:]] == words
    assert [one.name for one in tmp_path.iterdir()] == ["people.csv"]


@pytest.mark.slow
def test_a_model_for_every_value(data, tmp_path):
    said = succeed("run", data, "--target", "pay", "--by", "sex", "--out", tmp_path / "out").stdout
    about = json.loads((tmp_path / "out" / "by.json").read_text("utf-8"))
    rows = {value: one["rows"] for value, one in about["values"].items()}
    assert (sum(rows.values()), {*rows}) == (300, {"f", "m"})
    for value, one in about["values"].items():
        assert f"{value}: {rows[value]} rows, mean loss" in said
        model = gw.load(tmp_path / "out" / one["folder"] / "model.gw")
        assert model.issued == rows[value]


def test_an_audit(data, tmp_path):
    more = "--target", "pay", "--segment", 70, "--out", tmp_path / "out"
    said = succeed("compare", data, "--prediction", "age", *more).stdout
    assert "300 rows; regret of 'age' is against the best linear model in hindsight." in said
    rows = json.loads((tmp_path / "out" / "compare.json").read_text("utf-8"))["rows"]["age"]
    frame = pl.read_csv(data)
    lost = float(((frame["age"] - frame["pay"]) ** 2).sum())
    assert {row["group"]: row for row in rows}["always_on"]["loss"] == pytest.approx(lost)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--engine", "spark", "--segment", 9], "no engine 'spark'. Choose local, ray, or"),
        (["--engine", "ray"], "--engine ray needs --segment ROWS, or --by COLUMN"),
        (["--estimate"], "--estimate needs --segment ROWS"),
        (["--aggregators-at", "segment"], "--aggregators-at segment needs --segment ROWS"),
        (["--aggregators-at", "month", "--segment", 9], "stream or segment, not 'month'"),
        (["--by", "sex", "--segment", 9], "--by runs every value whole: leave out --segment"),
        (["--segment", 0], "--segment"),
        (["--segment", 9, "--windows"], "Leave windows or segment out"),
        (["--segment", 9, "--order", "age"], "Sort the files first"),
        (["--segment", 9, "--task", "probability", "--target", "sex"], "Leave segment out"),
        (["--segment", 9, "--target", "city"], "Logistic cannot begin a segment"),
        (["--segment", 9, "--by", "sex", "--estimate"], "leave out --segment and --estimate"),
    ],
)
def test_what_does_not_go_together(data, tmp_path, options, said):
    """It is refused by name, with what to do instead, and leaves nothing."""
    target = [] if "--target" in options else ["--target", "pay"]
    assert said in refused("run", data, *target, *options, "--out", tmp_path / "out")
    assert [one.name for one in tmp_path.iterdir()] == ["people.csv"]


@pytest.mark.parametrize("command", ["run", "compare"])
def test_a_cluster_that_does_not_answer(data, tmp_path, command):
    pytest.importorskip("ray")
    more = ["--prediction", "age"] if command == "compare" else []
    address = "ray://127.0.0.1:9"
    asked = "--segment", 50, "--engine", address, "--out", tmp_path / "out"
    line = refused(command, data, "--target", "pay", *more, *asked)
    assert f"No Ray cluster answers at {address}" in line
    assert [one.name for one in tmp_path.iterdir()] == ["people.csv"]


def test_an_audit_of_probabilities_is_refused(data):
    pl.read_csv(data).with_columns(theirs=0.5).write_csv(data)
    asked = "--target", "sex", "--prediction", "theirs", "--segment", 50
    assert "leave out --segment to compare probabilities" in refused("compare", data, *asked)
