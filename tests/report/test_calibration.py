"""Calibration on a page: what is drawn and said, against the table it comes from."""

import re

import numpy as np
import pytest

from groupwise.regret.calibration import CalibrationTable, Tally
from groupwise.report.calibration import (
    DRAWN,
    calibration_section,
    calibration_table,
    excess,
    ranked,
    reliability,
    verdict,
)
from groupwise.report.figures import draw, inline
from groupwise.report.page import Illustration, Page, html
from groupwise.report.tables import Table
from tests.html import without_script

HOSTILE = "<script>alert('$x$ & y')</script>"


def counted(chances, labels, groups):
    """The calibration of predictions on groups: {name: which rows}."""
    tally = Tally()
    for name, rows in groups.items():
        chosen = np.asarray(rows)
        indptr, where = np.arange(chosen.size + 1), np.zeros(chosen.size, dtype=np.int64)
        tally.add([name], indptr, where, np.ones(chosen.size), chances[chosen], labels[chosen])
    return tally.table()


@pytest.fixture(scope="module")
def table():
    """Two groups that are calibrated, one that is not, and one whose labels are all the same."""
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    y = (rng.random(3000) < p).astype(float)
    off = np.arange(1000, 2000)
    y[off] = (rng.random(1000) < 0.5 * p[off]).astype(float)
    groups = {
        "fine": np.arange(1000),
        HOSTILE: off,
        "small": np.arange(2000, 2040),
        "none": np.flatnonzero(y == 0.0)[:50],
        "always_on": np.arange(3000),
    }
    return counted(p, y, groups)


def test_groups_are_ranked_by_what_chance_does_not_explain(table):
    rows = ranked(table)
    assert rows[0]["group"] == "always_on"
    assert rows[1]["group"] in (HOSTILE, "none")
    assert [excess(row) for row in rows[1:]] == sorted(map(excess, rows[1:]), reverse=True)
    assert excess(table["fine"]) < 0.0 < excess(table[HOSTILE])


def test_the_table_has_the_figures_and_marks_what_chance_does_not_explain(table):
    made = calibration_table(table, name=str.upper)
    assert [row[0].text for row in made.rows] == [row["group"].upper() for row in ranked(table)]
    assert len(made.columns) == len(made.rows[0]) == 10
    by_name = {row[0].text: row for row in made.rows}
    off, fine, none = (by_name[group.upper()] for group in (HOSTILE, "fine", "none"))
    figures = table[HOSTILE]
    assert off[1].text == "1,000"
    assert off[4].text == f"+{figures['gap']:.3f}"
    assert off[7].text == f"{figures['auc']:.3f}"
    assert (off[8].text, off[8].mark) == (f"{figures['ece']:.3f}", "bad")
    assert fine[8].mark == ""
    assert none[7].text == "–"
    assert len(calibration_table(table, most=2).rows) == 2


def test_rare_events_have_digits_enough():
    p = np.full(5000, 0.001)
    y = np.zeros(5000)
    y[:4] = 1.0
    made = calibration_table(counted(p, y, {"g": np.arange(5000)}))
    assert [cell.text for cell in made.rows[0][2:5]] == ["0.00080", "0.00100", "+0.00020"]
    (panel,) = reliability({"ours": counted(p, y, {"g": np.arange(5000)})}).panels
    assert panel.limits is not None
    assert panel.limits[0] == 0.0
    assert 0.001 < panel.limits[1] < 0.01


def test_the_verdict(table):
    said = verdict(table, lambda group: f"«{group}»")
    assert "On 3 of 5 groups" in said
    assert "that would be about 1." in said
    worst = max(table, key=excess)
    assert f"Worst: «{worst['group']}», {worst['ece']:.3f}" in said
    assert "too high by" in said
    rng = np.random.default_rng(1)
    p = rng.random(500)
    good = counted(p, (rng.random(500) < p).astype(float), {"g": np.arange(500)})
    assert verdict(good).startswith("On none of 1 groups")
    assert verdict(CalibrationTable.of([], 0)) == "No row has been counted yet."


def test_panels_show_the_curves_of_the_table(table):
    figure = reliability({"ours": table})
    assert [panel.title for panel in figure.panels] == [row["group"] for row in ranked(table)]
    panel = next(panel for panel in figure.panels if panel.title == HOSTILE)
    ideal, band, ours = panel.lines
    curve = table.curve(HOSTILE, 12)
    assert ours.x.tolist() == [point["mean_prediction"] for point in curve]
    assert ours.y.tolist() == [point["mean_label"] for point in curve]
    assert band.spread is not None
    assert (band.y + band.spread).tolist() == pytest.approx([point["high_95"] for point in curve])
    assert (band.y - band.spread).tolist() == pytest.approx([point["low_95"] for point in curve])
    assert ideal.x.tolist() == ideal.y.tolist() == [0.0, 1.0]
    assert panel.note.startswith("1,000 rows; error ")
    assert panel.bars is not None
    edges, heights = panel.bars
    assert (heights * np.diff(edges)).sum() == pytest.approx(1000.0)
    assert np.diff(edges).min() >= 0.08 - 1e-9
    assert (edges[0], edges[-1]) == (0.0, 1.0)


@pytest.mark.parametrize(("low", "limits"), [(0.0, (0.0, 0.25)), (0.8, (0.75, 1.0))])
def test_where_all_is_close_to_certain_that_part_is_shown(low, limits):
    rng = np.random.default_rng(2)
    p = low + 0.2 * rng.random(2000)
    y = (rng.random(2000) < p).astype(float)
    (panel,) = reliability({"ours": counted(p, y, {"g": np.arange(2000)})}).panels
    assert panel.limits == pytest.approx(limits)
    assert panel.bars is not None
    assert (panel.bars.heights * np.diff(panel.bars.edges)).sum() == pytest.approx(2000.0)


def test_of_many_groups_the_worst_are_drawn(table):
    rng = np.random.default_rng(3)
    p = rng.random(1000)
    y = (rng.random(1000) < p).astype(float)
    many = counted(p, y, {f"g{i}": np.arange(i, 1000, 20) for i in range(20)})
    figure = reliability({"ours": many})
    worst = [row["group"] for row in ranked(many)]
    assert [panel.title for panel in figure.panels] == worst[:DRAWN]
    assert figure.caption.startswith(f"The {DRAWN} worst of 20 groups.")
    chosen = reliability({"ours": many}, ["g3", "g1"], str.upper)
    assert [panel.title for panel in chosen.panels] == ["G3", "G1"]


def test_several_models_share_a_panel(table):
    other = CalibrationTable.of([one for one in table.sums if one.group != "small"], 1)
    figure = reliability({"ours": table, "theirs": other})
    lines = {panel.title: [line.label for line in panel.lines[2:]] for panel in figure.panels}
    assert lines["fine"] == ["ours", "theirs"]
    assert lines["small"] == ["ours"]
    colours = {line.label: line.colour for line in figure.panels[0].lines}
    assert len({colours["ours"], colours["theirs"], colours["calibrated"]}) == 3


@pytest.mark.slow
def test_the_drawing_is_the_same_every_time_and_within_its_cells(table):
    figure = reliability({"ours": table})
    one, other = draw(figure), draw(figure)
    assert one.svg == other.svg
    assert one.pdf.startswith(b"%PDF")
    cut = inline(figure, one)
    assert len(cut.panels) == 5
    for (_, svg), (left, top, width, height) in zip(cut.panels, one.cells, strict=True):
        points = re.findall(r'd="M ([\d.]+) ([\d.]+) [^"]*" clip-path', svg)
        assert len(points) > 8  # lines, and bars
        for x, y in points:
            assert left <= float(x) <= left + width
            assert top <= float(y) <= top + height


def test_the_section_is_escaped_and_whole(table):
    section = calibration_section({HOSTILE: table, "other": table}, most=3)
    kinds = [type(block) for block in section.blocks]
    assert kinds == [str, str, Illustration, Table, Table]
    page = html(Page("Title", [], None, [section], {}))
    assert "<script" not in without_script(page)
    assert "var(--series-1)" in page
    assert page.count('class="key band"') == 1
    alone = calibration_section({"ours": table})
    assert [type(block) for block in alone.blocks] == [str, Illustration, Table]
    empty = calibration_section({"ours": CalibrationTable.of([], 0)})
    assert [type(block) for block in empty.blocks] == [str, Table]
