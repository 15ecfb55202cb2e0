"""``--interval``: the ends in the files, what is counted of them, and the page."""

import json
import math
import tomllib

import pytest

import groupwise as gw
from tests.cli.commands import people, people_file, predictions_of, refused, succeed, write_rows

pytestmark = pytest.mark.usefixtures("two_panels")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A file, the folder of its run, and what the run printed."""
    folder = tmp_path_factory.mktemp("run")
    data = people_file(folder / "people.csv")
    out = folder / "out"
    result = succeed("run", data, "--target", "pay", "--interval", "0.8", "--out", out)
    return data, out, result


def outside(rows):
    """How many labels of every group were outside, and how many rows it has."""
    found: dict[str, list[int]] = {}
    for row in rows:
        ends = [
            float(row[key]) if row[key] else math.nan for key in ("interval_low", "interval_high")
        ]
        missed = not ends[0] <= float(row["label"]) <= ends[1]
        for group in row["groups"].split("; "):
            own = found.setdefault(group, [0, 0])
            own[0] += missed
            own[1] += 1
    return {group: tuple(counts) for group, counts in found.items()}


def test_what_is_counted_is_what_stands_in_the_file(finished):
    _, out, _ = finished
    record = json.loads((out / "regret.json").read_text("utf-8"))
    table = {
        row["group"]: (row["missed"], row["rounds"]) for row in record["coverage"]["groupwise"]
    }
    assert table == outside(predictions_of(out / "predictions.csv"))
    assert record["settings"]["interval"] == 0.8
    assert record["coverage_units"] == {"mean_width": "label"}


def test_page_and_terminal_say_it(finished):
    _, out, result = finished
    assert "Intervals were to cover 80.0" in result.stdout
    page = (out / "report.html").read_text("utf-8")
    assert '<section id="intervals">' in page
    assert "mean width, pay" in page


def test_the_model_goes_on_with_them(finished, tmp_path):
    data, out, _ = finished
    model = gw.load(out / "model.gw")
    assert model.intervals == gw.Intervals(0.8)
    predicted = tmp_path / "more.csv"
    succeed("predict", out / "model.gw", data, "--out", predicted)
    for row in predictions_of(predicted)[:5]:
        assert float(row["interval_low"]) <= float(row["prediction"]) <= float(row["interval_high"])


def test_settings_keep_them(finished, tmp_path):
    data, out, _ = finished
    text = succeed("init", data, "--target", "pay", "--interval", "0.8").stdout
    assert tomllib.loads(text)["interval"] == 0.8
    config = tmp_path / "settings.toml"
    config.write_text(text, "utf-8")
    succeed("run", data, "--config", config, "--out", tmp_path / "again")
    again = (tmp_path / "again" / "predictions.csv").read_bytes()
    assert again == (out / "predictions.csv").read_bytes()


def test_around_logged_predictions(tmp_path):
    rows = [(*row, round(0.8 * row[3] + 1.0, 3)) for row in people()]
    data = write_rows(tmp_path / "logged.csv", ("sex", "city", "age", "pay", "theirs"), rows)
    out = tmp_path / "out"
    options = ("--target", "pay", "--prediction", "theirs", "--interval", "0.8", "--out", out)
    result = succeed("compare", data, *options)
    assert "theirs: Intervals were to cover 80.0" in result.stdout
    record = json.loads((out / "compare.json").read_text("utf-8"))
    for table in record["coverage"].values():
        assert abs(next(row for row in table if row["group"] == "always_on")["error"]) < 0.05
    assert "Intervals around theirs" in (out / "report.html").read_text("utf-8")


def test_refusals(tmp_path):
    data = people_file(tmp_path / "people.csv")
    assert "between 0 and 1" in refused("run", data, "--target", "pay", "--interval", "90")
    assert "numbers" in refused("run", data, "--target", "sex", "--interval", "0.9")
    config = tmp_path / "settings.toml"
    config.write_text('target = "pay"\ninterval = "wide"\n', "utf-8")
    assert "Give a number" in refused("run", data, "--config", config)
