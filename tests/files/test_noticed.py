"""What is noticed of columns: those left out, those alike, and those that give the label."""

import numpy as np
import pytest

from groupwise.files.noticed import given_by
from groupwise.files.plan import planned
from groupwise.groups import by, cut
from tests.cli.commands import write_rows

GENERATOR = np.random.default_rng(5)
ROWS = 120


def plan_of(tmp_path, options=None, **columns):
    """The plan for a file with these columns, and y."""
    y = GENERATOR.normal(size=ROWS).tolist()
    columns = {**columns, "y": columns.get("y", y)}
    rows = zip(*columns.values(), strict=True)
    with planned(
        str(write_rows(tmp_path / "d.csv", columns, rows)), target="y", **(options or {})
    ) as (
        _,
        plan,
    ):
        return plan


def test_constants_ids_and_row_numbers_are_left_out_with_a_word(tmp_path):
    plan = plan_of(
        tmp_path,
        **{"": range(ROWS), "same": ["x"] * ROWS, "Customer ID": range(900, 900 + ROWS)},
        orderId=[f"o{i}" for i in range(ROWS)],
        valid=GENERATOR.normal(size=ROWS).tolist(),
        x=range(ROWS),
    )
    assert list(plan.features) == ["valid", "x"]
    said = " ".join(plan.warnings)
    for name in ("column 1", "same", "Customer ID", "orderId"):
        assert f"'{name}'" in said
    assert "numbers the rows" in said


def test_an_id_that_comes_again_stands_for_its_mean_label(tmp_path):
    plan = plan_of(tmp_path, shop_id=[700 + i % 40 for i in range(ROWS)])
    assert plan.toml().count('shop_id = "encoded"') == 1


def test_ages_are_proposed_in_bands(tmp_path):
    ages = [18 + i % 47 for i in range(ROWS)]
    plan = plan_of(tmp_path, age=ages, wage=[one + 0.5 for one in ages], sex=["f", "m"] * 60)
    assert plan.groups == (cut("age", [24, 34, 44, 54]), by("sex"))
    older = plan_of(tmp_path, age=[one * 9 for one in ages], sex=["f", "m"] * 60)
    assert older.groups == (by("sex"),)


def test_the_same_groups_are_proposed_once(tmp_path):
    sex = ["f" if one else "m" for one in GENERATOR.integers(0, 2, ROWS)]
    code = [{"f": 1, "m": 2}[one] for one in sex]
    other = [*code[:-1], 3 - code[-1]]
    plan = plan_of(tmp_path, sex=sex, code=code, other=other)
    assert plan.groups == (by("sex"), by("other"))
    assert any("'sex' and 'code' make the same groups" in one for one in plan.warnings)
    assert not plan.features


def test_parts_of_a_date_are_the_same_groups_as_columns(tmp_path):
    import datetime

    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(ROWS)]
    plan = plan_of(tmp_path, day=days, weekday=[one.weekday() for one in days])
    assert by("weekday") in plan.groups
    assert by("day weekday") not in plan.groups
    assert any("--order day" in one for one in plan.warnings)
    assert not any(
        "--order" in one for one in plan_of(tmp_path, {"order": ("day",)}, day=days).warnings
    )


def test_columns_that_sum_to_the_label(tmp_path):
    casual, registered = GENERATOR.integers(0, 99, ROWS), GENERATOR.integers(0, 999, ROWS)
    plan = plan_of(
        tmp_path,
        casual=casual,
        registered=registered,
        temperature=GENERATOR.normal(size=ROWS).tolist(),
        y=casual + registered,
    )
    (said,) = [one for one in plan.warnings if "sum to" in one]
    assert "Columns 'casual', 'registered' sum to the label 'y'" in said
    assert "--drop 'casual, registered'" in said


@pytest.mark.parametrize("shift", [0.0, 1e-3])
def test_given_by(shift):
    x = GENERATOR.normal(size=(50, 5))
    y = 3.0 * x[:, 1] - x[:, 4] + 2.0 + shift * GENERATOR.normal(size=50)
    assert given_by(x, y) == (None if shift else ([1, 4], False))


def test_of_very_many_columns_those_that_go_best_with_the_label(tmp_path):
    from groupwise.files.proposals import WIDE

    y = GENERATOR.normal(size=ROWS)
    columns = {f"c{i}": GENERATOR.normal(size=ROWS).tolist() for i in range(WIDE + 300)}
    columns["c400"] = (y + 0.3 * GENERATOR.normal(size=ROWS)).tolist()
    plan = plan_of(tmp_path, **columns, y=y.tolist())
    assert len(plan.features) == WIDE
    assert "c400" in plan.features
    values = {name: np.corrcoef(np.array(one), y)[0, 1] for name, one in columns.items()}
    best = sorted(values, key=lambda name: -abs(values[name]))[:WIDE]
    assert {*plan.features} == {*best}
