"""Losses with a range: what is within it stays so, whatever rounding does."""

import math

import numpy as np
import pytest

import groupwise as gw

RANGES = [(-1e-9, 2e-9), (0.1, 0.7), (-5.0, 3.0), (-0.3, 0.1), (1e5, 1e5 + 0.3), (-1e30, 1e-3)]


@pytest.mark.parametrize("ends", RANGES)
@pytest.mark.parametrize("kind", [gw.losses.Square, gw.losses.Absolute])
def test_predictions_at_the_ends_are_labels(kind, ends):
    """low + (high − low) may be more than high by rounding, and is no label then."""
    loss = kind(*ends)
    scaled = [0.0, 5e-324, 0.5, math.nextafter(1.0, 0.0), 1.0]
    shown = [loss.decode(one) for one in scaled]
    assert np.array_equal(loss.decode_many(np.array(scaled)), shown)
    for one in shown:
        loss.encode(one)
    largest = max(map(abs, ends))
    assert (shown[0], shown[-1]) == pytest.approx(ends, rel=0, abs=1e-15 * largest)
    # What was not clipped is beyond it.
    assert loss.decode(1.5) == loss.decode_many(np.array([1.5]))[0] > ends[1]


def test_a_model_learns_what_it_predicted():
    model = gw.Groupwise([], loss=gw.losses.Square(-1e-9, 2e-9))
    for _ in range(60):
        model.learn_one({"x": 1.0}, 2e-9)
    ticket = model.predict({"x": 1e6})
    model.learn(ticket, ticket.prediction)
    assert ticket.prediction == 2e-9
