"""A program whose cases go wrong in every way, for the tests of the runner."""

import os
import time


def case(draw, found):
    """Half of all cases are fine."""
    number = int(draw.integers(1_000_000))
    found.count("even" if number % 2 == 0 else "odd")
    found.measure("number", number)
    if number % 2 == 0:
        return
    what = number // 2 % 4
    if what == 0:
        found.require(False, "planted", number)
    elif what == 1:
        raise KeyError(number)
    elif what == 2:
        os._exit(3)
    else:
        time.sleep(0.01)
