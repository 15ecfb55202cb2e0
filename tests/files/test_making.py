"""What is made of a file's columns: parts of dates, the label's past, text with many values."""

import datetime
import itertools
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import groupwise as gw
from groupwise.errors import ConfigurationError, DataError
from groupwise.features.calendar import Calendar
from groupwise.files.dates import FORMS, ISO, forms_of, times_of, worthwhile
from groupwise.files.following import levels_of, makers, streams_of
from groupwise.files.plan import make_plan, planned
from groupwise.files.rows import first_rows, pieces
from groupwise.files.scan import scan
from groupwise.files.settings import Request, read_config
from groupwise.files.source import opened
from groupwise.groups import by
from tests.cli.commands import predictions_of, refused, succeed, write_rows

HEADER = ("time", "shop", "kind", "promo", "price", "since", "tag", "sales")
START = datetime.datetime(2023, 3, 1, 6)


def shops(steps=90, seed=0):
    """Sales of three shops, every six hours: by the hour, and by what is advertised."""
    generator = np.random.default_rng(seed)
    found = []
    for step, shop in itertools.product(range(steps), range(3)):
        time = START + datetime.timedelta(hours=6 * step)
        promo = int(generator.random() < 0.3)
        sales = 20 + 10 * shop + 3 * time.hour + 15 * promo + float(generator.normal())
        tag = f"t{int(generator.integers(60))}"
        since = f"{1 + step % 12}/{1 + step % 28}/20{10 + shop}"
        price = round(float(generator.random()), 3)
        found.append((time, f"s{shop}", "ab"[shop % 2], promo, price, since, tag, round(sales, 3)))
    return found


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Those rows, out of order."""
    rows = shops()
    shuffled = [rows[i] for i in np.random.default_rng(1).permutation(len(rows))]
    return write_rows(tmp_path_factory.mktemp("data") / "shops.csv", HEADER, shuffled)


def planned_for(file, **options):
    with planned(str(file), target="sales", **options) as (_, plan):
        return plan


class TestDates:
    @pytest.mark.parametrize(
        ("values", "form"),
        [
            (["2024-01-31", "2024-02-01"], ISO),
            (["2024-01-31 10:00:00", " 2024-02-01T11:00Z"], ISO),
            (["1/2/2024", "1/31/2024"], "%m/%d/%Y"),
            (["1/2/2024", "31/1/2024"], "%d/%m/%Y"),
            (["31.1.2024 07:30"], "%d.%m.%Y %H:%M"),
            (["2024/01/31"], "%Y/%m/%d"),
            (["1/2/2024", "3/4/2024"], None),
            (["2024-01-31", "soon"], None),
            (["31/12/2024", "12/31/2024"], None),
        ],
    )
    def test_how_they_are_written(self, values, form):
        found = forms_of(values)
        assert (found[0] if len(found) == 1 else None) == form
        halves = forms_of(values[1:], forms_of(values[:1], FORMS))
        assert halves == found

    def test_columns_are_recognised(self, file, tmp_path):
        with opened(str(file)) as source:
            found = scan(source, "sales")
        dates = {name: profile.date for name, profile in found.columns.items() if profile.date}
        assert dates == {"time": ISO, "since": "%m/%d/%Y"}
        mixed = write_rows(tmp_path / "d.csv", ("d", "y"), [(1, 1), ("2024-01-01", 2)] * 2)
        with opened(str(mixed)) as source:
            assert scan(source, "y").columns["d"].date is None

    def test_rows_are_sorted_as_dates(self, tmp_path):
        days = ["1/2/2024", "1/10/2024", "12/1/2023", "1/9/2024", "1/10/2024", "1/31/2024"]
        rows = [(day, place) for place, day in enumerate(days)]
        data = write_rows(tmp_path / "d.csv", ("day", "y"), rows)
        with opened(str(data)) as source:
            found = scan(source, "y", ("day",))
            sorted_rows = [
                int(n) for one in pieces(found, {"y": "number"}, ("day",), 9) for n in one.numbers
            ]
        assert sorted_rows == [3, 1, 4, 2, 5, 6]

    def test_the_parts_that_are_worth_something(self):
        def parts(step, count, timed=True):
            times = [START + step * i for i in range(count)]
            texts = [str(time if timed else time.date()) for time in times]
            maker, levels = worthwhile("d", ISO, pa.chunked_array([texts]))
            assert maker is not None
            assert {name.removeprefix("d ") for name in levels} == {*maker.every} - {"elapsed"}
            return maker.parts, maker.aside

        minute, day = datetime.timedelta(minutes=1), datetime.timedelta(days=1)
        assert parts(30 * minute, 3000) == (("hour", "weekday", "month", "elapsed"), ("time",))
        assert parts(60 * minute, 3000) == (("hour", "weekday", "month", "elapsed"), ())
        assert parts(minute, 3000) == (("hour", "weekday", "elapsed"), ())
        assert parts(day, 400) == (("weekday", "month", "elapsed"), ())
        assert parts(day, 400, timed=False) == (("weekday", "month", "elapsed"), ())
        assert parts(7 * day, 100) == (("month", "elapsed"), ())
        assert parts(365 * day, 40) == (("elapsed",), ())

    def test_moments_of_a_column(self):
        texts = pa.chunked_array([["1/2/1970", "1/1/1970", None], ["1/2/1970", "soon"]])
        day = 86_400_000_000
        assert times_of(texts, "%m/%d/%Y", -7).tolist() == [day, 0, -7, day, -7]


class TestPast:
    def test_streams_are_what_makes_the_order_unique(self):
        days, shops = [1, 1, 2, 2, 3, 3], list("ababab")
        columns: Any = {"id": list(range(6)), "shop": shops, "kind": ["x"] * 6}
        assert streams_of(list(range(6)), columns) == ()
        assert streams_of(days, columns) == ("shop",)
        assert streams_of(
            [1, 1, 1, 1, 2, 2, 2, 2], {"a": list("xxyyxxyy"), "b": list("uvuvuvuv")}
        ) == ("a", "b")
        assert streams_of([1, 1, 2, 2], {"a": list("xxyy")}) == ()

    def test_levels_are_what_foretells_rises(self):
        """A season of four, with another height on every third step: plain brute force agrees."""
        generator = np.random.default_rng(0)
        steps = np.arange(600)
        season, third = steps % 4, steps % 3 == 0
        labels = season + 2.0 * third * season + 0.1 * generator.random(600)
        noise = generator.integers(0, 5, 600)
        columns = {
            "noise": noise.tolist(),
            "third": third.tolist(),
            "season": season.tolist(),
            "again": [f"s{one}" for one in season],
        }
        found = levels_of(labels, [], columns)
        assert found[0] in (("season",), ("again",))
        assert {*found[1]} == {found[0][0], "third"}
        assert levels_of(labels, [], {"noise": noise.tolist()}) == []
        assert levels_of(np.ones(50), [], {"season": season[:50].tolist()}) == []
        assert levels_of(labels, [], {}) == []

    def test_the_first_rows_in_order(self, file):
        with opened(str(file)) as source:
            found = scan(source, "sales", ("time",))
            rows = first_rows(found, {"time": "text", "sales": "number"}, ("time",), 7)
            times = rows.column("time").to_pylist()
            assert times == sorted(str(row[0]) for row in shops())[:7]
            wanted = sorted(shops(), key=lambda row: row[0])[:6]
            assert sorted(rows.column("sales").to_pylist()[:6]) == sorted(row[-1] for row in wanted)
            unsorted = first_rows(found, {"sales": "number"}, (), 5).column("sales").to_pylist()
        with file.open() as lines:
            assert unsorted == [float(line.split(",")[-1]) for line in list(lines)[1:6]]


def test_everything_is_proposed_where_rows_have_an_order(file):
    plan = planned_for(file, order=("time",))
    assert plan.groups == (by("shop"), by("kind"), by("promo"), by("time hour"), by("time weekday"))
    assert plan.features == {
        "price": plan.features["price"],
        "time": Calendar("time", ("hour", "weekday", "elapsed")),
        "since": Calendar("since", ("elapsed",), format="%m/%d/%Y"),
        "tag": gw.encoded("tag"),
    }
    assert plan.hinges
    whole, *levels = plan.past
    assert whole == gw.past("sales", (1, 2), (0.5, 0.9, 0.99), of="shop")
    assert levels[0].by == ("time hour",)
    assert ("time hour", "promo") in [one.by for one in levels]
    assert all(one.of == ("shop",) and one.rises for one in levels)
    assert plan.kinds["tag"] == plan.kinds["since"] == "text"
    assert not {"time hour", "time weekday"} & {*plan.kinds}
    assert plan.looked_ahead[-1] == "which of the label's past are features"
    assert planned_for(file).past == ()
    assert planned_for(file, order=("time",), features="price").past == ()
    assert not planned_for(file, order=("time",), features="price").hinges


def test_settings_ask_for_the_same_plan(file, tmp_path):
    plan = planned_for(file, order=("time",))
    (tmp_path / "c.toml").write_text(plan.toml())
    again = planned_for(file, config=tmp_path / "c.toml")
    kept = ("groups", "features", "past", "hinges", "kinds", "order", "learner", "task")
    assert [getattr(again, name) for name in kept] == [getattr(plan, name) for name in kept]
    assert "lags = [1, 2]" in plan.toml()
    assert 'of = ["shop"]' in plan.toml()


def test_the_past_as_text(file):
    plan = planned_for(
        file, past='shop: time hour, "time hour" & promo', features="price", groups="shop"
    )
    assert plan.past == makers("sales", ["shop"], [["time hour"], ["time hour", "promo"]])
    assert plan.features["time"] == Calendar("time", (), ("hour",))
    assert planned_for(file, order=("time",), past="none").past == ()
    assert planned_for(file, past="all").past == makers("sales", [], [])
    assert planned_for(file, past="shop & kind").past == makers("sales", ["shop", "kind"], [])
    assert planned_for(file, past=": promo").past == makers("sales", [], [["promo"]])
    for text, message in (
        ("shops", "no column 'shops' for the past"),
        ("shop: hour", "no column 'hour' for the past"),
        ("sales", "not known when the past is needed"),
    ):
        with pytest.raises((DataError, ConfigurationError), match=message):
            planned_for(file, past=text)


def test_features_as_text(file):
    plan = planned_for(file, features="tag:encoded, time:date, since:date, price:0|1")
    assert plan.features == {
        "tag": gw.encoded("tag"),
        "time": Calendar("time", ("hour", "weekday", "elapsed")),
        "since": Calendar("since", ("elapsed",), format="%m/%d/%Y"),
        "price": (0.0, 1.0),
    }
    with pytest.raises(DataError, match="'kind' is no date that can be read: it holds 'a'"):
        planned_for(file, features="kind:date")
    with pytest.raises(ConfigurationError, match="name it as time:date"):
        planned_for(file, features="time:hashed", groups="time hour")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("past = 3", "Write .*past.* tables"),
        ("[[past]]\nlag = [1]", "unknown key 'lag' in past"),
        ("[[past]]\nlags = [0]", "Give different whole numbers"),
        ("hinges = 3", "hinges is true or false"),
    ],
)
def test_settings_that_are_refused(text, message, tmp_path):
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises((ConfigurationError, gw.GroupwiseError), match=message):
        read_config(tmp_path / "c.toml")


@pytest.mark.parametrize("said", ["{ aside = ['hour'] }", "{ date = ['hour'], by = 1 }"])
def test_dates_in_settings_that_are_refused(file, said, tmp_path):
    (tmp_path / "c.toml").write_text(f"[features]\ntime = {said}\n")
    with pytest.raises(ConfigurationError, match="has the keys date, aside and format"):
        planned_for(file, config=tmp_path / "c.toml")


@pytest.mark.slow
def test_a_run_has_the_numbers_of_the_model(file, tmp_path):
    """And goes on from its snapshot: learning the rest of the rows is the same as one run."""
    rows = sorted(shops(), key=lambda row: row[0])
    whole = write_rows(tmp_path / "all.csv", HEADER, rows)
    first = write_rows(tmp_path / "first.csv", HEADER, rows[:150])
    second = write_rows(tmp_path / "second.csv", HEADER, rows[150:])
    plan = planned_for(whole, order=("time",), range="0,150")
    (tmp_path / "c.toml").write_text(plan.toml())
    for name, data in (("all", whole), ("half", first)):
        succeed("run", data, "--config", tmp_path / "c.toml", "--out", tmp_path / name)
    model = gw.Groupwise(
        [gw.by("shop"), gw.by("kind"), gw.by("promo"), gw.by("time hour"), gw.by("time weekday")],
        features=[
            {"price": plan.features["price"]},
            gw.calendar("time", ("hour", "weekday", "elapsed")),
            gw.calendar("since", "elapsed", format="%m/%d/%Y"),
            *plan.past,
            gw.encoded("tag"),
            gw.hinges(),
        ],
        loss=gw.losses.Square(0, 150),
    )
    expected = []
    for row in rows:
        given = {name: value for name, value in zip(HEADER, row, strict=True) if name != "sales"}
        expected.append(model.predict_one(given))
        model.learn_one(given, row[-1])
    found = predictions_of(tmp_path / "all" / "predictions.csv")
    assert [float(row["prediction"]) for row in found] == expected
    settings = json.loads((tmp_path / "all" / "regret.json").read_text())["settings"]
    assert settings["past"][0] == {"lags": [1, 2], "mean": [0.5, 0.9, 0.99], "of": ["shop"]}
    assert settings["features"]["tag"] == "encoded"
    snapshot = tmp_path / "half" / "model.gw"
    succeed("learn", snapshot, second)
    both = [
        succeed("predict", path, second).stdout
        for path in (snapshot, tmp_path / "all" / "model.gw")
    ]
    assert both[0] == both[1]
    assert "time hour=" in both[0]
    plain = gw.load(snapshot)
    plain.save(tmp_path / "plain.gw")  # which says nothing about columns
    again = succeed("predict", tmp_path / "plain.gw", second, "--target", "sales").stdout
    assert again == both[0]


def test_other_formats_have_dates_too(tmp_path):
    rows = sorted(shops(), key=lambda row: row[0])
    columns = {name: [row[i] for row in rows] for i, name in enumerate(HEADER)}
    parquet, lines = tmp_path / "d.parquet", tmp_path / "d.jsonl"
    pyarrow.parquet.write_table(pa.table(columns), parquet)
    texts = [json.dumps(dict(zip(HEADER, row, strict=True)), default=str) for row in rows]
    lines.write_text("\n".join(texts))
    plans = [planned_for(path, order=("time",)) for path in (parquet, lines)]
    assert plans[0].features == plans[1].features
    assert plans[0].past == plans[1].past
    assert plans[0].features["time"] == Calendar("time", ("hour", "weekday", "elapsed"))


def test_several_classes_have_no_past(tmp_path):
    rows = [
        (str(START + i * datetime.timedelta(days=1)), f"n{i % 70}", "abc"[i % 3])
        for i in range(400)
    ]
    data = write_rows(tmp_path / "d.csv", ("day", "name", "y"), rows)
    with planned(str(data), target="y", order=("day",)) as (_, plan):
        assert plan.past == ()
        assert "name" not in plan.features
        assert "Column 'name' is left out" in plan.warnings[0]
    with (
        pytest.raises(ConfigurationError, match="several classes"),
        planned(str(data), target="y", past="all"),
    ):
        pass


@pytest.mark.slow
def test_yes_and_no_have_a_past(tmp_path):
    rows = [
        (str(START + i * datetime.timedelta(days=1)), i % 5, ["no", "yes"][i % 7 == 0])
        for i in range(200)
    ]
    data = write_rows(tmp_path / "d.csv", ("day", "x", "y"), rows)
    with planned(str(data), target="y", order=("day",)) as (_, plan):
        assert plan.past[1].by == ("day weekday",)
    succeed("run", data, "--target", "y", "--order", "day", "--out", tmp_path / "out")


def test_text_with_many_values(tmp_path):
    rows = [(f"a{i % 60}", f"b{i}", f"c{i % 49}", i % 13) for i in range(200)]
    data = write_rows(tmp_path / "d.csv", ("many", "unique", "few", "y"), rows)
    with planned(str(data), target="y") as (_, plan):
        assert plan.groups == (by("few"),)
        assert plan.features == {"many": gw.encoded("many")}
        assert [warning for warning in plan.warnings if "'unique' is left out" in warning]
    with planned(str(data), target="y", groups="many") as (_, plan):
        assert plan.features == {"many": gw.encoded("many"), "few": None}


@pytest.mark.slow
def test_names_that_are_taken_are_not_made(tmp_path):
    """A file may have the hour, or its label's past, as columns of its own."""
    rows = [
        (
            START + i * datetime.timedelta(hours=6),
            6 * i % 24,
            i % 11 / 2,
            f"n{i % 60}",
            0.5 * i,
            i % 13,
        )
        for i in range(150)
    ]
    header = ("time", "time hour", "y 1 ago", "name", "name known", "y")
    data = write_rows(tmp_path / "d.csv", header, rows)
    with planned(str(data), target="y", order=("time",)) as (_, plan):
        assert plan.features["time"] == Calendar("time", ("weekday", "month", "elapsed"))
        assert "name" not in plan.features
        assert all(one.by for one in plan.past)
    succeed("run", data, "--target", "y", "--order", "time", "--out", tmp_path / "out")


def test_hinges_where_numbers_are_few(tmp_path):
    header = [f"x{i}" for i in range(65)]
    rows = [[i * (j + 1) % 101 for j in range(65)] + [i % 7] for i in range(60)]
    data = write_rows(tmp_path / "d.csv", (*header, "y"), rows)
    with opened(str(data)) as source:
        found = scan(source, "y")
        assert not make_plan(found, Request(target="y")).hinges
        assert make_plan(found, Request(target="y", hinges=True)).hinges
        assert make_plan(found, Request(target="y", drop=("x0",))).hinges
        assert not make_plan(found, Request(target="y", drop=("x0",), hinges=False)).hinges


def test_init_proposes_the_past(file):
    text = succeed("init", file, "--target", "sales", "--order", "time").stdout
    assert "[[past]]" in text
    assert "hinges = true" in text
    assert "[[past]]" not in succeed("init", file, "--target", "sales").stdout
    assert "hinges = false" in succeed("init", file, "--target", "sales", "--no-hinges").stdout
    assert "for the past" in refused("init", file, "--target", "sales", "--past", "nobody")
