"""A plan through a model: what is taken down along the way, and what is written."""

import copy
import json
from types import SimpleNamespace

import numpy as np
import pytest

from groupwise.files import run as running
from groupwise.files.pages import compare_page, run_page
from groupwise.files.plan import make_plan
from groupwise.files.run import Following, compare, points, record, run
from groupwise.files.scan import scan
from groupwise.files.settings import Request
from groupwise.files.source import opened
from groupwise.groups import by
from tests.cli.commands import OUTPUTS, people, people_file, predictions_of, write_rows

pytestmark = pytest.mark.usefixtures("two_panels")


GROUPS = [by("sex"), by("city")]


@pytest.fixture
def planned(tmp_path):
    """A scan and a plan for it."""
    with opened(str(people_file(tmp_path / "people.csv", 200))) as source:
        found = scan(source, "pay")
        yield found, make_plan(found, Request(target="pay", groups=GROUPS))


def test_curves_are_the_tables_along_the_way(planned):
    found, plan = planned
    following, tables = Following(found, plan), {}
    for part in following.pieces("test", 1, False):
        assert len(part.predictions) == len(part.piece.numbers)
        if noted := following.reached():
            tables[following.done] = {row["group"]: row for row in noted}
    tables[following.done] = {row["group"]: row for row in following.record()}
    assert following.done == 200
    assert len(tables) >= 40
    for group, curve in following.recorders["regret"].curves().items():
        times = [time for time, table in tables.items() if group in table]
        assert curve.time.tolist() == times
        assert curve.regret.tolist() == [tables[time][group]["regret"] for time in times]
        assert (np.diff(curve.rounds) >= 0).all()


def test_only_the_largest_groups_are_followed(planned, monkeypatch):
    monkeypatch.setattr(running, "FOLLOWED", 2)
    following = Following(*planned)
    for _ in following.pieces("test", 1, False):
        assert len(list(following.reached())) in (0, 2)
    assert len(following.record()) == 6
    sizes = {
        group: curve.time.size for group, curve in following.recorders["regret"].curves().items()
    }
    assert sizes["always_on"] == max(sizes.values())
    assert min(sizes.values()) == 1


def test_fewer_points_where_there_are_many_groups_or_features():
    counts = [points(groups, 12) for groups in (1, 100, 500, 1000, 10_000)]
    assert counts == sorted(counts, reverse=True)
    assert points(100, 100) < points(100, 10)


@pytest.mark.parametrize(("refits", "tables"), [(0, 0), (35_000, 2), (10**9, 3)])
def test_probabilities_are_fitted_along_the_way_while_there_is_time(
    tmp_path, monkeypatch, refits, tables
):
    rows = [(*row[:3], "yes" if row[3] > 10 else "no") for row in people(240)]
    data = write_rows(tmp_path / "data.csv", ("sex", "city", "age", "y"), rows)
    monkeypatch.setattr(running, "REFITS", refits)
    with opened(str(data)) as source:
        found = scan(source, "y")
        following = Following(found, make_plan(found, Request(target="y", groups=GROUPS)))
        noted = []
        for _ in following.pieces("test", 1, False):
            noted += [(following.done, list(table)) for table in [following.reached()] if table]
        finished = following.finished(progress=False)
    assert len(noted) == tables  # of at most REFIT_POINTS, which is 3 here
    assert all(len(table) <= running.REFITTED for _, table in noted)
    assert len(finished.rows) == 6
    assert all(row["best_kind"] == "exact" for row in finished.rows)
    assert finished.curves["always_on"].time.tolist() == [*(time for time, _ in noted), 240]


def test_what_is_written(planned, tmp_path):
    found, plan = planned
    finished = run(found, plan, tmp_path / "out", progress=False)
    assert {path.name for path in (tmp_path / "out").iterdir()} == OUTPUTS
    written = json.loads((tmp_path / "out" / "regret.json").read_text("utf-8"))
    assert written == json.loads(json.dumps(record(finished)))
    assert len(predictions_of(tmp_path / "out" / "predictions.csv")) == 200
    assert (tmp_path / "out" / "report.html").read_text("utf-8") == run_page(finished)
    assert finished.seconds > 0


def test_what_was_known_before_the_first_row_is_written_and_drawn(planned, tmp_path):
    found, plan = planned
    finished = run(found, plan, tmp_path / "out", progress=False)
    written = json.loads((tmp_path / "out" / "regret.json").read_text("utf-8"))
    assert "measured" in written["a_priori"]
    page = run_page(finished)
    assert "a priori" in page
    assert "known before the first row" in page
    for row in written["rows"]:
        assert row["regret"] <= row["a_priori"]
        foreseen, curve = (which[row["group"]] for which in (finished.foreseen, finished.curves))
        assert foreseen.certificate[-1] == row["a_priori"]
        assert curve.certificate[-1] == row["certificate"]
        assert (foreseen.regret == curve.regret).all()
        assert (foreseen.regret <= foreseen.certificate).all()


def test_logged_predictions_have_curves_of_their_own(planned):
    found, _ = planned
    plan = make_plan(found, Request(target="pay"), predictions=["age"])
    compared = compare(found, plan, None, progress=False)
    rows = {row["group"]: row for row in compared.rows}
    for group, curve in compared.logged["age"].items():
        ours = compared.curves[group]
        assert curve.time.tolist() == ours.time.tolist()
        assert curve.rounds.tolist() == ours.rounds.tolist()
        assert curve.regret[-1] == rows[group]["regret of age"]
    assert "logged predictions on every group" in compare_page(compared)


def test_a_run_of_many_pieces_copies_the_model_once(planned, monkeypatch):
    copied = []

    def deepcopy(value):
        copied.append(value)
        return copy.deepcopy(value)

    monkeypatch.setattr("groupwise.turns.copy", SimpleNamespace(deepcopy=deepcopy))
    pieces = list(Following(*planned).pieces("test", 1, False))
    assert len(pieces) > 10
    assert len(copied) == 1
