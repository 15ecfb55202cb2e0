"""The data sets of the paper's experiments, the orders they are streamed in, and its tables."""

from groupwise.datasets._published import PAPER_SEEDS, PublishedRow, paper_order, published
from groupwise.datasets.adult import adult
from groupwise.datasets.dataset import Dataset
from groupwise.datasets.medical import medical
from groupwise.datasets.synthetic import synthetic

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
