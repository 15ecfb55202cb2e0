"""W: closed forms against integrals, and what was sampled against the truth."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from groupwise.learners import FTPL
from groupwise.learners.ftpl import FTPLBank
from groupwise.learners.widths import above_mean, beyond, of_oracle, of_table
from groupwise.losses import Linear
from groupwise.oracles import Finite, ShortestPath
from groupwise.protocols import Setting


def bank(oracle):
    return FTPLBank(FTPL(oracle, cost_norm=1.0), 0, Setting(Linear(0.0, 1.0), 0, 1, 0))


@pytest.mark.parametrize("k", [1, 2, 3, 7, 40])
def test_two_policies_have_a_closed_form(k):
    """E max(0, S) = ½ E|S| = (1/π) ∫ (1 − φ(t))/t² dt, φ = (1 + t²)⁻ᵏ that of k Laplace."""
    exact = mp.quad(lambda t: (1 - (1 + t**2) ** -k) / t**2, [0, 1, 10, mp.inf]) / mp.pi
    found = of_table(np.vstack([np.zeros(k), np.ones(k)]))
    assert not found.sampled
    assert found.value == pytest.approx(float(exact), rel=1e-9)
    apart = np.zeros((2, 2 * k))
    apart[0, :k] = apart[1, k:] = 1.0
    wider = mp.quad(lambda t: (1 - (1 + t**2) ** (-2 * k)) / t**2, [0, 1, 10, mp.inf]) / mp.pi
    assert of_table(apart).value == pytest.approx(float(wider), rel=1e-9)


def test_one_policy_and_all_policies():
    assert of_table(np.ones((3, 4))) == (0.0, False)
    every = np.array(list(itertools.product([0, 1], repeat=5)), dtype=float)
    assert of_table(every) == (2.5, False)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_sampled_is_above_the_truth_and_near(seed):
    """The truth from many more draws, less what they may be wrong by."""
    generator = np.random.default_rng(seed)
    table = generator.integers(2, size=(12, 10)).astype(float)
    noise = np.random.default_rng(99).laplace(size=(400_000, 10))
    most = (noise @ table.T).max(axis=1)
    truth, wrong = most.mean(), 4.0 * most.std() / math.sqrt(len(most))
    found = of_table(table)
    assert found.sampled
    assert truth - wrong <= found.value <= 1.15 * truth
    asked = of_oracle(lambda z: float((table @ z.ravel()).min()), (10, 1), 1_000)
    assert asked.sampled
    assert asked.value >= truth - wrong


def test_the_margin_is_hardly_ever_too_small():
    """Of Bernoulli draws, whose mean is known: never in many repetitions, and not by much."""
    generator, share = np.random.default_rng(3), 0.07
    found = [above_mean((generator.random(500) < share).astype(float), 1.0) for _ in range(2_000)]
    assert min(found) >= share
    assert np.mean(found) < share + 0.15


@pytest.mark.parametrize(("entries", "cut"), [(1, 3.0), (6, 9.0)])
def test_what_is_cut_off(entries, cut):
    noise = np.random.default_rng(0).laplace(size=(400_000, entries))
    every = np.maximum(noise, 0.0).sum(axis=1)  # the largest of all policies
    assert beyond(cut, entries, 2.0**entries) >= np.maximum(every - cut, 0.0).mean()


@pytest.mark.parametrize("k", [2, 3, 10])
def test_the_least_of_uniform_numbers(k):
    found = bank(Finite(np.eye(k))).noise
    assert not found.sampled
    assert found.value == pytest.approx(1 / (k + 1), rel=1e-8)
    assert found.value <= 1 / (k + 1)
    assert Finite([[0.5, 1.0], [0.5, 1.0]]).mean_minimum() == 0.75
    assert Finite([[1, 1], [1, 0]]).mean_minimum() is None


def test_paths_are_sampled_from_below():
    edges = [("s", "a"), ("s", "b"), ("a", "t"), ("b", "t"), ("a", "b")]
    oracle = ShortestPath(edges, "s", "t")
    found = bank(oracle).noise
    generator = np.random.default_rng(5)
    costs = generator.random((100_000, 5))
    ways = costs[:, [0, 1, 0]] + np.column_stack(
        [costs[:, 2], costs[:, 3], costs[:, 4] + costs[:, 3]]
    )
    least = ways.min(axis=1)
    wrong = 4.0 * least.std() / math.sqrt(len(least))
    assert found.sampled
    assert 0.9 * least.mean() <= found.value <= least.mean() + wrong
