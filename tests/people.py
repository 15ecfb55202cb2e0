"""People of two sexes in three regions, for tests of groups and of what is added to them."""

import numpy as np
import pandas


def data(count=400, seed=0):
    """A frame of rows whose label y, in [0, 1], depends on u, and on sex and region together."""
    generator = np.random.default_rng(seed)
    frame = pandas.DataFrame(
        {
            "sex": generator.choice(["m", "f"], count),
            "region": generator.choice(["n", "s", "w"], count),
            "age": generator.integers(18, 80, count).astype(float) / 80,
            "u": generator.random(count),
        }
    )
    both = (frame.sex == "m") & (frame.region == "n")
    frame["y"] = np.clip(0.4 * frame.u + 0.5 * both + 0.02 * generator.normal(size=count), 0, 1)
    return frame


def loop(model, frame):
    """The model, which has learned from the rows one by one."""
    for row in frame.to_dict("records"):
        label = row.pop("y")
        model.learn_one(row, label)
    return model
