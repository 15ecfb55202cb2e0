"""The perturbations: their distributions, and the logarithm that they are made with."""

import numpy as np

from groupwise.kernels.logarithm import log_in_place
from groupwise.kernels.noise import add_laplace, add_uniform


def test_logarithm() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([2.0 ** -np.arange(33.0), rng.random(10_000), [0.70710678, 1.0, 1e300]])
    found = values.copy()
    log_in_place(found)
    assert np.allclose(found, np.log(values), rtol=1e-13, atol=1e-13)


def test_laplace() -> None:
    draws = np.zeros((2_000, 50))
    for number in range(2_000):
        add_laplace(3, number, 1, 0, 2.0, draws[number])
    flat = draws.ravel()
    assert abs(flat.mean()) < 0.05
    assert abs(np.abs(flat).mean() - 2.0) < 0.05
    assert abs((np.abs(flat) > 2.0 * np.log(10.0)).mean() - 0.1) < 0.01
    assert abs(np.corrcoef(draws[:, 0], draws[:, 1])[0, 1]) < 0.1


def test_uniform() -> None:
    draws = np.zeros((2_000, 7))
    for number in range(2_000):
        add_uniform(3, number, 1, 0, 4.0, draws[number])
    assert draws.min() > 0.0
    assert draws.max() < 4.0
    assert abs(draws.mean() - 2.0) < 0.05
    assert abs(draws.var() - 16.0 / 12.0) < 0.05


def test_names_of_draws() -> None:
    seen = set()
    for seed in (0, 1):
        for number in (0, 1, 2**40):
            for expert in (0, 1):
                for attempt in (0, 1):
                    out = np.zeros(2)
                    add_uniform(seed, number, expert, attempt, 1.0, out)
                    seen.add(out[0])
                    add_laplace(seed, number, expert, attempt, 1.0, out)
    assert len(seen) == 24
