"""Which groups come first."""

from collections.abc import Iterable
from typing import Any

from groupwise.groups import ALWAYS_ON
from groupwise.tabular.text import quoted

ENOUGH = 30
"""On fewer rounds regret per round says more about the start than about the group."""

EXACT = 1e-6
"""A linear model whose error is so small a part of ours has found the label in the features."""

Row = dict[str, Any]


def per_round(row: Row, key: str = "regret") -> float:
    """A total per round of the group."""
    return float(row[key]) / max(float(row["rounds"]), 1.0)


def is_small(row: Row) -> bool:
    """Whether a group has too few rounds to be compared."""
    return float(row["rounds"]) < ENOUGH


def ranked(rows: Iterable[Row], key: str = "regret") -> list[Row]:
    """Everybody first; then by regret per round, the largest first; groups of few rounds last."""

    def place(row: Row) -> tuple[bool, bool, float]:
        return row["group"] != ALWAYS_ON, is_small(row), -per_round(row, key)

    return sorted(rows, key=place)


def worst(rows: Iterable[Row], key: str = "regret") -> Row:
    """The group with the largest regret per round; a small one only where all are."""
    order = ranked(rows, key)
    return next((row for row in order if row["group"] != ALWAYS_ON), order[0])


def most_gained(rows: Iterable[Row]) -> Row | None:
    """The group on which the single model loses most to us, per round; None where on none."""
    candidates = [
        row
        for row in rows
        if row["baseline_regret"] is not None and not is_small(row) and row["group"] != ALWAYS_ON
    ]
    best = max(candidates, key=gain, default=None)
    return best if best is not None and gain(best) > 0.0 else None


def gain(row: Row) -> float:
    """What the single model loses more than we do, per round."""
    return per_round(row, "baseline_regret") - per_round(row)


def afterwards(rows: Iterable[Row], target: str) -> list[str]:
    """What can only be said when the run is over."""
    every = next((row for row in rows if row["group"] == ALWAYS_ON), None)
    if every is None or is_small(every) or every["best_loss"] > EXACT * every["loss"]:
        return []
    return [
        f"Some features together give {quoted(target)} exactly, as the parts of a sum do. If they "
        "become known only with the label, leave them out with --drop."
    ]
