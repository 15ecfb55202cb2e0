"""What is remembered about rows with the same fields, so that the next is encoded quickly."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from .parts import Integers

# How many combinations of levels are remembered per layout, before it starts afresh.
PATTERNS = 1024

Pattern: TypeAlias = tuple[Integers, Integers | None, Callable[..., bytes]]
"""The features of a row in ascending order, the order of its values (None: as they come), and what
packs the values."""


@dataclass
class Layout:
    """What is known about rows with the same fields, each of them seen before."""

    size: int
    get: Callable[[Mapping[str, Any]], Sequence[Any]]
    """Gives the numbers of a row."""
    texts: list[tuple[str, dict[str, int]]]
    indices: list[int]
    """The features of the numbers."""
    ranges: list[tuple[float, float]]
    """Where declared so, the low end and the span of each number."""
    plain: Pattern
    """The pattern of the numbers alone."""
    patterns: dict[tuple[int, ...], Pattern]
    """Patterns with these levels and indicators."""


def getter(fields: list[str]) -> Callable[[Mapping[str, Any]], Sequence[Any]]:
    """What gives the values of these fields."""
    if len(fields) > 1:
        return itemgetter(*fields)
    return lambda row: [row[field] for field in fields]


def pattern_of(indices: list[int]) -> Pattern:
    """Put features in order, once for all rows that have them."""
    numbers = np.array(indices, dtype=np.int64)
    # struct refuses text, which numpy would read as a number
    pack = struct.Struct(f"{len(indices)}d").pack
    if (np.diff(numbers) < 0).any():
        order = np.argsort(numbers).astype(np.int64)
        numbers = numbers[order]
    else:
        order = None
    numbers.setflags(write=False)  # handed out with every row of this pattern
    return numbers, order, pack


def remember_pattern(layout: Layout, ones: tuple[int, ...]) -> Pattern:
    """The pattern of a layout with these levels and indicators."""
    if len(layout.patterns) >= PATTERNS:
        layout.patterns.clear()
    found = layout.patterns[ones] = pattern_of([*layout.indices, *ones])
    return found
