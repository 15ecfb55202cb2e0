"""Features: rows and frames as sparse numbers."""

from groupwise.features.declared import COLUMNS, Declared, EncodedFrame, Feature, hashed
from groupwise.features.encoder import Encoder

__all__ = ["COLUMNS", "Declared", "EncodedFrame", "Encoder", "Feature", "hashed"]
