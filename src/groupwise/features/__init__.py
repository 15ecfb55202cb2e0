"""Features: rows and frames as sparse numbers."""

from groupwise.features.calendar import calendar
from groupwise.features.declared import COLUMNS, Declared, EncodedFrame, Feature, hashed
from groupwise.features.derived import AnyFeatures, Derived, split
from groupwise.features.encoder import Encoder
from groupwise.features.encoding import encoded
from groupwise.features.past import past
from groupwise.features.shapes import hinges

__all__ = [
    "COLUMNS",
    "AnyFeatures",
    "Declared",
    "Derived",
    "EncodedFrame",
    "Encoder",
    "Feature",
    "calendar",
    "encoded",
    "hashed",
    "hinges",
    "past",
    "split",
]
