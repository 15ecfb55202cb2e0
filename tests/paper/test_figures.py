"""What the figures show, before they are drawn."""

import numpy as np
import pytest

from groupwise.datasets import PAPER_SEEDS, medical, synthetic
from groupwise.paper.figures import figures_of
from groupwise.paper.published import EXPERIMENTS, Settings
from groupwise.paper.run import run
from groupwise.paper.tables import Result, summarise
from groupwise.report.figures import draw


def reproduced(data, experiment, order, settings=None):
    settings = settings or Settings()
    runs = [run(data, order, seed, settings) for seed in PAPER_SEEDS[:3]]
    rows = summarise(experiment, order, runs)
    result = Result(EXPERIMENTS[experiment], order, settings, PAPER_SEEDS[:3], runs, rows)
    return result, {figure.name: figure for figure in figures_of(result)}


@pytest.fixture(scope="module")
def small():
    return synthetic("mean", rows=500)


def test_synthetic_figures(small):
    result, figures = reproduced(small, "synthetic-mean", "sorted")
    assert [name.removeprefix("synthetic-mean-sorted-") for name in figures] == [
        *("regret", "per-round", "certificate"),
    ]
    for figure in figures.values():
        assert [panel.title for panel in figure.panels] == list(small.group_names)
    # The curves end at the exact regrets of the table, mean and deviation over the seeds.
    for panel, row in zip(figures["synthetic-mean-sorted-regret"].panels, result.rows, strict=True):
        baseline, ours = panel.lines
        assert ours.x[-1] == row.size
        for line, (mean, spread) in ((baseline, row.exact[0]), (ours, row.exact[1])):
            assert line.y[-1] == pytest.approx(mean)
            assert line.spread[-1] == pytest.approx(spread)
    per_round = figures["synthetic-mean-sorted-per-round"].panels[0].lines[1]
    row = result.rows[0]
    assert per_round.y[-1] == pytest.approx(1000 * row.exact.algorithm_regret[0] / row.size)
    assert per_round.x[0] >= row.size / 20


def test_certificates_lie_above_regrets(small):
    _, figures = reproduced(small, "synthetic-mean", "shuffled")
    for panel in figures["synthetic-mean-shuffled-certificate"].panels:
        ours, certificate = panel.lines
        assert (certificate.y >= ours.y).all()
        assert not panel.note


def test_a_void_certificate_says_so(small):
    wild = small.take(np.arange(300))
    wild.features[150] *= 40  # a forecast far beyond the labels' range
    _, figures = reproduced(wild, "synthetic-mean", "shuffled")
    panel = figures["synthetic-mean-shuffled-certificate"].panels[-1]
    assert panel.note == "void in 3 of 3 runs: a loss left [0, 1]"


def test_without_the_always_on_group_it_has_no_certificate(small):
    _, figures = reproduced(small, "synthetic-mean", "sorted", Settings(always_on=False))
    titles = [panel.title for panel in figures["synthetic-mean-sorted-certificate"].panels]
    assert titles == list(small.group_names[:-1])


def test_medical_figures_against_the_fraction_seen(insurance):
    result, figures = reproduced(medical(insurance), "medical", "shuffled")
    families = figures["medical-shuffled-fraction"].panels
    assert [panel.title for panel in families] == [
        *("Age", "Sex", "Smoking", "Body mass", "Everybody"),
    ]
    assert [panel.title for panel in figures["medical-shuffled-figure-1"].panels] == [
        *("Age and sex", "Smoking"),
    ]
    rows = {row.group: row for row in result.rows}
    smoking = families[2]
    assert [line.label for line in smoking.lines] == ["smoker", "", "non-smoker", ""]
    assert [line.style for line in smoking.lines] == ["solid", "marked"] * 2
    for name, (ours, baseline) in zip(
        ("smoker", "non-smoker"), (smoking.lines[:2], smoking.lines[2:]), strict=True
    ):
        assert ours.x[-1] == 1.0
        assert ours.y[-1] == pytest.approx(rows[name].exact.algorithm_regret[0])
        assert baseline.y[-1] == pytest.approx(rows[name].exact.baseline_regret[0])
    exported = draw(figures["medical-shuffled-fraction"], pdf=False).svg
    assert exported.count("our algorithm") == exported.count("baseline") == 1
    _, other = reproduced(medical(insurance), "medical", "sorted")
    assert "medical-sorted-figure-1" not in other
    assert "medical-sorted-fraction" in other
