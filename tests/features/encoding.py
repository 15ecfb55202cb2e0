"""What the tests of features share."""

from typing import Any

import numpy as np

from groupwise.features import Encoder
from groupwise.groups import Groups
from groupwise.protocols import Row

NAN = float("nan")
NOBODY = Groups([], always_on=True)


def take(encoder: Encoder, row: Any) -> dict[str, float]:
    """Encode and admit a row; give its numbers by the name of the feature."""
    encoded = encoder.encode(row, encoder.groups.read(row)[0])
    encoder.admit(encoded)
    assert (np.diff(encoded.indices) > 0).all()
    assert encoded.indices.dtype == np.int64
    assert encoded.values.dtype == np.float64
    pairs_of = zip(encoded.indices.tolist(), encoded.values.tolist(), strict=True)
    return {encoder.names[index]: value for index, value in pairs_of}


def without_zeros(row: Row) -> Row:
    """A zero in a row changes nothing, so rows are compared without."""
    kept = row.values != 0.0
    return row._replace(indices=row.indices[kept], values=row.values[kept])


def check_row(left: Row, right: Row) -> None:
    left, right = without_zeros(left), without_zeros(right)
    assert left.new == right.new
    assert left.indices.tobytes() == right.indices.tobytes()
    assert left.values.tobytes() == right.values.tobytes()
