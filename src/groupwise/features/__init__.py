"""Features: rows and frames as sparse numbers."""

from __future__ import annotations

from .encoder import Encoder
from .parts import EncodedFrame, Feature

__all__ = ["EncodedFrame", "Encoder", "Feature"]
