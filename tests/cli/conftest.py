"""Fixtures for tests that write reports."""

import pytest


@pytest.fixture
def two_panels(monkeypatch):
    """Two curves on every page, of few points: drawing takes longer than the runs."""
    monkeypatch.setattr("groupwise.files.pages.SHORT", 2)
    monkeypatch.setattr("groupwise.files.chances.DRAWN", 2)
    monkeypatch.setattr("groupwise.report.calibration.DRAWN", 2)
    monkeypatch.setattr("groupwise.report.coverage.DRAWN", 2)
    monkeypatch.setattr("groupwise.files.run.REFIT_POINTS", 3)
