"""The naive benchmark against a refit from scratch in every round, and against the paper."""

import numpy as np
import pytest

from benchmarks.naive import log_weight, naive
from groupwise.datasets import PAPER_SEEDS, medical, paper_order, published, synthetic


def stream(rows=60, groups=4, dimension=3, fractional=False, seed=0):
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(rows, dimension))
    label = generator.random(rows)
    membership = (generator.random((rows, groups)) < 0.5).astype(float)
    if fractional:
        membership *= generator.random((rows, groups))
    membership[5] = 0  # nobody is awake, as in some other rows by chance
    return features, label, membership


def by_definition(features, label, membership, penalty, play, clip):
    """Every quantity from the whole past, by its definition; plain exponentials."""
    rows, groups = membership.shape
    advice = np.full((rows, groups), np.nan)
    weights = np.zeros((rows, groups))
    played = np.empty(rows)
    gains = np.zeros((rows, groups))

    def potential(regret, spread):
        return np.exp(np.maximum(regret, 0) ** 2 / (3 * spread))

    for t in range(rows):
        awake = membership[t] > 0
        if not awake.any():
            played[t] = (0.5 - label[t]) ** 2
            continue
        for g in np.flatnonzero(awake):
            past, importance = features[:t], membership[:t, g, None]
            gram = penalty * np.eye(features.shape[1]) + past.T @ (importance * past)
            theta = np.linalg.solve(gram, past.T @ (importance[:, 0] * label[:t]))
            advice[t, g] = theta @ features[t]
        if clip:
            advice[t] = np.clip(advice[t], 0, 1)
        regret, spread = gains[:t].sum(axis=0), np.abs(gains[:t]).sum(axis=0)
        weight = potential(regret + 1, spread + 1) - potential(regret - 1, spread + 1)
        weight *= membership[t]
        weights[t] = weight / weight.sum() if weight.any() else membership[t] / membership[t].sum()
        losses = (np.where(awake, advice[t], 0) - label[t]) ** 2
        mean = weights[t] @ np.where(awake, advice[t], 0)
        played[t] = weights[t] @ losses if play == "sample" else (mean - label[t]) ** 2
        gains[t] = membership[t] * (played[t] - losses)
    return advice, weights, played


@pytest.mark.parametrize("play", ["sample", "mean"])
@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_agrees_with_the_definition(play, clip, fractional):
    features, label, membership = stream(fractional=fractional)
    result = naive(features, label, membership, penalty=0.7, play=play, clip=clip)
    advice, weights, played = by_definition(features, label, membership, 0.7, play, clip)

    assert result.advice == pytest.approx(advice, rel=1e-9, abs=1e-12, nan_ok=True)
    assert result.weights == pytest.approx(weights, rel=1e-9, abs=1e-12)
    assert result.expected_loss == pytest.approx(played, rel=1e-9, abs=1e-12)
    mean = np.nansum(weights * advice, axis=1)
    mean[~membership.any(axis=1)] = 0.5
    assert result.prediction == pytest.approx(mean, rel=1e-9, abs=1e-12)
    assert result.group_loss == pytest.approx(
        [sum(membership[:, g] * played) for g in range(membership.shape[1])]
    )


def test_weights_survive_where_the_plain_formula_overflows():
    assert log_weight(5_000.0, 5_000.0) == pytest.approx(5_001**2 / 15_003 - np.log(2), abs=0.5)
    assert log_weight(-1.0, 3.0) == -np.inf
    assert log_weight(0.0, 0.0) == pytest.approx(np.log(np.expm1(1 / 3) / 2))


def test_experts_without_weight_share_by_membership():
    # The first two learn 0 and the third 1; then labels are 1 and each of the first two loses
    # to the third until its regret is below -1, where weights vanish.
    alone = [([1, 0, 0], 0.0), ([0, 1, 0], 0.0), ([0, 0, 1], 1.0)] * 100
    lost = [([1, 0, 1], 1.0), ([0, 1, 1], 1.0)] * 5
    rounds = [*alone, *lost, ([0.25, 0.75, 0], 1.0)]
    membership = np.array([awake for awake, _ in rounds])
    label = np.array([y for _, y in rounds])
    result = naive(np.ones((len(rounds), 1)), label, membership)
    assert result.weights[-2].tolist() == [0, 0, 1]
    assert result.weights[-1].tolist() == [0.25, 0.75, 0]


def regrets(data, seed, order):
    """Of the algorithm and the baseline, per group, in the paper's convention."""
    data = data.take(paper_order(data.rows, seed, data.sort_key if order == "sorted" else None))
    result = naive(data.features, data.label, data.membership)
    baseline = (result.advice[:, -1] - data.label) ** 2
    table = []
    for g in range(len(data.group_names)):
        inside = data.membership[:, g] == 1
        x, y = data.features[inside][:-1], data.label[inside][:-1]
        best = float(np.sum((x @ np.linalg.lstsq(x, y, rcond=None)[0] - y) ** 2))
        table.append((baseline[inside].sum() - best, result.group_loss[g] - best, best))
    return np.array(table)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["shuffled", "sorted"])
def test_reproduces_the_medical_tables(insurance, order):
    data = medical(insurance)
    runs = np.array([regrets(data, seed, order) for seed in PAPER_SEEDS])
    for row, mean, deviation in zip(
        published()["medical", order], runs.mean(axis=0), runs.std(axis=0), strict=True
    ):
        printed = [row.baseline_regret[0], row.algorithm_regret[0], row.best_loss]
        assert mean == pytest.approx(printed, abs=0.03), row.group
        printed = [row.baseline_regret[1], row.algorithm_regret[1]]
        assert deviation[:2] == pytest.approx(printed, abs=0.03), row.group


@pytest.mark.slow
@pytest.mark.parametrize("label", ["mean", "permutation"])
def test_a_synthetic_run_lies_within_the_published_spread(label):
    data = synthetic(label)
    for row, found in zip(
        published()[data.name, "sorted"], regrets(data, PAPER_SEEDS[0], "sorted"), strict=True
    ):
        for (mean, deviation), value in zip(
            (row.baseline_regret, row.algorithm_regret), found[:2], strict=True
        ):
            assert abs(value - mean) <= 3 * deviation + 0.005, row.group
        assert found[2] == pytest.approx(row.best_loss, abs=0.01), row.group
