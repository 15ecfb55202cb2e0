"""Groups of probabilities in tables, sentences and sections."""

import math

import numpy as np
import pytest

from groupwise.files import chances
from groupwise.files.chances import Nats, calibrated, calibration, entropy, notes, shares_of
from groupwise.files.tables import group_table
from groupwise.files.units import Scale
from groupwise.regret.calibration import Tally
from groupwise.report.page import Illustration
from groupwise.report.tables import Table


def row(group, rounds, best, regret, single=None, high=None, note=""):
    return {
        "group": group,
        "rounds": float(rounds),
        "loss": best + regret,
        "best_loss": best,
        "best_low": best,
        "best_high": best if high is None else high,
        "best_kind": "exact" if high is None else "bracket",
        "regret": regret,
        "baseline_regret": single,
        "certificate": 9.0,
        "status": "proved",
        "note": note,
    }


SHARES = {"a": [0.75, 0.25], "b": [1.0, 0.0], "always_on": [0.9, 0.1]}
ROWS = [
    row("a", 100, 30.0, 10.0, 30.0),
    row("b", 100, 2.0, 5.0, 1.0, high=4.0, note="the best without the bound loses 3 less"),
    row("always_on", 200, 40.0, 20.0, 20.0),
]
YES = Nats("y", shares=SHARES, classes=["no", "yes"])


def test_entropy():
    assert entropy([0.25, 0.75]) == pytest.approx(-0.25 * math.log(0.25) - 0.75 * math.log(0.75))
    assert entropy([0.25] * 4) == pytest.approx(math.log(4))
    assert entropy([1.0, 0.0]) == 0.0


def test_figures_are_nats_per_round():
    assert YES.figure(ROWS[0]) == 0.4
    assert YES.figure(ROWS[0], None) == 0.3
    assert YES.figure(ROWS[0], "baseline_regret") == 0.6
    assert YES.base_rate(ROWS[0]) == pytest.approx(entropy([0.75, 0.25]))
    assert math.isnan(YES.base_rate(row("new", 3, 1.0, 1.0)))


def test_a_table_with_shares_base_rates_and_brackets():
    table = group_table(YES.ranked(ROWS), YES, "Groups")
    assert [column.title for column in table.columns] == [
        *("group", "rounds", "yes, %", "base rate", "groupwise", "single model"),
        *("best in hindsight", "groupwise", "single model", "certificate"),
    ]
    narrow = group_table(YES.ranked(ROWS), YES, "Groups", narrow=True)
    assert [column.title for column in narrow.columns][-2:] == ["certificate", "status"]
    assert {line[-1].text for line in narrow.rows} == {"proved"}
    assert table.spans[3:5] == [("log loss, nats per round", 4), ("regret, nats", 3)]
    cells = {line[0].text: [cell.text for cell in line] for line in table.rows}
    assert cells["a"] == [
        *("a", "100", "25.0", "0.5623", "0.4000", "0.6000", "0.3000"),
        *("10.00", "30.00", "9.00"),
    ]
    assert cells["b"][6] == "0.0200 to 0.0400"
    marks = {line[0].text: line[4].mark for line in table.rows}
    assert marks == {"everybody (always_on)": "", "a": "good", "b": "bad"}


def test_the_most_frequent_of_several_classes():
    several = Nats("y", shares={"a": [0.2, 0.5, 0.3]}, classes=["x", "<b>", "z"])
    table = group_table(ROWS[:1], several, "Groups")
    assert table.columns[2].title == "most frequent"
    assert table.rows[0][2].text == "<b> 50%"
    assert group_table(ROWS, Nats(), "Groups").columns[2].title == "groupwise"


def test_sentences():
    first, second = YES.headlines(ROWS, {})
    assert first == "Mean log loss 0.3 nats over 200 rows (base rate alone: 0.3251)."
    assert second.startswith("Worst group: a. Over its 100 rounds the mean log loss is 0.4 (base")
    assert "in hindsight, is 0.3, and that of a single model for everybody 0.6." in second
    rows = [{**one, "regret of mine": 2.0 * one["regret"]} for one in ROWS]
    first, second = YES.headlines(rows, {"mine": "regret of mine"})
    assert first.startswith("Mean log loss of mine: 0.4 nats over 200 rows (groupwise: 0.3, base")
    assert "Worst group of mine: a." in second
    assert "its mean log loss is 0.5 (base rate alone: 0.5623); groupwise would have had" in second
    assert YES.gained(ROWS[0]).endswith("0.4 rather than the single model’s 0.6.")
    for said in (first, second, *YES.terms.values(), YES.heading(Scale())):
        assert "RMSE" not in said
        assert "squared" not in said


def test_few_rounds_for_each_feature_say_little():
    tables = {"yes": _tally([0.5] * 60, [0, 1] * 30)}
    assert Nats.of("y", ["no", "yes"], tables, 10).enough == 30
    wide = Nats.of("y", ["no", "yes"], tables, 40)
    assert wide.enough == 80
    assert "under 80 rounds, 2 for every feature" in wide.terms["Small groups"]
    assert wide.is_small(row("a", 79, 1.0, 1.0))
    assert wide.shares["always_on"] == [0.5, 0.5]


def test_a_label_that_is_given_away():
    assert YES.is_exact(row("a", 100, 0.01, 1.0))
    assert not YES.is_exact(row("a", 100, 0.01, 1.0, high=5.0))
    assert not YES.is_exact(row("b", 100, 0.0, 1.0))  # whose labels are all the same


def test_notes():
    single, how_many, table = notes(ROWS, YES)
    assert single == "All labels are the same in b."
    assert str(how_many).startswith("On 1 of 3 groups there is a better logistic model beyond")
    assert isinstance(table, Table)
    (line,) = table.rows
    assert [cell.text for cell in line] == ["b", "the best without the bound loses 3 less"]
    assert table.note == ""
    many = [row(f"g{i}", 40, 1.0, 1.0, note="so") for i in range(chances.TOLD + 2)]
    last = notes(many, YES)[-1]
    assert isinstance(last, Table)
    assert len(last.rows) == chances.TOLD
    assert last.note == "… and 2 more, which regret.json has."
    assert notes([ROWS[0]], YES) == []


def _tally(chance, labels, names=("always_on",)):
    tally = Tally()
    count = len(labels)
    for name in names:
        rows = np.arange(count + 1), np.zeros(count, dtype=np.int64), np.ones(count)
        tally.add([name], *rows, np.array(chance, float), np.array(labels, float))
    return tally.table()


def test_shares_from_calibration():
    assert shares_of({"yes": _tally([0.5] * 4, [1, 0, 0, 0])}) == {"always_on": [0.75, 0.25]}
    classes = {name: _tally([0.3] * 2, labels) for name, labels in _three().items()}
    assert shares_of(classes) == {"always_on": [0.5, 0.5, 0.0]}


def _three():
    return {"x": [1, 0], "y": [0, 1], "z": [0, 0]}


@pytest.mark.usefixtures("two_panels")
@pytest.mark.parametrize("models", [["groupwise"], ["groupwise", "<mine>"]])
def test_the_calibration_of_classes_is_by_group_and_class(models):
    groups = ("always_on", "g=1")
    by_class = {name: _tally([0.3] * 2, labels, groups) for name, labels in _three().items()}
    section = calibration(dict.fromkeys(models, by_class))
    said = [block for block in section.blocks if isinstance(block, str)]
    figures = [block for block in section.blocks if isinstance(block, Illustration)]
    tables = [block for block in section.blocks if isinstance(block, Table)]
    assert len(said) == len(models)
    assert "of 6 pairs of group and class" in said[0]
    assert figures[0].figure.y_label == "share of rows of the class"
    (table,) = tables
    assert {line[0].text for line in table.rows} == {
        *("everybody (always_on): x", "everybody (always_on): y", "everybody (always_on): z"),
        *("g=1: x", "g=1: y", "g=1: z"),
    }
    assert all(line[0].text.startswith("everybody") for line in table.rows[:3])
    assert [span for span, _ in table.spans if span] == ["mean, share", *models]


def test_a_sentence_for_the_terminal():
    sure = {"yes": _tally([0.9] * 100, [0] * 100)}
    (said,) = calibrated({"groupwise": sure})
    assert said.startswith("Calibration error: 0.9 on everybody, where chance explains 0.")
    assert said.endswith("above chance on 1 of 1 groups.")
    both = {**sure, "no": _tally([0.1] * 100, [0] * 100)}
    first, second = calibrated({"groupwise": both, "m": sure})
    assert first.startswith("Calibration error of groupwise, worst for yes: 0.9")
    assert second.startswith("Calibration error of m: 0.9")
    assert calibrated({}) == []
