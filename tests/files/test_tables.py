"""Groups in tables and sentences."""

import math

import pytest

from groupwise.files.tables import Measure, afterwards, group_table, title_of

PAY = Measure("pay")


def row(group, rounds, regret, baseline=None, best=0.0, status="proved"):
    return {
        "group": group,
        "rounds": float(rounds),
        "loss": best + regret,
        "best_loss": best,
        "regret": regret,
        "baseline_regret": baseline,
        "certificate": 2.0 * abs(regret),
        "status": status,
    }


ROWS = [
    row("small", 5, 4.0, 9.0),
    row("b", 100, 1.0, 6.0, 24.0),
    row("a", 50, 2.0, 2.0, 16.0),
    row("always_on", 150, 3.0, 3.0, 40.0),
]


def test_everybody_first_then_the_worst_per_round_and_small_groups_last():
    assert [one["group"] for one in PAY.ranked(ROWS)] == ["always_on", "a", "b", "small"]
    assert PAY.worst(ROWS) == ROWS[2]
    assert PAY.worst(ROWS[:1]) == ROWS[0]
    assert PAY.worst(ROWS[3:]) == ROWS[3]


def test_no_sentence_names_a_group_to_which_anything_can_be_fitted():
    fitted = {**row("fitted", 40, 30.0, 39.0), "few_rows": True}
    assert PAY.worst([fitted, *ROWS]) == PAY.worst(ROWS)
    assert PAY.most_gained([fitted, *ROWS]) == PAY.most_gained(ROWS)
    assert [one["group"] for one in PAY.ranked([fitted, *ROWS])][-2:] == ["small", "fitted"]
    every = [fitted, {**ROWS[3], "few_rows": True}]
    assert PAY.worst([fitted, ROWS[3]]) is None  # everybody is no group
    assert PAY.worst(every) is None
    assert PAY.worst(every[1:]) is None
    for rows in ([fitted, ROWS[3]], every):
        (said,) = PAY.headlines(rows, {})
        assert said.startswith("Which group is the worst cannot be told: none has more rounds")
        (said,) = PAY.headlines(rows, {"mine": "baseline_regret"})
        assert said.startswith("mine: Which group is the worst cannot be told")
    table = group_table([fitted, *ROWS], PAY, "Groups")
    assert table.columns[-1].title == "status"
    assert [line[-1].text for line in table.rows][:2] == ["proved, few rows", "proved"]
    assert {cell.mark for cell in table.rows[0][1:]} == {"faint"}


@pytest.mark.parametrize("status", ["loose", "vacuous", "void"])
def test_a_certificate_that_says_little_is_grey(status):
    table = group_table([row("a", 50, 1.0, status=status), *ROWS[1:3]], PAY, "Groups")
    assert [line[-2].mark for line in table.rows] == ["faint", "", ""]
    assert [line[-1].text for line in table.rows] == [status, "proved", "proved"]


def test_the_group_on_which_most_is_gained():
    gained = PAY.most_gained(ROWS)
    assert gained is not None
    assert gained["group"] == "b"
    assert PAY.most_gained([row("a", 50, 2.0, 1.0)]) is None
    assert PAY.most_gained([row("a", 50, 2.0)]) is None
    # in the figures of the sentence and of the table: 0.3 here, though 8² − 7.75² is more than
    # 4² − 3.7² per round
    far, near = row("far", 100, 6006.25, 6400.0), row("near", 100, 1369.0, 1600.0)
    assert PAY.most_gained([far, near]) == near


def test_typical_errors():
    assert PAY.figure(ROWS[1]) == 0.5
    assert PAY.figure(ROWS[1], None) == math.sqrt(0.24)
    assert PAY.figure(ROWS[1], "baseline_regret") == math.sqrt(0.3)
    assert math.isnan(PAY.figure(row("a", 5, 1.0), "baseline_regret"))


def test_a_row_per_group_and_marks_where_it_matters():
    table = group_table(PAY.ranked(ROWS), PAY, "Groups")
    assert [column.title for column in table.columns] == [
        *("group", "rounds", "groupwise", "single model", "best in hindsight"),
        *("groupwise", "single model", "certificate"),
    ]
    cells = {line[0].text: line for line in table.rows}
    assert list(cells) == ["everybody (always_on)", "a", "b", "small"]
    assert [cell.text for cell in cells["b"]] == [
        *("b", "100", "0.500", "0.548", "0.490"),
        *("1.000", "6.000", "2.000"),
    ]
    assert cells["b"][2].mark == "good"
    assert cells["a"][2].mark == ""
    assert cells["small"][2].mark == "faint"
    shown = group_table([row("a", 50, 1.0, status="void")], Measure(), "Groups")
    assert shown.columns[-1].title == "status"
    assert [cell.text for cell in shown.rows[0]][3] == "–"


def test_sentences():
    (said,) = PAY.headlines(ROWS, {})
    assert said.startswith("Worst group: a. Over its 50 rounds a prediction is typically off by")
    assert said.endswith("and a single model for everybody by 0.6.")
    assert "single model" not in PAY.headlines([row("a", 50, 1.0)], {})[0]
    assert title_of("x" * 80, 10) == "xxxxxx…xxx"
    long = [title_of(f"{'health=excellent & ' * 4}limitation={one}") for one in ("no", "yes")]
    assert long[0] != long[1]


@pytest.mark.parametrize(("best", "rounds", "count"), [(1e-9, 100, 1), (1.0, 100, 0), (0.0, 5, 0)])
def test_a_label_that_the_features_give_exactly_is_pointed_out(best, rounds, count):
    assert len(afterwards([row("always_on", rounds, 1.0, best=best)], "pay", PAY)) == count


EXPERT = [
    {**one, "loss of mine": lost, "certificate against mine": 1.0}
    for one, lost in zip(ROWS, (1.0, 30.0, 8.0, 42.0), strict=True)
]


def test_an_expert_beside_us():
    table = group_table(PAY.ranked(EXPERT), PAY, "Groups", experts=["mine"])
    assert [column.title for column in table.columns] == [
        *("group", "rounds", "mine", "groupwise", "single model", "best in hindsight"),
        *("groupwise", "single model", "certificate", "regret", "certificate"),
    ]
    assert table.spans[-2:] == [("regret, pay²", 3), ("against mine, pay²", 2)]
    cells = {line[0].text: line for line in table.rows}
    assert cells["b"][2].text == "0.548"  # √(30 / 100)
    assert [cell.text for cell in cells["b"]][-2:] == ["−5.000", "1.000"]  # 25 − 30, and as it is
    assert cells["b"][-2].mark == "good"
    assert [cell.text for cell in cells["a"]][-2:] == ["10.000", "1.000"]
    assert cells["a"][-2].mark == "bad"
    both = group_table(EXPERT, PAY, "Groups", {"mine": "baseline_regret"}, experts=["mine"])
    assert [column.title for column in both.columns].count("mine") == 2  # error and regret, once


def test_a_sentence_about_an_expert():
    assert PAY.beside(EXPERT, "mine") == (
        "Expert mine is typically off by 0.5292 on everybody, groupwise by 0.5354. Groupwise is "
        "worse on 1 of 3 groups, most on a: off by 0.6 rather than 0.4."
    )
    better = [{**one, "loss of mine": 99.0} for one in EXPERT[1:3]]
    assert PAY.beside(better, "mine") == "On no group is groupwise noticeably worse than mine."
