"""The data sets of the paper's experiments, the orders they are streamed in, and its tables."""

from ._published import PublishedRow, published
from .adult import adult
from .dataset import Dataset
from .medical import medical
from .orders import PAPER_SEEDS, paper_order
from .synthetic import synthetic

__all__ = [
    "PAPER_SEEDS",
    "Dataset",
    "PublishedRow",
    "adult",
    "medical",
    "paper_order",
    "published",
    "synthetic",
]
