"""``groupwise run`` and ``groupwise init``: the files they write and their numbers."""

import json
import tomllib

import pandas as pd
import pytest

import groupwise as gw
from tests.cli.commands import (
    OUTPUTS,
    invoke,
    people,
    people_file,
    predictions_of,
    refused,
    regret_of,
    succeed,
    write_rows,
)

BANDS = gw.cut("age", [24, 34, 44, 54])
PROPOSED = [{"by": "sex"}, {"by": "city"}, {"cut": "age", "edges": [24, 34, 44, 54]}]
KEYS = ("group", "rounds", "loss", "best_loss", "regret", "certificate", "baseline_regret")

pytestmark = pytest.mark.usefixtures("two_panels")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A file, the folder of its run, and what the run printed."""
    folder = tmp_path_factory.mktemp("run")
    data = people_file(folder / "people.csv")
    result = succeed("run", data, "--target", "pay", "--out", folder / "out")
    return data, folder / "out", result


def test_all_outputs_and_nothing_else(finished):
    _, out, result = finished
    assert {path.name for path in out.iterdir()} == OUTPUTS
    assert str((out / "report.html").resolve()) in result.stdout
    assert "rows/s" in result.stdout
    assert "Worst group: " in result.stdout
    assert result.stdout.startswith("# Proposed from the columns; keep it in a file")


@pytest.mark.slow
def test_a_run_without_intercept(finished, tmp_path):
    data, out, _ = finished
    succeed("run", data, "--target", "pay", "--no-intercept", "--out", tmp_path / "none")
    assert "(intercept)" in gw.load(out / "model.gw").feature_names
    assert "(intercept)" not in gw.load(tmp_path / "none" / "model.gw").feature_names
    config = tmp_path / "settings.toml"
    config.write_text('target = "pay"\nintercept = false\n')
    succeed("run", data, "--config", config, "--out", tmp_path / "same")
    assert regret_of(tmp_path / "none") == regret_of(tmp_path / "same") != regret_of(out)


def test_the_numbers_are_those_of_the_model(finished):
    data, out, _ = finished
    frame = pd.read_csv(data)
    model = gw.Groupwise(
        [gw.by("sex"), gw.by("city"), BANDS],
        features=[{"age": (frame.age.min(), frame.age.max())}, gw.hinges()],
        loss=gw.losses.Square(frame.pay.min(), frame.pay.max()),
    )
    expected = [model.predict_one(row) for row in _learned(model, frame)]
    found = predictions_of(out / "predictions.csv")
    assert [float(row["prediction"]) for row in found] == expected
    assert [int(row["row"]) for row in found] == list(range(1, len(frame) + 1))
    assert [float(row["label"]) for row in found] == frame.pay.tolist()
    groups = found[0]["groups"].split("; ")
    assert [name for name in groups if not name.startswith("age: ")] == [
        f"sex={frame.sex[0]}",
        f"city={frame.city[0]}",
        "always_on",
    ]
    rows = regret_of(out)
    for row in model.regret():
        assert {key: rows[row["group"]][key] for key in KEYS} == {key: row[key] for key in KEYS}


def _learned(model, frame):
    """Rows one by one; each is learned after whoever asked for it has predicted it."""
    for row in frame.to_dict("records"):
        label = row.pop("pay")
        yield row
        model.learn_one(row, label)


def test_the_record_says_what_was_run_on_what(finished):
    import hashlib

    data, out, _ = finished
    record = json.loads((out / "regret.json").read_text("utf-8"))
    assert record["data"]["sha256"] == hashlib.sha256(data.read_bytes()).hexdigest()
    assert record["data"]["rows"] == 300
    assert record["data"]["columns"] == ["sex", "city", "age", "pay"]
    assert record["settings"]["groups"] == PROPOSED
    assert any("range of the label" in text for text in record["looked_ahead"])


def test_the_snapshot_is_one_that_python_loads(finished):
    data, out, _ = finished
    model = gw.load(out / "model.gw")
    assert model.regret()["always_on"]["rounds"] == 300
    frame = pd.read_csv(data)
    row = frame.drop(columns="pay").iloc[0].to_dict()
    assert model.loss.low <= model.predict_one(row) <= model.loss.high


def test_the_printed_proposal_runs_the_same(finished, tmp_path):
    data, out, result = finished
    start = result.stdout.index("target = ")
    config = tmp_path / "config.toml"
    config.write_text(result.stdout[start : result.stdout.index("groups by regret per round") - 3])
    again = succeed("run", data, "--config", config, "--out", tmp_path / "out")
    assert "target = " not in again.stdout
    first, second = (folder / "predictions.csv" for folder in (out, tmp_path / "out"))
    assert first.read_bytes() == second.read_bytes()
    record = json.loads((tmp_path / "out" / "regret.json").read_text("utf-8"))
    assert record["looked_ahead"] == []


def test_init_only_proposes(finished, tmp_path):
    data, *_ = finished
    document = tomllib.loads(succeed("init", data).stdout)
    assert document["target"] == "pay"
    assert document["groups"] == PROPOSED
    assert list(document["features"]) == ["age"]
    result = succeed("init", data, "--target", "age", "--out", tmp_path / "config.toml")
    assert "Wrote" in result.stdout
    assert tomllib.loads((tmp_path / "config.toml").read_text())["target"] == "age"


def test_init_leaves_out_what_would_stop_a_run(tmp_path):
    rows = [("f" if i % 2 else "m", "same", i, i + 0.5) for i in range(40)]
    data = write_rows(tmp_path / "data.csv", ("sex", "constant", "x", "y"), rows)
    text = succeed("init", data, "--target", "y").stdout
    assert "# Column 'constant' is left out: it holds one value only ('same')." in text
    (tmp_path / "config.toml").write_text(text)
    succeed("run", data, "--config", tmp_path / "config.toml", "--out", tmp_path / "out")


def test_options(tmp_path):
    data = people_file(tmp_path / "people.csv")
    succeed(
        *("run", data, "--target", "pay", "--groups", "city & sex, age:30|50, age>=60"),
        *("--features", "age:0|100, city", "--range", "-100,100", "--learner", "forward"),
        *("--aggregator", "specialists", "--out", tmp_path / "out"),
    )
    rows = regret_of(tmp_path / "out")
    assert {"city=north & sex=f", "age: (30, 50]", "age >= 60", "always_on"} <= set(rows)
    settings = json.loads((tmp_path / "out" / "regret.json").read_text("utf-8"))["settings"]
    assert settings["features"] == {"age": [0.0, 100.0], "city": None}
    assert settings["range"] == [-100.0, 100.0]
    assert (settings["learner"], settings["aggregator"]) == ("forward", "specialists")


@pytest.mark.slow
def test_order_sorts_the_rows(tmp_path):
    rows = people(200)
    data = people_file(tmp_path / "people.csv", 200)
    ordered = sorted(range(len(rows)), key=lambda i: rows[i][2])
    by_hand = write_rows(
        tmp_path / "sorted.csv", ("sex", "city", "age", "pay"), [rows[i] for i in ordered]
    )
    ordering = ["--order", "age", "--past", "none"]
    for name, path, extra in (("a", data, ordering), ("b", by_hand, [])):
        succeed("run", path, "--target", "pay", "--out", tmp_path / name, *extra)
    assert regret_of(tmp_path / "a") == regret_of(tmp_path / "b")
    found = predictions_of(tmp_path / "a" / "predictions.csv")
    assert [int(row["row"]) for row in found] == [i + 1 for i in ordered]


@pytest.mark.slow
def test_a_second_run_takes_the_place_of_the_first(tmp_path):
    out = tmp_path / "out"
    (tmp_path / "out").mkdir()
    (out / "mine.txt").write_text("kept")
    for rows in (100, 120):
        data = people_file(tmp_path / "people.csv", rows)
        succeed("run", data, "--target", "pay", "--out", out)
        assert regret_of(out)["always_on"]["rounds"] == rows
    assert {path.name for path in out.iterdir()} == OUTPUTS | {"mine.txt"}


@pytest.mark.slow
def test_many_values_of_a_group_column(tmp_path, monkeypatch):
    monkeypatch.setattr("groupwise.files.run.POINTS", 8)  # curves are not the point here
    rows = [(f"s{i % 10_000}", "ab"[i % 2], i % 7 + i % 3, i % 11) for i in range(20_000)]
    data = write_rows(tmp_path / "shops.csv", ("shop", "kind", "x", "y"), rows)
    out = tmp_path / "out"
    result = succeed("run", data, "--target", "y", "--groups", "shop, kind", "--out", out)
    assert "Column 'shop' has 10,000 values" in result.stderr
    rows = regret_of(out)
    assert len(rows) == 10_003
    assert rows["shop=s77"]["rounds"] == 2
    assert len(json.loads((out / "regret.json").read_text("utf-8"))["settings"]["features"]) == 3


def test_a_text_column_with_too_many_levels_is_left_out(tmp_path):
    rows = [(f"name {i}", "ab"[i % 2], i % 50, i % 11) for i in range(300)]
    data = write_rows(tmp_path / "data.csv", ("name", "kind", "x", "y"), rows)
    result = succeed("run", data, "--target", "y", "--out", tmp_path / "out")
    assert "Column 'name' is left out: it has 300 different texts" in result.stderr
    assert not any(group.startswith("name") for group in regret_of(tmp_path / "out"))


def test_parts_of_the_label_among_the_features_are_pointed_out(tmp_path):
    rows = [("ab"[i % 2], i * 7 % 101, i * 31 % 97, i * 7 % 101 + i * 31 % 97) for i in range(300)]
    data = write_rows(tmp_path / "data.csv", ("kind", "one", "other", "sum"), rows)
    result = succeed("run", data, "--target", "sum", "--out", tmp_path / "out")
    assert "together give 'sum' exactly" in result.stderr
    assert "together give &#39;sum&#39; exactly" in (tmp_path / "out" / "report.html").read_text()


def test_what_goes_wrong_leaves_nothing(tmp_path):
    data = people_file(tmp_path / "people.csv")
    message = refused("run", data, "--target", "pay", "--range", "0,1", "--out", tmp_path / "out")
    assert "outside the range 0,1" in message
    assert {path.name for path in tmp_path.iterdir()} == {"people.csv"}
    (tmp_path / "file").write_text("")
    assert "is a file" in refused("run", data, "--target", "pay", "--out", tmp_path / "file")


def test_help_says_what_there_is():
    text = invoke("run", "--help").stdout
    for option in ("--target", "--groups", "--features", "--order", "--range", "--config", "--out"):
        assert option in text


def test_help_in_80_columns_is_whole_and_names_arguments_plainly():
    from typer.testing import CliRunner

    from groupwise.cli import COMMANDS, app

    def help_of(*command):
        narrow = {"COLUMNS": "80", "TERMINAL_WIDTH": "80"}
        return CliRunner().invoke(app, [*command, "--help"], "", narrow, prog_name="gw").output

    assert "...\n" not in help_of().partition("Commands:")[2]
    for name in COMMANDS:
        assert not {*"<{}"} & {*help_of(name).replace("<=", "")}, name
    usages = {name: help_of(name).splitlines()[0].partition("[OPTIONS]")[2] for name in COMMANDS}
    assert usages["run"] == " DATA..."
    assert usages["predict"] == " MODEL ROWS"
    assert usages["serve"] == ""
    assert usages["token"] == " create|list|revoke [NAME]"
    assert usages["reproduce"] == " [EXPERIMENT...]"


@pytest.mark.slow
def test_algorithm_1_as_published(tmp_path):
    """The preset is that of the library, on columns scaled as ever."""
    data = people_file(tmp_path / "people.csv")
    succeed("run", data, "--target", "pay", "--preset", "paper", "--out", tmp_path / "out")
    model = gw.load(tmp_path / "out" / "model.gw")
    paper = gw.presets.paper()
    assert list(model.learners) == [paper["learner"]]
    for name in ("aggregator", "play", "clip", "intercept", "max_levels"):
        assert getattr(model, name) == paper[name]
    assert not any(" above " in name for name in model.feature_names)
    frame = pd.read_csv(data)
    features = {"age": (frame.age.min(), frame.age.max()), "sex": None, "city": None}
    loss = gw.losses.Square(frame.pay.min(), frame.pay.max())
    same = gw.Groupwise([gw.by("sex"), gw.by("city"), BANDS], features=features, loss=loss, **paper)
    same.replay(frame, "pay")
    assert same.regret()["always_on"]["loss"] == model.regret()["always_on"]["loss"]
    other = tmp_path / "other"
    given = "--preset", "paper", "--learner", "forward"
    succeed("run", data, "--target", "pay", *given, "--out", other)
    assert gw.load(other / "model.gw").learners[0].forward
    assert "There is no preset 'best': paper." in refused("run", data, "--preset", "best")


@pytest.mark.slow
def test_intersections_are_asked_for(tmp_path):
    data = people_file(tmp_path / "people.csv")
    out = tmp_path / "out"
    succeed("run", data, "--target", "pay", "--intersections", "2", "--out", out)
    model = gw.load(out / "model.gw")
    assert model.intersections == 2
    assert any(" & " in name for name in model.group_names)
    text = succeed("init", data, "--target", "pay").stdout
    assert "intersections" not in tomllib.loads(text)
    config = tmp_path / "settings.toml"
    config.write_text(f"intersections = 2\n{text}")
    succeed("run", data, "--config", config, "--out", tmp_path / "same")
    assert regret_of(tmp_path / "same") == regret_of(out)
    assert "Give 2 for every two groups" in refused("run", data, "--intersections", "3")


def test_gaps_neither_hide_the_label_nor_groups(tmp_path):
    """A label and a column of few numbers with a missing cell are found all the same."""
    rows = [
        (city, i % 4 if i % 25 else "", age, pay if i % 30 else "")
        for i, (_, city, age, pay) in enumerate(people())
    ]
    data = write_rows(tmp_path / "gaps.csv", ("city", "children", "age", "pay"), rows)
    found = tomllib.loads(succeed("init", data).stdout)
    assert found["target"] == "pay"
    assert {"by": "children"} in found["groups"]
