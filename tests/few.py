"""Of many cases some are run always, the others with the slow tests."""

import pytest


def few(cases, quick):
    """All cases, those after the first ``quick`` marked as slow."""
    return [
        case if place < quick else pytest.param(case, marks=pytest.mark.slow)
        for place, case in enumerate(cases)
    ]
