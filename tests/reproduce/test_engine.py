"""The same runs, whoever computes them."""

import numpy as np
import pytest

from groupwise.datasets import synthetic
from groupwise.errors import ConfigurationError
from groupwise.reproduce.engine import Task, checked_engine, run_tasks
from groupwise.reproduce.run import run
from groupwise.reproduce.settings import Settings

SEEDS = (473, 503, 623, 550)


@pytest.fixture(scope="module")
def tasks():
    data = synthetic("max", rows=300)
    return [
        Task(data, order, seed, Settings()) for order in ("shuffled", "sorted") for seed in SEEDS
    ]


@pytest.fixture(scope="module")
def expected(tasks):
    return [run(task.source, task.order, task.seed, task.settings) for task in tasks]


def same(found, expected):
    assert sorted(found) == list(range(len(expected)))
    for number, mine in found.items():
        for a, b in zip(mine, expected[number], strict=True):
            assert np.array_equal(a, b)


@pytest.mark.parametrize("jobs", [1, 3])
def test_threads(tasks, expected, jobs):
    same(dict(run_tasks(tasks, jobs=jobs)), expected)


@pytest.mark.slow
def test_ray(tasks, expected):
    pytest.importorskip("ray")
    same(dict(run_tasks(tasks, "ray", jobs=2)), expected)


def test_an_error_in_a_task_is_raised(tasks):
    broken = tasks[0]._replace(settings=Settings(aggregator="specialists", play="mean"))
    with pytest.raises(ConfigurationError):
        list(run_tasks([tasks[1], broken], jobs=2))


def test_engines_by_name():
    for engine in ("local", "ray", "ray://head:10001"):
        assert checked_engine(engine) == engine
    with pytest.raises(ConfigurationError, match="'spark'"):
        checked_engine("spark")
