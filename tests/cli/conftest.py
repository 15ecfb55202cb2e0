"""Fixtures for tests that write reports."""

import pytest


@pytest.fixture
def two_panels(monkeypatch):
    """Two curves on every page: drawing takes longer than the runs."""
    monkeypatch.setattr("groupwise.files.pages.SHORT", 2)
