"""Every file of the zoo gives a result, or one clear line and exit code 2; nothing by halves."""

import re

import pytest

from tests.cli.commands import OUTPUTS, predictions_of, refused, succeed
from tests.few import few
from tests.files.zoo import ANIMALS, BAD, KINDS, ROWS, csv, excel, parquet, sqlite


@pytest.fixture(autouse=True)
def no_figures(monkeypatch):
    """Pages and curves take longest, and other tests look at them."""
    monkeypatch.setattr("groupwise.files.run.points", lambda groups, features: 2)
    monkeypatch.setattr("groupwise.files.run.run_page", lambda finished: "<p>")


def in_turn(names, quick):
    """So many of the names, from all over, before the others."""
    step = max(1, len(names) // quick)
    return [*names[::step], *(name for place, name in enumerate(names) if place % step)]


GOOD = [name for name in ANIMALS if name not in BAD]


def test_the_zoo_is_large():
    assert len(ANIMALS) >= 150


@pytest.mark.parametrize("name", few(in_turn(GOOD, 20), 20))
def test_a_result(name, tmp_path):
    animal = ANIMALS[name]
    data = tmp_path / animal.name
    data.write_bytes(animal.made())
    run = "run", data, "--target", "pay", "--out", tmp_path / "out", *animal.options
    if animal.refusal is not None:
        assert re.search(animal.refusal, refused(*run))
        return
    succeed(*run)
    assert {path.name for path in (tmp_path / "out").iterdir()} == OUTPUTS
    assert {path.name for path in tmp_path.iterdir()} == {animal.name, "out"}
    left_out = "skip" in name or "drop" in name
    assert len(predictions_of(tmp_path / "out" / "predictions.csv")) >= ROWS - 12 * left_out


@pytest.mark.parametrize("name", few(in_turn(list(BAD), 25), 25))
def test_one_clear_line(name, tmp_path):
    animal = ANIMALS[name]
    data = tmp_path / animal.name
    data.write_bytes(animal.made())
    run = "run", data, "--target", "pay", "--out", tmp_path / "out", *animal.options
    said = refused(*run)
    assert re.search(str(animal.refusal), said), said
    assert [path.name for path in tmp_path.iterdir()] == [animal.name]


def predicted(folder):
    return [row["prediction"] for row in predictions_of(folder / "predictions.csv")]


def everything(rows=1_000):
    """Dates, missing values, text of 500 levels, a boolean, an id, and yes and no."""
    import numpy as np
    import pandas as pd

    generator = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "id": range(70_001, 70_001 + rows),
            "day": pd.date_range("2023-01-01", periods=rows, freq="12h").strftime("%Y-%m-%d"),
            "age": generator.integers(18, 80, rows),
            "bmi": np.round(generator.normal(27, 4, rows), 2),
            "job": [f"job {one}" for one in generator.permutation(rows) % 500],
            "smoker": generator.random(rows) < 0.2,
            "member": np.where(generator.random(rows) < 0.5, "yes", "no"),
        }
    )
    frame["pay"] = np.round(900 + 20 * frame["age"] + 5_000 * frame["smoker"], 2)
    frame.loc[generator.random(rows) < 0.1, "bmi"] = np.nan
    return frame


@pytest.mark.slow
def test_the_same_predictions_from_all_formats(tmp_path):
    """With --target alone: CSV, Parquet, Excel, SQLite."""
    frame, found = everything(), {}
    for name, write in (
        ("d.csv", csv),
        ("d.parquet", parquet),
        ("d.xlsx", excel),
        ("d.db", sqlite),
    ):
        (tmp_path / name).write_bytes(write(frame))
        succeed("run", tmp_path / name, "--target", "pay", "--out", tmp_path / "out")
        found[name] = predicted(tmp_path / "out")
    assert len(found["d.csv"]) == len(frame)
    assert all(one == found["d.csv"] for one in found.values())


def test_a_model_reads_booleans_of_any_file(tmp_path):
    """What it learned from CSV, where they are True and False, holds for Parquet and JSON."""
    frame = KINDS["booleans"]()
    (tmp_path / "d.csv").write_bytes(csv(frame))
    succeed("run", tmp_path / "d.csv", "--target", "pay", "--out", tmp_path / "out")
    found = []
    for name, write in (("n.csv", csv), ("n.parquet", parquet), ("n.xlsx", excel)):
        (tmp_path / name).write_bytes(write(frame))
        succeed("predict", tmp_path / "out" / "model.gw", tmp_path / name, "--out", tmp_path / "p")
        found.append([(row["prediction"], row["groups"]) for row in predictions_of(tmp_path / "p")])
    assert found[0] == found[1] == found[2]
    assert "member=true" in found[0][0][1]
