"""The same runs, whoever computes them; and on disk: whole, and made again where unreadable."""

import numpy as np
import pytest

from groupwise.datasets import synthetic
from groupwise.errors import ConfigurationError
from groupwise.paper.engine import Store, Task, key_of, run_tasks
from groupwise.paper.published import Settings
from groupwise.paper.run import Run, run

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
@pytest.mark.xdist_group("ray")
def test_ray(tasks, expected):
    pytest.importorskip("ray")
    same(dict(run_tasks(tasks, "ray", jobs=2)), expected)


def test_an_error_in_a_task_is_raised(tasks):
    broken = tasks[0]._replace(settings=Settings(aggregator="specialists", play="mean"))
    with pytest.raises(ConfigurationError):
        list(run_tasks([tasks[1], broken], jobs=2))


@pytest.fixture(scope="module")
def data():
    return synthetic("mean", rows=60)


def test_a_run_comes_back_as_it_was(tmp_path, data):
    store, kept = Store(tmp_path), run(data, "sorted", 473, Settings())
    path = store.path("synthetic-mean", "sorted", 473, "key")
    store.save(path, kept)
    found = store.load(path)
    assert found is not None
    for field, mine, theirs in zip(Run._fields, kept, found, strict=True):
        assert np.array_equal(mine, theirs), field
    assert [found.name for found in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 half of a", None])
def test_what_cannot_be_read_is_no_run(tmp_path, content):
    store = Store(tmp_path)
    path = store.path("medical", "sorted", 1, "key")
    if content is not None:
        path.write_bytes(content)
    assert store.load(path) is None


def test_a_file_without_all_fields_is_no_run(tmp_path):
    store = Store(tmp_path)
    path = store.path("medical", "sorted", 1, "key")
    np.savez(path, rounds=np.zeros(3))
    assert store.load(path) is None


def test_the_key_follows_settings_and_data(data):
    changed = data.take(np.arange(60))
    assert key_of(Settings(), data) == key_of(Settings(), changed)
    changed.label[7] += 1e-9
    keys = {
        key_of(Settings(), data),
        key_of(Settings(), changed),
        key_of(Settings(clip=True), data),
        key_of(Settings(), "synthetic-mean"),
        key_of(Settings(), "synthetic-min"),
    }
    assert len(keys) == 5
