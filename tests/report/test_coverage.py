"""Coverage and widths over time, from sums at moments: against the rounds themselves."""

import numpy as np

from groupwise.intervals import CoverageTable
from groupwise.report.coverage import Style, coverage_section, over_time, widths_over_time


def moments_of(rounds, missed, width, every):
    """What was counted of one group at every so many rounds."""
    return [
        {"all": (rounds[:t].sum(), missed[:t].sum(), (rounds * width)[:t].sum())}
        for t in range(every, len(rounds) + 1, every)
    ]


def table_of(moments):
    rounds, missed, width = moments[-1]["all"]
    row = {
        "group": "all",
        "rounds": rounds,
        "coverage": 1.0 - missed / rounds,
        "error": 0.1 - missed / rounds,
        "missed": missed,
        "excess": missed - 0.1 * rounds,
        "mean_width": width / rounds,
    }
    return CoverageTable([row], 0.9, int(rounds))


def test_curves_are_of_the_rounds_of_their_stretch():
    draw = np.random.default_rng(0)
    rounds, width = np.ones(1_200), np.repeat([5.0, 1.0, 3.0], 400)
    missed = (draw.random(1_200) < 0.1).astype(float)
    ours, theirs = moments_of(rounds, missed, width, 50), moments_of(rounds, missed, 9 * width, 50)
    both = {"groupwise": ours, "theirs": theirs}
    (panel,) = widths_over_time(both, table_of(ours), Style(unit="pay")).panels
    for line, factor in zip(panel.lines, (1.0, 9.0), strict=True):
        assert line.x.tolist() == list(range(100, 1_201, 100))
        np.testing.assert_allclose(line.y, factor * width.reshape(12, 100).mean(axis=1))
    (panel,) = over_time(both, table_of(ours)).panels
    stretches, so_far, other = panel.lines
    shares = 100 * (0.1 - missed.reshape(12, 100).mean(axis=1))
    np.testing.assert_allclose(stretches.y, shares, atol=1e-9)
    np.testing.assert_allclose(so_far.y, other.y)
    np.testing.assert_allclose(so_far.y[-1], 100 * (0.1 - missed.mean()), atol=1e-9)


def test_a_page_has_both_and_a_line_for_every_model():
    rounds = np.ones(300)
    sums = moments_of(rounds, np.zeros(300), rounds, 30)
    tables = {"groupwise": table_of(sums), "theirs": table_of(sums)}
    section = coverage_section(tables, {"groupwise": sums, "theirs": sums}, Style(unit="pay"))
    drawn = [block.figure for block in section.blocks if hasattr(block, "figure")]
    assert [figure.name for figure in drawn] == ["coverage", "widths"]
    assert drawn[1].y_label == "width, pay"
    assert [line.label for line in drawn[1].panels[0].lines] == ["groupwise", "theirs"]
