"""Features: rows and frames as sparse numbers."""

from groupwise.features.declared import EncodedFrame, Feature
from groupwise.features.encoder import Encoder

__all__ = ["EncodedFrame", "Encoder", "Feature"]
