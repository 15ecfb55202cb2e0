"""The paper's sentences: judged as a reader would, on curves made by hand and on the real ones."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from groupwise.datasets import _files, published
from groupwise.datasets.adult import RACES
from groupwise.errors import DatasetError
from groupwise.paper import described, findings, judged, prose, theory
from groupwise.paper.beyond import run
from groupwise.paper.claims import Request, expected
from groupwise.paper.evidence import gathered, printed
from groupwise.paper.statements import (
    FAILS,
    HOLDS,
    UNCHECKED,
    Seen,
    Statement,
    counted,
    tables_of,
)

ROUNDS = np.arange(1.0, 61.0)


def group(baseline, ours, best=None):
    best = ROUNDS if best is None else best
    return Seen("table", "g", ROUNDS, np.asarray(baseline), np.asarray(ours), best)


def test_growth_has_the_exponent_of_the_power_whatever_was_lost_before():
    for start in (0.0, 100.0):
        for power in (0.5, 1.0, 2.0):
            one = group(start + ROUNDS**power, 0.0 * ROUNDS)
            assert one.exponent(one.baseline) == pytest.approx(power)
        one = group(start + np.log(ROUNDS), 0.0 * ROUNDS)
        assert one.exponent(one.baseline) == pytest.approx(0.0)
    falling = group(-ROUNDS, ROUNDS)
    assert falling.exponent(falling.baseline) == -np.inf
    assert not judged.linear([falling]).holds
    assert judged.linear([group(ROUNDS, ROUNDS)]).holds
    assert not judged.linear([group(np.sqrt(ROUNDS), ROUNDS), group(ROUNDS, ROUNDS)]).holds
    assert judged.sublinear([group(np.sqrt(ROUNDS), ROUNDS)]).holds
    assert not judged.sublinear([group(ROUNDS, ROUNDS)]).holds


def test_always_is_at_every_moment():
    below = group(ROUNDS, ROUNDS - 0.5)
    assert judged.always_lower([below]).holds
    late = np.where(ROUNDS <= 6, ROUNDS, ROUNDS - 0.5)  # equal is not lower
    found = judged.always_lower([below, group(ROUNDS, late)])
    assert not found.holds
    assert found.numbers["from"] == pytest.approx(0.1)
    assert "in 1 of 2" in found.found


def test_lower_is_at_the_end_and_as_a_part_of_the_loss():
    one = group(0.5 * ROUNDS, 0.2 * ROUNDS)  # 90 lost, or 72
    assert one.decrease == pytest.approx(0.2)
    assert judged.lower([one], 0.1).holds
    assert not judged.lower([one, group(0.5 * ROUNDS, 0.45 * ROUNDS)], 0.1).holds
    assert not judged.lower([group(ROUNDS, ROUNDS)]).holds


def test_negative_is_below_zero_and_falling():
    assert judged.negative([group(ROUNDS, -ROUNDS)]).holds
    assert not judged.negative([group(ROUNDS, 70.0 - ROUNDS)]).holds
    assert not judged.negative([group(ROUNDS, ROUNDS - 100.0)]).holds
    assert not judged.negative([group(ROUNDS, -ROUNDS), group(ROUNDS, ROUNDS)]).holds


def test_slower_is_over_the_last_half():
    late = np.where(ROUNDS <= 30, 2.0 * ROUNDS, 60.0 + 0.1 * (ROUNDS - 30))
    assert judged.slower([group(ROUNDS, late)]).holds
    assert not judged.slower([group(ROUNDS, late), group(late, ROUNDS)]).holds


def test_verdicts_in_words_numbers_and_tables():
    made = [
        Statement(
            f"s{i}", "1 One" if i < 2 else "2 Two", "claim", "how", "found", holds, {"x": 2.0}
        )
        for i, holds in enumerate((True, False, None))
    ]
    assert [one.verdict for one in made] == [HOLDS, FAILS, UNCHECKED]
    assert made[1].figures() == {"s1/holds": 0.0, "s1/x": 2.0}
    assert made[2].figures() == {"s2/x": 2.0}
    assert [(table.title, len(table.rows)) for table in tables_of(made)] == [
        ("1 One", 2),
        ("2 Two", 1),
    ]
    assert [row[1].text for row in counted(made).rows] == ["1", "1", "1"]


def test_the_printed_tables_say_what_the_prose_says_of_them():
    """Means over the groups, from the data file of the tables alone."""
    said = {
        "synthetic-mean": (33, 20),
        "synthetic-min": (79, 48),
        "synthetic-max": (59, 34),
        "synthetic-permutation": (94, 93),
        "medical": (4.1, 1.9),
        "adult": (568, 14),
    }
    for name, (best, less) in said.items():
        rows = published()[name, "shuffled"]
        found = np.mean([row.best_loss for row in rows])
        gap = np.mean([row.baseline_regret[0] - row.algorithm_regret[0] for row in rows])
        unit = 0.1 if name == "medical" else 1.0
        assert abs(found - best) < unit
        assert abs(gap - less) < unit
        assert len(printed("shuffled", name)) == len(rows)
    assert "its own table agrees" in judged.income(568.0, 14.0)
    assert "does not" in judged.income(600.0, 14.0)
    assert "5 of 5" in judged.of_table(RACES)
    assert judged.less_than_others().holds


@pytest.fixture
def offline(monkeypatch, tmp_path):
    def refused(file, looked_in):
        raise DatasetError(f"{file.name} is not there.")

    monkeypatch.setattr(_files, "_download", refused)
    monkeypatch.setattr(_files, "cache", lambda: tmp_path / "cache")
    monkeypatch.delenv(_files.ENVIRONMENT, raising=False)


@pytest.mark.usefixtures("offline")
def test_what_has_no_data_is_not_checked(tmp_path):
    said: list[str] = []
    request = Request(out=tmp_path, seeds=1, rounds=80, jobs=1, say=said.append)
    evidence = gathered(request)
    assert set(evidence.absent) == {"medical", "adult"}
    assert len(said) == 2
    every = [*findings.statements(evidence), *described.statements(evidence)]
    open_ = {one.name for one in every if one.holds is None}
    assert {"medical-rough", "adult-rough", "theorem-2", "figure-1-lower"} <= open_
    assert "synthetic-two" not in open_
    assert all(one.section in prose.ORDER for one in every)
    with pytest.raises(DatasetError):
        gathered(Request(out=tmp_path, data=tmp_path))


@pytest.mark.slow
def test_every_bound_and_count_holds():
    for sentence in theory.CLAIMS:
        one = theory.judged(sentence)
        assert one.holds is (None if one.name == "literature" else True), one.found
        assert one.section in prose.ORDER


def test_every_always_and_every_rough_number_of_the_paper_is_there(shared_data):
    """Read from the paper's own source, which is no part of the repository."""
    sources = sorted((shared_data.parent / "paper").glob("*.tex"))
    if not sources:
        pytest.skip(f"no paper in {shared_data.parent / 'paper'}")
    text = sources[0].read_text("utf-8")
    caption = r"\\caption\{[^\n]*always has lower regret[^\n]*\n\\label\{([^}]+)\}"
    known = [label for row in findings.CAPTIONS.values() for label in row[:2]]
    assert sorted(re.findall(caption, text)) == sorted(known)
    written = Path(findings.__file__).read_text("utf-8")
    rough = re.findall(r"\\sim ([\d.]+)\$", text)
    assert len(rough) == 10
    for figure in rough:
        assert figure in re.findall(r"[\d.]*\d", written.replace(".0", ""))


@pytest.mark.slow
def test_the_whole_is_as_expected(shared_data, insurance, tmp_path):
    """Every verdict and number, and the files."""
    outcome, page = run("claims", Request(out=tmp_path, data=shared_data, jobs=2))
    timed = [key for key in expected("claims")["numbers"] if key.startswith("time-")]
    assert len(timed) == 3
    for check in outcome.checks:
        assert check.holds, check.found
    record = json.loads((tmp_path / "claims" / "claims.json").read_text("utf-8"))
    with (tmp_path / "claims" / "claims.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["verdict"] for row in rows] == [one["verdict"] for one in record["records"]]
    assert len(rows) > 80
    text = page.read_text("utf-8")
    assert all(section in text for section in prose.ORDER)
