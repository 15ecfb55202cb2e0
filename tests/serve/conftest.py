"""The stores that tests run on."""

import pytest

from tests.serve.running import STORES, place_of


@pytest.fixture(params=STORES)
def place(request, tmp_path) -> str:
    """A new store, of every kind."""
    return place_of(request.param, tmp_path)


@pytest.fixture
def file(tmp_path) -> str:
    """A new store in a file."""
    return place_of("sqlite", tmp_path)
