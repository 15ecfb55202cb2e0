"""``groupwise compare``: the regret of logged predictions, checked by hand."""

import json

import numpy as np
import pytest

from tests.cli.commands import people, refused, regret_of, succeed, write_rows

HEADER = ("sex", "city", "age", "pay", "flat", "fair")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A file with two models' predictions, and the folder of its audit."""
    folder = tmp_path_factory.mktemp("compare")
    rows = [(*row, 10.0, round(row[3] + (-1) ** i, 3)) for i, row in enumerate(people(300))]
    data = write_rows(folder / "data.csv", HEADER, rows)
    options = ("--target", "pay", "--groups", "city, sex")
    models = ("--prediction", "flat", "--prediction", "fair")
    result = succeed("compare", data, *models, *options, "--out", folder / "out")
    drop = ("--drop", "flat, fair")
    succeed("run", data, *options, *drop, "--out", folder / "run")
    return folder, rows, result


def test_every_figure_is_what_it_should_be(compared):
    folder, rows, _ = compared
    record = json.loads((folder / "out" / "compare.json").read_text("utf-8"))
    ours = regret_of(folder / "run")
    assert {row["group"] for row in record["rows"]} == set(ours)
    columns = list(zip(*rows, strict=True))
    labels = np.array(columns[3])
    for row in record["rows"]:
        group = row["group"]
        assert {key: row[key] for key in ours[group]} == ours[group]
        column, _, value = group.partition("=")
        inside = np.ones(len(rows), bool)
        if value:
            inside = np.array(columns[HEADER.index(column)]) == value
        for name in ("flat", "fair"):
            error = (np.array(columns[HEADER.index(name)]) - labels)[inside]
            assert row["predictions"][name]["loss"] == pytest.approx(float(error @ error))
            expected = float(error @ error) - row["best_loss"]
            assert row["predictions"][name]["regret"] == pytest.approx(expected)


def test_what_is_said(compared):
    folder, _, result = compared
    assert "Worst group of flat: city=" in result.stdout
    page = (folder / "out" / "report.html").read_text("utf-8")
    for text in ("Worst group of flat", "best in hindsight", "single model", "certificate"):
        assert text in page


def test_without_a_folder_nothing_is_written(compared):
    folder, *_ = compared
    before = {path.name for path in folder.iterdir()}
    succeed("compare", folder / "data.csv", "--prediction", "flat", "--target", "pay")
    assert {path.name for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["none"], "no column 'none' for predictions"),
        (["pay"], "'pay' is the label itself"),
        (["city"], "which is no number"),
        (["flat", "flat"], "named twice"),
    ],
)
def test_refused(compared, columns, message):
    folder, *_ = compared
    options = [word for column in columns for word in ("--prediction", column)]
    said = refused("compare", folder / "data.csv", *options, "--target", "pay", "--groups", "sex")
    assert message in said
