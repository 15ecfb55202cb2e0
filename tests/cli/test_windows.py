"""``--windows``: the last rounds of every group in the files and on the page."""

import json
import math
import tomllib

import pytest

import groupwise as gw
from tests.cli.commands import people_file, predictions_of, refused, succeed, write_rows

pytestmark = pytest.mark.usefixtures("two_panels")
LAST = 40


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """A file, and the folder of a run that looks at few rounds."""
    monkeypatch.setattr("groupwise.files.run.RECENT", LAST)
    data, out = people_file(tmp_path / "people.csv"), tmp_path / "out"
    succeed("run", data, "--target", "pay", "--windows", "--out", out)
    return data, out


def test_the_last_rounds_are_those_of_the_file(finished):
    _, out = finished
    record = json.loads((out / "regret.json").read_text("utf-8"))
    lost: dict[str, list[float]] = {}
    for row in predictions_of(out / "predictions.csv"):
        for group in row["groups"].split("; "):
            error = float(row["prediction"]) - float(row["label"])
            lost.setdefault(group, []).append(error**2)
    assert record["last"] == LAST
    assert record["settings"]["windows"] is True
    assert {row["group"] for row in record["recent"]} == set(lost)
    assert any(row["length"] < len(lost[row["group"]]) for row in record["recent"])
    for row in record["recent"]:
        own = lost[row["group"]]
        assert min(LAST, len(own)) <= row["length"] < 4 * LAST
        assert row["rounds"] == row["length"]
        assert row["loss"] == pytest.approx(math.fsum(own[-row["length"] :]), rel=1e-6)
        assert row["regret"] <= row["certificate"]


def test_the_page_has_a_section(finished):
    _, out = finished
    page = (out / "report.html").read_text("utf-8")
    section = page.split('<section id="recently">')[1].split("</section>")[0]
    record = json.loads((out / "regret.json").read_text("utf-8"))
    for row in record["recent"]:
        assert row["status"] in section
        assert f">{row['length']}<" in section
    assert "error, pay" in section


def test_a_snapshot_is_asked_for_the_last_rounds(finished):
    _, out = finished
    record = json.loads((out / "regret.json").read_text("utf-8"))
    told = json.loads(succeed("regret", out / "model.gw", "--last", LAST, "--json").stdout)
    assert told["last"] == LAST
    lengths = {row["group"]: row["length"] for row in record["recent"]}
    assert {row["group"]: row["length"] for row in told["rows"]} == lengths
    shown = succeed("regret", out / "model.gw", "--last", LAST).stdout
    assert f"covers the last {LAST} of a group" in " ".join(shown.split())
    assert told["a_priori"] == "a_priori is not known for stretches."
    assert "a priori is not known for stretches." in shown  # as the heading of its column


def test_the_model_goes_on_with_them(finished, tmp_path):
    _, out = finished
    record = json.loads((out / "regret.json").read_text("utf-8"))
    model = gw.load(out / "model.gw")
    assert model.windows == gw.Windows()
    assert model.regret(last=LAST).rows == record["recent"]
    rows = [("f", "west", 30, 12.5), ("m", "north", 40, 500.0)] * 20
    more = write_rows(tmp_path / "more.csv", ("sex", "city", "age", "pay"), rows)
    succeed("learn", out / "model.gw", more, "--widen")
    again = gw.load(out / "model.gw").regret(last=LAST)
    assert again.settled == 340
    assert again["always_on"]["length"] >= LAST
    for row in again:
        assert row["regret"] <= row["certificate"]


def test_settings_keep_them(finished, tmp_path):
    data, out = finished
    text = succeed("init", data, "--target", "pay", "--windows").stdout
    assert tomllib.loads(text)["windows"] is True
    config = tmp_path / "settings.toml"
    config.write_text(text, "utf-8")
    succeed("run", data, "--config", config, "--out", tmp_path / "again")
    again = (tmp_path / "again" / "predictions.csv").read_bytes()
    assert again == (out / "predictions.csv").read_bytes()


def test_without_them_nothing_is_said_of_the_last_rounds(tmp_path):
    data, out = people_file(tmp_path / "people.csv", 60), tmp_path / "out"
    succeed("run", data, "--target", "pay", "--out", out)
    assert "recent" not in json.loads((out / "regret.json").read_text("utf-8"))
    assert "recently" not in (out / "report.html").read_text("utf-8")


def test_refusals(tmp_path):
    data = people_file(tmp_path / "people.csv")
    assert "numbers" in refused("run", data, "--target", "sex", "--windows")
    config = tmp_path / "settings.toml"
    config.write_text('target = "pay"\nwindows = "yes"\n', "utf-8")
    assert "windows" in refused("run", data, "--config", config)
