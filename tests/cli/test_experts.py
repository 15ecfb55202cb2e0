"""``--expert``: logged predictions as an expert of every group, from files to snapshots."""

import json

import numpy as np
import pytest

import groupwise as gw
from tests.cli.commands import (
    people,
    predictions_of,
    refused,
    regret_of,
    succeed,
    write_rows,
)

HEADER = ("sex", "city", "age", "pay", "flat", "fair")
OPTIONS = ("--target", "pay", "--range", "-60,90", "--groups", "city, sex")

pytestmark = pytest.mark.usefixtures("two_panels")


def rows_of(count=200, seed=0):
    """People with two models' predictions: a poor one that is beyond the range, and a good one."""
    return [
        (*row, 120.0, round(row[3] + 3 * (-1) ** i, 3)) for i, row in enumerate(people(count, seed))
    ]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A file, the folder of its run, and what the run printed."""
    folder = tmp_path_factory.mktemp("experts")
    data = write_rows(folder / "data.csv", HEADER, rows_of())
    experts = ("--expert", "fair", "--expert", "flat")
    return folder, data, succeed("run", data, *OPTIONS, *experts, "--out", folder / "out")


def test_the_figures_are_those_of_the_model(finished):
    folder, _, _ = finished
    model = gw.load(folder / "out" / "model.gw")
    assert model.experts == ("fair", "flat")
    assert not {"fair", "flat"} & set(model.feature_names)
    found, rows = regret_of(folder / "out"), rows_of()
    assert list(found.values()) == json.loads(json.dumps(model.regret().rows))
    columns = dict(zip(HEADER, zip(*rows, strict=True), strict=True))
    labels = np.array(columns["pay"])
    for group, row in found.items():
        column, _, value = group.partition("=")
        inside = np.array(columns[column]) == value if value else np.ones(len(rows), bool)
        for name in ("fair", "flat"):
            error = (np.clip(columns[name], -60, 90) - labels)[inside]
            assert row[f"loss of {name}"] == pytest.approx(float(error @ error))
            excess = row["loss"] - row[f"loss of {name}"]
            assert excess <= row[f"certificate against {name}"] + 1e-6
    settings = json.loads((folder / "out" / "regret.json").read_text("utf-8"))["settings"]
    assert settings["experts"] == ["fair", "flat"]


def test_what_is_said(finished):
    folder, _, result = finished
    assert "experts = [" in result.stdout
    assert "Expert fair is typically off by" in result.stdout
    assert "On no group is groupwise noticeably worse than flat." in result.stdout
    page = (folder / "out" / "report.html").read_text("utf-8")
    for text in ("Expert fair is typically", "against fair", "against flat", "which are an expert"):
        assert text in page
    assert "Experts" in page


def test_settings_ask_for_the_same(finished, tmp_path):
    folder, data, _ = finished
    text = succeed("init", data, *OPTIONS, "--expert", "fair", "--expert", "flat").stdout
    (tmp_path / "a.toml").write_text(text)
    succeed("run", data, "--config", tmp_path / "a.toml", "--out", tmp_path / "out")
    assert regret_of(tmp_path / "out") == regret_of(folder / "out")
    features = text[text.index("[features]") : text.index("[[groups]]")]
    assert "fair" not in features
    assert "flat" not in text[text.index("[features]") :]


@pytest.mark.slow
def test_a_snapshot_goes_on_with_the_columns_under_whatever_name(finished, tmp_path):
    _, data, _ = finished
    rows = rows_of()
    write_rows(tmp_path / "first.csv", HEADER, rows[:120])
    renamed = (*HEADER[:4], "b", "a")
    write_rows(tmp_path / "second.csv", renamed, rows[120:])
    experts = ("--expert", "fair", "--expert", "flat")
    ranges = ("--features", "age:18|64")
    whole = ("run", data, *OPTIONS, *experts, *ranges, "--out", tmp_path / "whole")
    succeed(*whole)
    half = tmp_path / "half"
    succeed("run", tmp_path / "first.csv", *OPTIONS, *experts, *ranges, "--out", half)
    here = ("--expert", "a", "--expert", "b")
    said = refused("learn", half / "model.gw", tmp_path / "second.csv")
    assert "'fair'" in said
    said = refused("learn", half / "model.gw", tmp_path / "second.csv", "--expert", "a")
    assert "The model has 2 experts, 'fair', 'flat': give --expert once for each" in said
    predicted = tmp_path / "predicted.csv"
    model = half / "model.gw"
    succeed("predict", model, tmp_path / "second.csv", *here, "--out", predicted)
    loaded = gw.load(model)
    for row, values in zip(predictions_of(predicted), rows[120:], strict=True):
        given = dict(zip(HEADER, values, strict=True))
        assert float(row["prediction"]) == loaded.predict_one(given)
    succeed("learn", model, tmp_path / "second.csv", *here)
    rows = json.loads(succeed("regret", model, "--json").stdout)["rows"]
    assert {row["group"]: row for row in rows} == regret_of(tmp_path / "whole")
    shown = succeed("regret", model).stdout
    assert "against" in shown
    succeed("predict", model, data)  # and the names of the run are still known


def test_an_audit_may_mix_what_it_audits(finished, tmp_path):
    _, data, _ = finished
    options = ("--prediction", "fair", "--expert", "fair", "--expert", "flat")
    result = succeed("compare", data, *OPTIONS, *options, "--out", tmp_path / "out")
    assert "Worst group of fair" in result.stdout
    assert "Expert flat is typically off by" in result.stdout
    record = json.loads((tmp_path / "out" / "compare.json").read_text("utf-8"))
    assert record["predictions"] == ["fair"]
    for row in record["rows"]:
        assert row["predictions"]["fair"]["loss"] == pytest.approx(row["loss of fair"])
        assert row["loss"] - row["loss of fair"] <= row["certificate against fair"] + 1e-6
    alone = succeed("compare", data, *OPTIONS, "--prediction", "fair", "--drop", "flat").stdout
    assert alone != result.stdout


def test_probabilities(tmp_path):
    generator = np.random.default_rng(2)
    chances = generator.random(160).round(3)
    rows = [
        ("ab"[i % 2], round(float(generator.normal()), 2), p, ["no", "yes"][generator.random() < p])
        for i, p in enumerate(chances.tolist())
    ]
    data = write_rows(tmp_path / "d.csv", ("g", "u", "mine:yes", "repaid"), rows)
    options = ("--target", "repaid", "--expert", "mine")
    result = succeed("run", data, *options, "--out", tmp_path / "out")
    assert "Expert mine:yes has a mean log loss of" in result.stdout
    found = regret_of(tmp_path / "out")["always_on"]
    wanted = -sum(np.log(p if y == "yes" else 1 - p) for _, _, p, y in rows)
    assert found["loss of mine:yes"] == pytest.approx(wanted)
    assert found["loss"] <= wanted + found["certificate against mine:yes"] + 1e-9


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["none"], "no column 'none' for predictions"),
        (["pay"], "'pay' is the label itself"),
        (["city"], "which is no number"),
        (["flat", "flat"], "named twice with --expert"),
        (["flat", "fair", "age", "pay"], "at most 3 models at a time with --expert"),
    ],
)
def test_refused(finished, columns, message):
    folder, data, _ = finished
    options = [word for column in columns for word in ("--expert", column)]
    assert message in refused("run", data, *options, *OPTIONS, "--out", folder / "no")


def test_experts_are_for_numbers_and_for_yes_or_no(finished, tmp_path):
    folder, data, _ = finished
    said = refused("run", data, "--target", "city", "--expert", "fair", "--out", folder / "no")
    assert "An expert is one column, and 'city' has 3 classes" in said
    succeed("run", data, *OPTIONS, "--drop", "flat, fair", "--out", tmp_path / "plain")
    said = refused("learn", tmp_path / "plain" / "model.gw", data, "--expert", "fair")
    assert "The model has no experts: leave out --expert" in said
    (tmp_path / "bad.toml").write_text('target = "pay"\nexperts = "fair"\n')
    said = refused("run", data, "--config", tmp_path / "bad.toml", "--out", folder / "no")
    assert "experts is a list of column names" in said


def test_a_row_without_a_prediction_is_named(finished, tmp_path):
    folder, _, _ = finished
    rows = [list(row) for row in rows_of(20)]
    rows[7][5] = ""
    data = write_rows(tmp_path / "gaps.csv", HEADER, rows)
    options = (*OPTIONS, "--expert", "fair")
    assert "fair" in refused("run", data, *options, "--out", tmp_path / "no")
    said = refused("learn", folder / "out" / "model.gw", data, "--out", tmp_path / "no.gw")
    assert "Row 8 of" in said
    assert "Field 'fair' is None" in said or "Field 'fair' is nan" in said
