"""The state of a model or replay as arrays by name, for tests that compare two of them."""

import copy

import numpy as np

from groupwise.learners.wrapped import WrappedBank


def arrays_of(reduction, groups, features):
    """All that a file would hold of a reduction; learners that are objects are left out."""
    seen = copy.copy(reduction)
    seen.banks = [bank for bank in reduction.banks if not isinstance(bank, WrappedBank)]
    return {name: array.copy() for name, array in seen.save(groups, features).items()}


def state_of(model):
    """All that a file would hold of a model's reduction."""
    return arrays_of(model._reduction, len(model.group_names), len(model.feature_names))


def assert_same_arrays(one, other):
    """Every array is the same, bit for bit."""
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert np.array_equal(array, other[name], equal_nan=True), name
