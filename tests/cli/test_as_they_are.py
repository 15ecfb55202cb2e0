"""Rows without labels, with gaps, or bad; labels that outgrow their range."""

import json
import re

import numpy as np
import pytest

import groupwise as gw
from tests.cli.commands import people, predictions_of, refused, regret_of, succeed, write_rows

HEADER = ("sex", "city", "age", "pay")


@pytest.fixture(autouse=True)
def no_figures(monkeypatch):
    """Pages take longest, and other tests look at them."""
    monkeypatch.setattr("groupwise.files.run.run_page", lambda finished: "<p>")


def test_rows_without_a_label_are_predicted_in_their_place(tmp_path):
    rows = people(120)
    gone = {0, 7, 8, 50, 119}
    with_gaps = [(*row[:3], "" if t in gone else row[3]) for t, row in enumerate(rows)]
    data = write_rows(tmp_path / "d.csv", HEADER, with_gaps)
    options = "--groups", "sex, city", "--range", "-90,99"
    result = succeed("run", data, "--target", "pay", "--out", tmp_path / "out", *options)
    assert "5 rows have no label and taught nothing" in result.stderr
    found = predictions_of(tmp_path / "out" / "predictions.csv")
    ages = [row[2] for row in rows]
    model = gw.Groupwise(
        [gw.by("sex"), gw.by("city")],
        features=[{"age": (min(ages), max(ages))}, gw.hinges()],
        loss=gw.losses.Square(-90, 99),
    )
    for t, (*values, label) in enumerate(rows):
        row = dict(zip(HEADER, values, strict=False))
        assert float(found[t]["prediction"]) == model.predict_one(row)
        assert (found[t]["label"] == "") == (t in gone)
        if t not in gone:
            model.learn_one(row, label)
    assert regret_of(tmp_path / "out")["always_on"]["rounds"] == 115
    assert "5 rows" in succeed("learn", tmp_path / "out" / "model.gw", data).stderr


def test_rows_with_gaps(tmp_path):
    rows = [(*row[:2], "" if t % 9 == 0 else row[2], row[3]) for t, row in enumerate(people(90))]
    data = write_rows(tmp_path / "d.csv", HEADER, rows)
    run = "run", data, "--target", "pay", "--out", tmp_path / "out"
    result = succeed(*run)
    assert "'age' has 10 missing values, the first in row 1" in result.stderr
    assert "age missing" in gw.load(tmp_path / "out" / "model.gw").feature_names
    assert "'age' has 10 missing values" in refused(*run, "--missing", "error")
    assert "none of error, indicator, drop" in refused(*run, "--missing", "mean")
    result = succeed(*run, "--missing", "drop")
    assert "10 rows were left out" in result.stderr
    kept = [int(row["row"]) for row in predictions_of(tmp_path / "out" / "predictions.csv")]
    assert kept == [t + 1 for t in range(90) if t % 9]
    learned = succeed("learn", tmp_path / "out" / "model.gw", data)
    assert "80 rows learned, 160 in all" in learned.stdout


def test_bad_rows_are_named_and_skipped(tmp_path):
    rows = [[*row] for row in people(200)]
    good = write_rows(tmp_path / "good.csv", HEADER, [*rows[:9], *rows[12:]])
    rows[9][2], rows[11][3] = "old", "much"
    bad = write_rows(tmp_path / "bad.csv", HEADER, rows)
    lines = bad.read_text().splitlines()
    lines[11] += ",1"  # row 11, the header aside
    bad.write_text("\n".join(lines))
    run = "--target", "pay", "--out"
    said = succeed("run", bad, *run, tmp_path / "out", "--skip-bad").stderr
    assert re.search(r"Row 10 of .* was skipped: 'old' stands in the column 'age'", said)
    assert re.search(r"Row 11 of .* was skipped: it has 5 cells", said)
    assert re.search(r"Row 12 of .* was skipped: 'much' stands in the column 'pay'", said)
    succeed("run", good, *run, tmp_path / "same")
    found, other = (predictions_of(tmp_path / one / "predictions.csv") for one in ("out", "same"))
    assert [row["prediction"] for row in found] == [row["prediction"] for row in other]
    assert [int(row["row"]) for row in found] == [*range(1, 10), *range(13, 201)]
    assert "Row 11 of" in refused("run", bad, *run, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_next_months_file(tmp_path):
    first = write_rows(tmp_path / "first.csv", HEADER, people(150))
    succeed("run", first, "--target", "pay", "--out", tmp_path / "out")
    snapshot = tmp_path / "out" / "model.gw"
    rows = [(*row[:3], 3.0 * row[3]) for row in people(150, seed=1)]
    second = write_rows(tmp_path / "second.csv", HEADER, rows)
    said = refused("learn", snapshot, second)
    assert "outside the range" in said
    assert "--widen" in said
    assert "losses." not in said
    skipped = succeed("learn", snapshot, second, "--skip-bad", "--out", tmp_path / "some.gw")
    assert "was skipped: the label is" in skipped.stderr
    result = succeed("learn", snapshot, second, "--widen")
    assert "150 rows learned, 300 in all" in result.stdout
    assert "certificates hold as before" in result.stderr
    labels = np.array([row[3] for row in rows])
    assert gw.load(snapshot).loss.reach == (labels.min(), labels.max())
    record = json.loads(succeed("regret", snapshot, "--json").stdout)
    for row in record["rows"]:
        assert row["status"] != "void"
        assert row["regret"] <= row["certificate"] + 1e-9
    assert "Predicted" not in refused("learn", snapshot, second, "--widen", "--target", "city")
