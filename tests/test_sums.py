"""Sums of rows: the best of every group, whoever has added them up."""

import multiprocessing
import pickle

import numpy as np
import polars
import pytest

import groupwise as gw

Ridge = gw.learners.Ridge
GROUPS = [gw.by("city"), gw.by("sex"), gw.weight("w")]
SQUARE = gw.losses.Square(-1.0, 3.0)


def rows_of(count, seed=0):
    """Levels that appear along the way, a large offset, levels that add up, and predictions."""
    rng = np.random.default_rng(seed)
    city = rng.integers(0, 2 + np.arange(count) * 6 // count)
    x = rng.normal(size=count)
    y = np.clip(1.0 + 0.3 * x + 0.2 * (city % 3) + 0.1 * rng.normal(size=count), -1.0, 3.0)
    return polars.DataFrame(
        {
            "city": [f"c{k}" for k in city],
            "sex": rng.choice(["f", "m"], count),
            "x": x,
            "when": 1.7e9 + 60.0 * np.arange(count),
            "w": np.where(rng.random(count) < 0.3, 0.0, rng.random(count)),
            "mine": y + 0.2 * rng.normal(size=count),
            "y": y,
        }
    )


def empty():
    return gw.Sums(GROUPS, loss=SQUARE, predictions=["mine"], intersections=2)


def added(rows):
    """What a worker does."""
    return empty().add(rows)


def total(parts):
    first, *others = parts
    for one in others:
        first = first + one
    return first


def check(found, rows):
    """The same groups, features and figures as of one model that has seen the rows in order."""
    model = gw.Groupwise(GROUPS, Ridge(), loss=SQUARE, experts=["mine"], intersections=2)
    model.replay(rows, "y")
    assert found.rows == len(rows)
    assert found.group_names == model.group_names
    assert found.feature_names == model.feature_names
    for one, other in zip(found.regret("mine"), model.regret(), strict=True):
        assert one["group"] == other["group"]
        assert one["rounds"] == pytest.approx(other["rounds"])
        apart = one["best_error"] + other["best_error"]
        assert one["best_loss"] == pytest.approx(other["best_loss"], abs=apart)
        assert apart < 1e-6
        assert one["status"] == "measured"


def test_against_least_squares_by_hand():
    rows = rows_of(500)
    table = total([added(rows[k : k + 130]) for k in range(0, 500, 130)]).regret("mine")
    label, mine = rows["y"].to_numpy(), rows["mine"].to_numpy()
    for name, weights in {
        "sex=f": (rows["sex"] == "f").to_numpy().astype(float),
        "w": rows["w"].to_numpy(),
        "always_on": np.ones(500),
    }.items():
        levels = (rows[c].to_dummies().to_numpy() for c in ("city", "sex"))
        time = (rows["when"].to_numpy() - 1.7e9) / 1e4
        awake = rows["w"] > 0.0  # the indicator of a group; what it weighs is no feature
        X = np.column_stack([np.ones(500), *levels, rows["x"], time, awake])
        root = np.sqrt(weights)[:, None]
        theta = np.linalg.lstsq(root * X, root[:, 0] * label)[0]
        best = float(weights @ (X @ theta - label) ** 2)
        lost = float(weights @ (mine - label) ** 2)
        apart = table[name]["best_error"] + 1e-9
        assert table[name]["best_loss"] == pytest.approx(best, abs=apart)
        assert table[name]["loss"] == pytest.approx(lost, rel=1e-12)
        assert table[name]["regret"] == pytest.approx(lost - best, abs=apart)
        assert apart < 1e-6


@pytest.mark.slow
def test_in_plain_processes():
    rows = rows_of(600)
    parts = [rows[k : k + 150] for k in range(0, 600, 150)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        check(total(pool.map(added, parts)), rows)


def test_in_polars():
    rows = rows_of(600)
    found = []

    def one(part):
        found.append(added(part.drop("part")))
        return part.select("part").head(1)

    parts = rows.with_columns(part=polars.arange(600) // 200)
    parts.group_by("part", maintain_order=True).map_groups(one)
    check(total(found), rows)


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_in_ray():
    ray = pytest.importorskip("ray")
    rows = rows_of(600)
    alone = not ray.is_initialized()  # other tests of this process may have a cluster
    if alone:
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        task = ray.remote(added)
        parts = ray.get([task.remote(rows[k : k + 150]) for k in range(0, 600, 150)])
        check(total(parts), rows)
    finally:
        if alone:
            ray.shutdown()


def test_any_cut_and_any_brackets():
    rows = rows_of(300)
    a, b, c = (added(rows[k : k + 100]) for k in (0, 100, 200))
    whole = added(rows)
    for other in (a + b + c, a + (b + c), added([rows[:7], rows[7:300]])):
        assert other.group_names == whole.group_names
        assert other.feature_names == whole.feature_names
        for one, two in zip(whole.regret("mine"), other.regret("mine"), strict=True):
            assert one["loss"] == pytest.approx(two["loss"], rel=1e-12)
            assert one["best_loss"] == pytest.approx(two["best_loss"], rel=1e-9, abs=1e-9)
    assert a.rows == 100  # adding leaves both as they were
    again = pickle.loads(pickle.dumps(a))
    assert again.regret("mine").rows == a.regret("mine").rows


def test_what_cannot_be_told_is_said():
    # A column that differs from others by rounding: whether the best uses that cannot be told.
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 400))
    rows = polars.DataFrame({"a": a, "b": b, "c": a + 0.3 * b, "y": rng.random(400)})
    parts = [
        gw.Sums([], indicators=False, loss=gw.losses.Square()).add(rows[k : k + 100])
        for k in range(0, 400, 100)
    ]
    assert total(parts).regret()["always_on"]["status"] == "numerically uncertain"
    exact = rows.with_columns(c=2.0 * polars.col("a"))
    parts = [
        gw.Sums([], indicators=False, loss=gw.losses.Square()).add(exact[k : k + 100])
        for k in range(0, 400, 100)
    ]
    assert total(parts).regret()["always_on"]["status"] == "measured"


def test_few_rows_that_are_mostly_zeros_are_no_factor():
    """Without a constant, what rows of zeros have for labels nothing explains."""
    labels = [0.3, 0.9, 0.7, 0.5]  # as many as there is room for columns
    rows = polars.DataFrame({"x": [0.5, 0.0, 0.0, 0.0], "y": labels})
    sums = gw.Sums([], loss=gw.losses.Square(), intercept=False).add(rows)
    again = sums + sums.empty().add([rows] * 2) + sums.empty().add(rows)
    for one, times in ((sums, 1), (again, 4)):
        found = one.regret()["always_on"]["best_loss"]
        assert found == pytest.approx(times * sum(y * y for y in labels[1:]), rel=1e-12)


def test_errors_say_what_to_do_and_leave_the_sums():
    rows = rows_of(50)
    sums = added(rows)
    before = sums.regret("mine").rows
    with pytest.raises(gw.errors.LabelError, match="outside"):
        sums.add([rows, rows.with_columns(y=polars.lit(9.0))])
    assert sums.regret("mine").rows == before
    assert sums.rows == 50
    with pytest.raises(gw.errors.ConfigurationError, match="predictions="):
        sums.regret("yours")
    with pytest.raises(gw.errors.ConfigurationError, match="empty"):
        sums + gw.Sums(GROUPS)
    with pytest.raises(gw.errors.ConfigurationError, match="Square"):
        gw.Sums(GROUPS, loss=gw.losses.Log())
    with pytest.raises(gw.errors.ConfigurationError, match="makers"):
        gw.Sums(GROUPS, features=[gw.past("y")])
    narrow = gw.Sums(GROUPS, loss=SQUARE, predictions=["mine"], max_levels=4)
    few = rows.filter(polars.col("city").is_in(["c0", "c1", "c2"]))
    more = rows.filter(~polars.col("city").is_in(["c0", "c1", "c2"]))
    with pytest.raises(gw.errors.FeatureError, match="max_levels"):
        narrow.empty().add(few) + narrow.empty().add(more)
    numbered = gw.Sums([gw.by("x")], features=["when"], loss=SQUARE, max_levels=4)
    with pytest.raises(gw.errors.FeatureError, match="Column 'x' has more than 4 values in both"):
        numbered.empty().add(rows[:3]) + numbered.empty().add(rows[3:6])
    text = narrow.empty().add(few.with_columns(x=polars.col("x").cast(polars.String)).head(4))
    with pytest.raises(gw.errors.FeatureError, match="'x'"):
        narrow.empty().add(few) + text


def test_rows_that_nobody_is_awake_for():
    rows = rows_of(6).with_columns(sex=polars.lit(None, polars.String))
    sums = gw.Sums([gw.by("sex")], loss=SQUARE, always_on=False, predictions=["mine"])
    sums.add(rows)
    assert (sums.rows, sums.regret("mine").rows) == (6, [])
    whole = sums + sums.empty().add(rows_of(6))
    assert whole.regret("mine").rows == sums.empty().add(rows_of(6)).regret("mine").rows


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"predictions": "mine"}, "list of columns"),
        ({"predictions": ["y"]}, "is the label"),
        ({"groups": gw.by("sex")}, "a list of group declarations"),
    ],
)
def test_what_sums_cannot_be_of(about, said):
    with pytest.raises(gw.GroupwiseError, match=said):
        gw.Sums(**{"groups": GROUPS, **about})


@pytest.mark.filterwarnings("error")
def test_a_prediction_that_is_too_large():
    with pytest.raises(gw.errors.FeatureError, match="too large"):
        empty().add(rows_of(5).with_columns(mine=1e200))
