"""Features: rows and frames as sparse numbers."""

from __future__ import annotations

from .encoder import Encoder
from .parts import Encoded, EncodedFrame, Feature

__all__ = ["Encoded", "EncodedFrame", "Encoder", "Feature"]
