"""Means and deviations over seeds, and what counts as a miss."""

import json

import numpy as np
import pytest

from groupwise.datasets import PAPER_SEEDS
from groupwise.paper.published import EXPERIMENTS, Settings
from groupwise.paper.run import Run
from groupwise.paper.tables import (
    Figures,
    Result,
    Row,
    misses,
    summarise,
    summary_table,
    table_of,
    worst,
)
from groupwise.report.tables import Cell, json_text


def a_run(loss, baseline, best, short):
    column = lambda value: np.array([[value / 2, value]])  # noqa: E731
    return Run(
        groups=np.array(["young"]),
        rounds=np.array([[2, 4]]),
        loss=column(loss),
        baseline_loss=column(baseline),
        best_loss=column(best),
        certificate=column(9.0),
        void=np.array([[False, True]]),
        published_best=np.array([short]),
    )


def test_rows_by_hand():
    runs = [a_run(3.0, 5.0, 1.5, 1.0), a_run(4.0, 9.0, 1.5, 0.5)]
    (row,) = summarise("medical", "sorted", runs)
    assert (row.group, row.size) == ("young", 4)
    # In the paper's convention: 5 − 1 = 4 and 9 − 0.5 = 8.5; 3 − 1 = 2 and 4 − 0.5 = 3.5.
    assert row.found == Figures((6.25, 2.25), (2.75, 0.75), 0.75)
    assert row.exact == Figures((5.5, 2.0), (2.0, 0.5), 1.5)
    assert row.published == Figures((0.82, 0.09), (-1.09, 0.07), 5.4)
    deviations = row.deviations()
    assert deviations is not None
    assert deviations.algorithm_regret == pytest.approx((3.84, 0.68))
    assert json.loads(json_text(row.to_dict())) == {
        "group": "young",
        "size": 4,
        "baseline_regret": [6.25, 2.25],
        "algorithm_regret": [2.75, 0.75],
        "best_in_hindsight_loss": 0.75,
        "exact": {
            "baseline_regret": [5.5, 2.0],
            "algorithm_regret": [2.0, 0.5],
            "best_in_hindsight_loss": 1.5,
        },
        "published": {
            "baseline_regret": [0.82, 0.09],
            "algorithm_regret": [-1.09, 0.07],
            "best_in_hindsight_loss": 5.4,
        },
    }


def rows_off_by(place, amount):
    printed = [1.0, 0.1, -2.0, 0.2, 7.0]
    found = list(printed)
    found[place] += amount
    make = lambda v: Figures((v[0], v[1]), (v[2], v[3]), v[4])  # noqa: E731
    return (Row("young", 10, make(found), make(found), make(printed)),)


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("sign", [-1, 1])
def test_any_of_the_five_figures_can_miss(place, sign):
    assert misses(rows_off_by(place, sign * 0.051), 0.05) == ["young"]
    assert misses(rows_off_by(place, sign * 0.049), 0.05) == []
    assert worst(rows_off_by(place, sign * 0.051)) == pytest.approx(0.051)


def a_result(rows, settings=None, seeds=PAPER_SEEDS, experiment="medical"):
    return Result(EXPERIMENTS[experiment], "sorted", settings or Settings(), seeds, [], rows)


def test_a_miss_counts_only_under_the_papers_settings_and_seeds():
    rows = rows_off_by(2, 0.2)
    assert a_result(rows).misses == ["young"]
    assert a_result(rows, Settings(clip=True)).misses == []
    assert a_result(rows, seeds=PAPER_SEEDS[:9]).misses == []
    assert a_result(rows, experiment="adult").misses == []  # no tolerance is known
    assert a_result(rows, experiment="adult").why_not_judged


def test_a_miss_stands_out_in_the_tables():
    missed = a_result(rows_off_by(3, -0.2))
    marks = [cell.mark for cell in table_of(missed).rows[0]]
    assert marks.count("bad") == 1
    cell = table_of(missed).rows[0][marks.index("bad")]
    assert cell.text == "−0.200"  # of the deviation, which is off by more than the mean
    assert summary_table([missed]).rows[0][-1].text == "misses in young"
    fine = a_result(rows_off_by(3, -0.02))
    assert "bad" not in [cell.mark for cell in table_of(fine).rows[0]]
    assert summary_table([fine]).rows[0][-1] == Cell("agrees", "good")


def test_a_group_that_was_not_published_has_no_differences():
    (row,) = rows_off_by(0, 0.0)
    unknown = Row("others", 10, row.found, row.exact, None)
    assert unknown.deviations() is None
    assert worst([unknown]) is None
    assert misses([unknown], 0.0) == []
    assert [cell.text for cell in table_of(a_result([unknown])).rows[0]].count("–") == 6
    assert summary_table([a_result([unknown])]).rows[0][2].text == "–"
