"""The paper's synthetic data: labels made from two overlapping families of groups."""

import random
from typing import Literal, get_args

import numpy as np

from groupwise.datasets.dataset import Dataset
from groupwise.errors import DatasetError
from groupwise.groups import ALWAYS_ON

Label = Literal["mean", "min", "max", "permutation"]

SHAPES = ("circle", "square", "triangle")
COLOURS = ("green", "red")
SHAPE_ODDS = (0.5, 0.3, 0.2)
COLOUR_ODDS = (0.6, 0.4)
FEATURES = 20
NOISE = 0.16  # standard deviation; the paper's text leaves this noise out, its tables have it


def synthetic(label: Label = "mean", seed: int = 21, *, rows: int = 100_000) -> Dataset:
    """A shape and a colour for each individual, and a label that depends on both.

    Every group g has a linear model w_g, and an individual x of shape s and colour c has the
    two intermediary labels <w_s, x> + noise and <w_c, x> + noise. The label is their mean, min
    or max, or that of whichever of the two groups comes first in a fixed permutation; it is
    then scaled to [0, 1] over the whole set.

    The draws repeat those of the paper, whose code seeds numpy's and Python's global
    generators. Private generators with the same seeds give the same numbers and leave the
    global ones alone, so what is drawn, and in which order, must not be changed here.

    Parameters
    ----------
    label: how two intermediary labels become one: "mean", "min", "max" or "permutation".
    seed: of both generators; 21 is the paper's.
    rows: how many individuals; 100,000 in the paper.

    >>> data = synthetic("min")
    >>> data.group_sizes["circle"], data.features.shape
    (49857, (100000, 25))
    """
    if label not in get_args(Label):
        raise DatasetError(
            f"There is no synthetic label {label!r}. Choose one of {', '.join(get_args(Label))}."
        )
    numbers = np.random.RandomState(seed)
    choices = random.Random(seed)
    names = SHAPES + COLOURS

    attributes = numbers.uniform(0, 1, (rows, FEATURES))
    shape = np.array(choices.choices(range(len(SHAPES)), weights=SHAPE_ODDS, k=rows))
    colour = len(SHAPES) + np.array(  # like the shape, the number of a group among all names
        choices.choices(range(len(COLOURS)), weights=COLOUR_ODDS, k=rows)
    )
    models = numbers.uniform(0, 1, (FEATURES, len(names)))
    intermediary = attributes @ models + numbers.normal(scale=NOISE, size=(rows, len(names)))
    place = np.argsort(numbers.permutation(len(names)))

    every = np.arange(rows)
    of_shape, of_colour = intermediary[every, shape], intermediary[every, colour]
    raw = {
        "mean": (of_shape + of_colour) / 2,
        "min": np.minimum(of_shape, of_colour),
        "max": np.maximum(of_shape, of_colour),
        "permutation": np.where(place[shape] < place[colour], of_shape, of_colour),
    }[label]

    membership = np.zeros((rows, len(names) + 1), dtype=np.uint8)
    membership[every, shape] = membership[every, colour] = membership[:, -1] = 1
    return Dataset(
        name=f"synthetic-{label}",
        features=np.hstack([attributes, membership[:, :-1]]),
        feature_names=(*(f"x{i}" for i in range(FEATURES)), *names),
        label=(raw - raw.min()) / (raw.max() - raw.min()),
        label_name=f"{label} of two models",
        membership=membership,
        group_names=(*names, ALWAYS_ON),
        sort_key=membership[:, names.index("green")].astype(np.float64),
    )
