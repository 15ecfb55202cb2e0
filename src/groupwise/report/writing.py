"""The names that pages were written with before ``groupwise.writing``."""

from groupwise.writing import folder, write

__all__ = ["folder", "write"]
