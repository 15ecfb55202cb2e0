"""Every published figure: medical always, the synthetic tables whole where slow tests run."""

import json

import pytest

from groupwise.datasets import PAPER_SEEDS, medical, published, synthetic
from groupwise.paper.published import Settings
from groupwise.paper.reproduction import Plan, reproduce
from groupwise.paper.run import run
from groupwise.paper.tables import summarise

KEYS = ("baseline_regret", "algorithm_regret")
SYNTHETIC = ["synthetic-mean", "synthetic-min", "synthetic-max", "synthetic-permutation"]


def largest_difference(rows, experiment, order):
    """From the published figures themselves, not as the code under test compares them."""
    printed = published()[experiment, order]
    assert [row["group"] for row in rows] == [row.group for row in printed]
    assert [row["size"] for row in rows] == [row.size for row in printed]
    differences = []
    for row, expected in zip(rows, printed, strict=True):
        differences.append(row["best_in_hindsight_loss"] - expected.best_loss)
        for key in KEYS:
            differences += [a - b for a, b in zip(row[key], getattr(expected, key), strict=True)]
    return max(map(abs, differences))


@pytest.mark.parametrize("order", ["shuffled", "sorted"])
def test_medical(insurance, order):
    data = medical(insurance)
    runs = [run(data, order, seed, Settings()) for seed in PAPER_SEEDS]
    rows = [row.to_dict() for row in summarise("medical", order, runs)]
    assert largest_difference(rows, "medical", order) <= 0.05


@pytest.mark.parametrize("label", ["mean", "permutation"])
def test_one_synthetic_run_lies_within_the_published_spread(label):
    data = synthetic(label)
    rows = summarise(data.name, "sorted", [run(data, "sorted", PAPER_SEEDS[0], Settings())])
    for row in rows:
        assert row.published is not None
        for found, (mean, spread) in zip(row.found[:2], row.published[:2], strict=True):
            assert abs(found[0] - mean) <= 3 * spread + 0.005, row.group
        best = row.published.best_in_hindsight_loss
        assert row.found.best_in_hindsight_loss == pytest.approx(best, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("experiment", SYNTHETIC)
def test_synthetic(tmp_path, experiment):
    reproduction = reproduce(Plan([experiment], out=tmp_path))
    for order in ("shuffled", "sorted"):
        stored = json.loads((tmp_path / f"{experiment}-{order}.json").read_text("utf-8"))
        assert largest_difference(stored["rows"], experiment, order) <= 0.01
    assert all(not result.why_not_judged and not result.misses for result in reproduction.results)


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_ray_gives_the_same_files(shared_data, insurance, tmp_path):
    pytest.importorskip("ray")
    for engine in ("local", "ray"):
        reproduce(Plan(["medical"], data=shared_data, out=tmp_path / engine, jobs=2, engine=engine))
    for path in (tmp_path / "local").glob("medical-*"):
        assert path.read_bytes() == (tmp_path / "ray" / path.name).read_bytes()
