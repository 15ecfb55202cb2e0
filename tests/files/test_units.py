"""Units: the same on the page, in the terminal, in JSON and in Python."""

import json
import re

import numpy as np
import pytest

import groupwise as gw
from groupwise.files.tables import Measure, regret_scale, title_of
from groupwise.files.units import Scale, squared
from tests.cli.commands import invoke, predictions_of, regret_of, succeed, write_rows

pytestmark = pytest.mark.usefixtures("two_panels")
SIZE = 2_000.0


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run whose regret has many digits."""
    folder = tmp_path_factory.mktemp("units")
    draw = np.random.default_rng(0)
    rows = []
    for _ in range(240):
        kind, x = "ab"[int(draw.integers(2))], int(draw.integers(50))
        rows.append((kind, x, round(SIZE * (x if kind == "a" else 50 - x) + draw.normal(), 2)))
    data = write_rows(folder / "pay.csv", ("kind", "x", "total pay"), rows)
    result = succeed("run", data, "--target", "total pay", "--out", folder / "out")
    return folder / "out", result


def figures_of(page):
    """The cells of the first table on a page by group, and its headings."""
    table = page[page.index("<table") : page.index("</table>")]
    spans = re.findall(r'scope="colgroup">([^<]*)<', table)
    rows = {}
    for line in re.findall(r"<tr>(<th scope=.row.*?)</tr>", table):
        name = re.findall(r"<a[^>]*>([^<]*)</a>|<th scope=.row.>([^<]*)</th>", line)[0]
        rows["".join(name)] = re.findall(r"<td[^>]*>([^<]*)</td>", line)
    titles = re.findall(r'scope="col">([^<]*)<', table)
    return spans, titles, rows


def number(text):
    return float(text.replace(",", "").replace("−", "-"))


def test_page_terminal_and_json_have_one_figure_in_one_unit(finished):
    out, result = finished
    record = json.loads((out / "regret.json").read_text("utf-8"))
    units = record["units"]
    unit = units["regret"]
    assert unit == units["loss"] == units["certificate"] == squared("total pay")
    assert units["error"] == units["bias"] == "total pay"
    assert units["rounds"] == "rounds"
    known = regret_of(out)
    scale = regret_scale(known.values())
    assert scale.exponent >= 6
    heading = f"regret, {scale.unit(unit)}"
    spans, titles, rows = figures_of((out / "report.html").read_text("utf-8"))
    assert spans == ["bias, total pay", "error, total pay", heading]
    place = titles.index("certificate") - 1
    for group, row in known.items():
        shown = number(rows[title_of(group)][place])
        assert shown * 10.0**scale.exponent == pytest.approx(
            row["certificate"], abs=half_of_last_digit(scale)
        )
        assert f" {scale(row['certificate'])} " in result.stdout
    for word in heading.split():
        assert word in result.stdout
    shown = invoke("regret", out / "model.gw")
    assert all(word in shown.stdout for word in heading.split())
    record = json.loads(invoke("regret", out / "model.gw", "--json").stdout)
    assert record["units"] == {key: units[key] for key in record["units"]}
    assert record["units"]["certificate"] == unit


def half_of_last_digit(scale):
    """How far what is shown may be from the figure."""
    return 0.51 * 10.0 ** (scale.exponent - scale.decimals)


def test_errors_are_those_of_the_predictions(finished):
    out, _ = finished
    errors = json.loads((out / "regret.json").read_text("utf-8"))["errors"]["groupwise"]
    rows = predictions_of(out / "predictions.csv")
    for row in errors:
        own = [one for one in rows if row["group"] in one["groups"].split("; ")]
        signed = np.array([float(one["prediction"]) - float(one["label"]) for one in own])
        assert row["bias"] == pytest.approx(signed.mean(), rel=1e-6)
        assert row["error"] == pytest.approx(np.sqrt((signed**2).mean()), rel=1e-6)
        assert row["bias_low"] < row["bias"] < row["bias_high"]
        assert row["error_low"] < row["error"] < row["error_high"]


@pytest.mark.parametrize(
    ("loss", "unit"),
    [
        (gw.losses.Square(0, 9), "label²"),
        (gw.losses.Absolute(0, 9), "label"),
        (gw.losses.Log(), "nats"),
    ],
)
def test_python_tables_say_their_unit(loss, unit):
    model = gw.Groupwise([gw.by("k")], loss=loss)
    for i in range(20):
        model.learn_one({"k": "ab"[i % 2], "x": i % 3}, float(i % 2))
    table = model.regret()
    heading, below, *_ = str(table).splitlines()
    keys = [key for key in heading.split() if key not in ("group", "rounds", "few_rows", "status")]
    assert below.split() == [unit] * len(keys)
    assert set(keys) <= set(table.units)
    assert set(table.units.values()) == {unit}
    assert f"<th>regret<br>{unit}</th>" in table._repr_html_()


def test_an_absolute_loss_is_no_square():
    row = {"group": "a", "rounds": 10.0, "regret": 20.0, "best_loss": 20.0}
    assert Measure("pay", squares=False).figure(row) == 4.0
    assert Measure("pay", squares=False).loss_unit == "pay"
    assert Measure("pay").figure(row) == 2.0
    assert Measure("pay").loss_unit == "pay²"


@pytest.mark.parametrize(
    ("values", "texts", "unit"),
    [
        ([12_345.6, -3.0], ["12,346", "−3"], "x"),
        ([9.99e5], ["999,000"], "x"),
        ([1e6, -5.5e4], ["1.000", "−0.055"], "10⁶ x"),
        ([2.5e13], ["25.00"], "10¹² x"),
        ([4e-7, None, float("nan")], ["400.0", "–", "–"], "10⁻⁹ x"),
        ([0.0], ["0.00"], "x"),
    ],
)
def test_powers_of_ten(values, texts, unit):
    scale = Scale.of(values)
    assert [scale(value) for value in values] == texts
    assert scale.unit("x") == unit
