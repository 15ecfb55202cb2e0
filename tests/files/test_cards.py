"""Group by group: which panels there are, and what they show."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from groupwise.files.cards import BEFORE, CERTIFICATE, INTERVAL, _Panels, cards
from groupwise.files.plan import make_plan
from groupwise.files.run import compare
from groupwise.files.scan import scan
from groupwise.files.settings import Request
from groupwise.files.source import opened
from groupwise.files.tables import OURS, SINGLE, regret_scale
from groupwise.files.units import Scale
from tests.cli.commands import people, write_rows


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """Our predictions of a label beside those of a model that is always 3 too high."""
    rows = [(*row, row[-1] + 3.0) for row in people(300)]
    path = tmp_path_factory.mktemp("cards") / "people.csv"
    write_rows(path, ("sex", "city", "age", "pay", "high"), rows)
    with opened(str(path)) as source:
        found = scan(source, "pay")
        request = Request(target="pay").with_options(groups="city")
        return compare(found, make_plan(found, request, predictions=["high"]), None, progress=False)


def test_a_card_for_each_of_the_first_groups(audited):
    found = cards(audited, 2)
    assert [card.title for card in found.cards] == [
        "everybody (always_on)",
        "city=" + worst(audited),
    ]
    for card in found.cards:
        kinds = [title for title, _ in card.panels]
        assert kinds == ["Error over time", "Residuals", "Regret over time"]
        assert re.search(
            r"high: bias \+3.0+ \(\+3.0+ to \+3.0+\) pay · error 3 \(3 to 3\) pay", card.text
        )
        assert "groupwise: bias" in card.text
    assert {label for label, *_ in found.legend} >= {"high", OURS, SINGLE, INTERVAL}


def worst(audited):
    return audited.rows[1]["group"].removeprefix("city=")


def test_panels_show_what_was_counted(audited):
    row = audited.rows[0]
    panels = _Panels(audited, row, regret_scale(audited.rows, audited.players))
    time = panels.over_time()
    assert time is not None
    lines = {line.label: line for line in time.lines}
    assert lines["high"].y == pytest.approx(3.0)
    assert lines[OURS].y[-1] < lines[OURS].y[0]  # it learns
    best = audited.measure.figure(row, None)
    assert lines["best in hindsight, all rounds"].y == pytest.approx(best)
    spread = panels.residuals()
    assert spread is not None
    high = next(line for line in spread.lines if line.label == "high")
    assert high.spread is not None
    areas = np.diff(high.x)[::2] > 0.0
    assert areas.all()
    assert (high.y + high.spread)[::2].sum() == pytest.approx(100.0)  # per cent of the rounds
    inside = (high.x > 2.0) & (high.x < 4.0)
    assert (high.y + high.spread)[inside].max() > 90.0


@pytest.mark.parametrize(("factor", "drawn"), [(1.0, True), (1e3, False)])
def test_a_certificate_is_drawn_where_it_can_be_seen(audited, factor, drawn):
    group = audited.rows[0]["group"]
    curve = audited.curves[group]
    largest = np.abs(np.concatenate([curve.regret, curve.baseline_regret])).max()
    near = curve._replace(certificate=np.full(curve.time.size, factor * largest))
    alone = replace(audited, curves={group: near}, logged={}, players={})
    panel = _Panels(alone, audited.rows[0], Scale()).regret()
    assert panel is not None
    assert any(line.label == CERTIFICATE for line in panel.lines) == drawn


@pytest.mark.parametrize(("factor", "drawn"), [(2.0, True), (1e3, False), (math.nan, False)])
def test_what_was_known_before_is_drawn_beside_it(audited, factor, drawn):
    group = audited.rows[0]["group"]
    curve = audited.foreseen[group]
    largest = np.abs(np.concatenate([curve.regret, curve.baseline_regret])).max()
    near = curve._replace(certificate=np.full(curve.time.size, factor * largest))
    alone = replace(audited, foreseen={group: near}, logged={}, players={})
    panel = _Panels(alone, audited.rows[0], Scale()).regret()
    assert panel is not None
    assert any(line.label == BEFORE for line in panel.lines) == drawn


def test_no_panel_without_a_curve(audited):
    row = {**audited.rows[0], "group": "nobody"}
    panels = _Panels(replace(audited, curves={}), row, Scale())
    assert panels.regret() is None
    assert panels.over_time() is None
    assert panels.residuals() is None
