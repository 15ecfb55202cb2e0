"""Runs on disk: whole, recognised by what they depend on, and made again where unreadable."""

import numpy as np
import pytest

from groupwise.datasets import synthetic
from groupwise.reproduce.run import Run, run
from groupwise.reproduce.settings import Settings
from groupwise.reproduce.store import Store, key_of


@pytest.fixture(scope="module")
def data():
    return synthetic("mean", rows=60)


def test_a_run_comes_back_as_it_was(tmp_path, data):
    store, kept = Store(tmp_path), run(data, "sorted", 473, Settings())
    path = store.path("synthetic-mean", "sorted", 473, "key")
    store.save(path, kept)
    for field, mine, theirs in zip(Run._fields, kept, store.load(path), strict=True):
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
