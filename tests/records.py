"""A table of axes with fields of every kind, for tests of layouts and stores."""

from typing import NamedTuple

from groupwise.arrays import Index, Vector
from groupwise.kernels.layout import EXTENT, LEARNER, ONE, OWN, Layout


class Record(NamedTuple):
    """Fields of every kind."""

    tally: Index
    level: Vector
    table: Vector
    vector: Vector
    weights: Vector
    rows: Vector
    matrix: Vector
    marks: Index


LAYOUT = Layout(
    Record,
    {
        "tally": ONE,
        "level": (LEARNER,),
        "table": (EXTENT,),
        "vector": (LEARNER, OWN),
        "weights": (OWN,),
        "rows": (3, OWN),
        "matrix": (LEARNER, OWN, OWN),
        "marks": (LEARNER,),
    },
    integers=("tally", "marks"),
    late=("matrix", "marks"),
    ones=("level", "weights"),
)
