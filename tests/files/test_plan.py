"""What a run will do, given what was asked for and what the columns hold."""

import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from groupwise.aggregators import Prod
from groupwise.errors import ConfigurationError, DataError
from groupwise.features import hashed
from groupwise.files.plan import guess_target, make_plan
from groupwise.files.proposals import WIDE, spans_constant
from groupwise.files.scan import scan
from groupwise.files.settings import Request, read_config
from groupwise.files.source import opened
from groupwise.groups import by, cut, pairs, weight, where
from groupwise.losses import Square
from tests.cli.commands import write_rows

BANDS = cut("age", [17, 24, 34, 44, 54, 64, 74, 84])
HEADER = ("sex", "hour", "age", "name", "gap", "city", "pay")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A file with a column of every kind."""
    rows = [
        ("fm"[i % 2], i % 24, i * 7 % 97 + 0.5, f"n{i}", i if i % 9 else "", "abc"[i % 3], i % 13)
        for i in range(200)
    ]
    data = write_rows(tmp_path_factory.mktemp("data") / "d.csv", HEADER, rows)
    with opened(str(data)) as source:
        yield scan(source, "pay", ("age",))


def plan(found, strict=False, predictions=(), **request):
    return make_plan(found, Request(target="pay").with_options(**request), strict, predictions)


def wide(place, rows, width):
    """A file with so many columns beside the label."""
    header = [*(f"c{j}" for j in range(width)), "y"]
    cells = np.random.default_rng(0).random((rows, width + 1)).round(4).tolist()
    return write_rows(place, header, cells)


@pytest.mark.parametrize(("rows", "width"), [(60, 2_000), (4, 6_000)])
def test_files_with_many_columns(tmp_path, rows, width):
    """What is held is linear in the cells: a number for every two columns would be 288 MB."""

    def planned(data):
        with opened(str(data)) as source:
            return make_plan(scan(source, "y"), Request(target="y"), False, ())

    planned(wide(tmp_path / "narrow.csv", rows, WIDE + 1))  # what is imported then is not counted
    data = wide(tmp_path / "wide.csv", rows, width)
    tracemalloc.start()
    try:
        made = planned(data)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(made.features) <= WIDE
    assert most < 400 * rows * width


@pytest.mark.slow
def test_the_time_is_linear_in_the_columns(tmp_path):
    """Four times as many take some four times as long, and not sixteen."""
    took = []
    for width in (25_000, 100_000):
        header = [*(f"c{j}" for j in range(width)), "y"]
        cells = np.random.default_rng(0).random((4, width + 1)).round(4).tolist()
        data = write_rows(tmp_path / "wide.csv", header, cells)
        start = time.process_time()
        with opened(str(data)) as source:
            made = make_plan(scan(source, "y"), Request(target="y"), False, ())
        took.append(time.process_time() - start)
        assert len(made.features) <= WIDE
    assert took[1] < 10.0 * took[0]


def test_text_and_few_valued_columns_are_groups_and_the_rest_features(found):
    made = plan(found)
    assert made.groups == (by("sex"), by("hour"), BANDS, by("city"))
    assert made.features == {"age": (0.5, 96.5), "gap": (1.0, 199.0)}
    assert made.indicators
    assert made.kinds == {
        "pay": "number",
        "age": "number",
        "gap": "number",
        "sex": "text",
        "hour": "number",
        "city": "text",
    }
    assert made.task.loss == Square(0.0, 12.0)
    assert made.proposed == ("groups", "features")
    assert "Column 'name' is left out: it has 200 different texts" in made.warnings[0]
    assert "Column 'gap' has 23 missing values" in made.warnings[1]
    assert "'gap missing'" in made.warnings[1]
    assert made.model().missing == "indicator"
    with pytest.raises(DataError, match=r"'gap' has 23 missing values.*--drop"):
        plan(found, strict=True, missing="error")
    assert plan(found, strict=True, missing="error", drop=("gap",)).model().missing is None


def test_what_is_asked_for_is_taken_as_it_is(found):
    made = plan(found, groups="sex & city, age:50", features="age:0|100, city", range=(-5.0, 20.0))
    assert made.groups == (by("sex") & by("city"), cut("age", [50]))
    assert made.features == {"age": (0.0, 100.0), "city": None}
    assert made.task.loss == Square(-5.0, 20.0)
    assert not made.proposed
    assert made.looked_ahead == ()
    assert made.kinds["city"] == "text"


def test_what_was_looked_up_is_said(found):
    assert plan(found, groups="sex", features="age").looked_ahead == (
        "the range of the label",
        "the range that age is scaled from",
    )
    assert plan(found, order=("age",), past="none").looked_ahead[-2:] == (
        "which columns are groups and which are features",
        "the order of the rows",
    )


def test_predictions_are_neither_groups_nor_features(found):
    made = plan(found, predictions=("hour", "age"))
    assert made.groups == (by("sex"), by("city"))
    assert made.features == {"gap": (1.0, 199.0)}


def test_numbers_alone_are_cut_in_halves(tmp_path):
    rows = [(i / 7, i * 3 % 101 / 9, i) for i in range(100)]
    with opened(str(write_rows(tmp_path / "d.csv", ("a", "b", "y"), rows))) as source:
        made = make_plan(scan(source, "y"), Request(target="y"))
    assert made.groups == (cut("a", [99 / 14]), cut("b", [100 / 18]))
    assert any("correlates with the label 'y' at 1.00" in text for text in made.warnings)


def test_the_last_column_of_numbers_is_guessed(found):
    assert guess_target(found) == "pay"


@pytest.mark.parametrize(
    ("groups", "features", "indicators", "expected"),
    [
        ([by("a")], {"x": (0, 1)}, True, True),
        ([by("a")], {"x": (0, 1)}, False, False),
        ([where("a", ">", 1), weight("w")], {"x": (0, 1)}, True, False),
        ([], {"x": (0, 1), "t": None}, False, True),
    ],
)
def test_an_intercept_is_there_or_not(groups, features, indicators, expected):
    assert spans_constant(groups, features, indicators) is expected


def test_who_asks_for_no_intercept_is_told_what_that_means(found):
    numbers = {"groups": "age > 30", "features": "age"}
    assert plan(found, **numbers).intercept
    assert not plan(found, **numbers).warnings
    without = plan(found, intercept=False, **numbers)
    assert not without.intercept
    assert "have no intercept. Leave out --no-intercept" in without.warnings[0]


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        ({"target": None}, ConfigurationError, "Name it with --target"),
        ({"target": "city", "task": "number"}, DataError, "label column 'city' holds 'a' in row 1"),
        (
            {"range": (0.0, 5.0), "drop": ("gap",)},
            DataError,
            "holds 12 in row 13, which is outside the range",
        ),
        ({"range": (5.0, 0.0), "drop": ("gap",)}, ConfigurationError, "LOW is below HIGH"),
        (
            {"features": {"gap": None}, "missing": "error"},
            DataError,
            "'gap' .* take it off",
        ),
        ({"features": {"city": (0.0, 1.0)}}, DataError, "'city' has a range but holds 'a'"),
        ({"groups": [by("pay")]}, ConfigurationError, "'pay' is the label"),
        ({"groups": [pairs(by("sex"), cut("city", [1]))]}, DataError, "groups compare numbers"),
    ],
)
def test_refused(request_, error, message, found):
    with pytest.raises(error, match=message):
        make_plan(found, Request(**{"target": "pay", **request_}))


def test_a_model_has_the_parts_of_the_plan(found):
    model = plan(found, learner="forward", aggregator="specialists").model()
    assert [(one.penalty, one.forward) for one in model.learners] == [(1.0, True)]
    assert type(model.aggregator).__name__ == "Specialists"
    assert plan(found, aggregator="prod").model().aggregator == Prod()
    assert (model.loss.low, model.loss.high) == (0.0, 12.0)
    with pytest.raises(ConfigurationError, match="no learner 'forest'"):
        plan(found, learner="forest").model()


def test_values_that_share_features(tmp_path):
    """Declared so, or refused with the way to say it; as text, whatever they look like."""
    rows = [(f"{10_000 + i * 7 % 600}", i % 9, i % 13) for i in range(900)]
    data = write_rows(tmp_path / "d.csv", ("code", "x", "y"), rows)
    with opened(str(data)) as source:
        found = scan(source, "y")
    request = Request(target="y", groups=[by("code")])
    with pytest.raises(DataError, match=r"'code' has 600 different values.* code:hashed"):
        make_plan(found, replace(request, features={"code": "levels"}))
    made = make_plan(found, replace(request, text={"features": "x, code:hashed"}))
    assert made.features == {"x": (0.0, 8.0), "code": hashed(256)}
    assert made.kinds["code"] == "levels"
    assert 'code = "hashed"' in made.toml()
    config = tmp_path / "settings.toml"
    config.write_text(made.toml())
    assert make_plan(found, read_config(config)).features == made.features
    assert made.model().hashed_fields == {"code": 256}


def test_so_many_features_that_no_matrix_holds_them(tmp_path):
    header = [*(f"c{i}" for i in range(8_200)), "y"]
    rows = [[i + j for j in range(8_200)] + [i] for i in range(4)]
    data = write_rows(tmp_path / "d.csv", header, rows)
    with opened(str(data)) as source:
        found = scan(source, "y")
    request = Request(target="y", groups=[where("c3", ">", 2)], features=dict.fromkeys(header[:-1]))
    with pytest.raises(DataError, match=r"would make 8,200 features.* with --features"):
        make_plan(found, request)
