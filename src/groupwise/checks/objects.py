"""Checks for learners that are objects with ``advise`` and ``update``, called directly."""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from groupwise.checks.bench import Bench
from groupwise.checks.failure import CheckFailed, require, same
from groupwise.checks.streams import FEATURES, declarations
from groupwise.errors import ConfigurationError, GroupwiseError
from groupwise.model import Groupwise
from groupwise.protocols import Row


def _rows_stay_as_they_are(bench: Bench) -> None:
    if not bench.is_object:
        return
    learner = bench.fresh()
    for t, (row, label) in enumerate(_numbers(bench.rounds)):
        given = copy.deepcopy(row)
        for step in ("advise", "update"):
            if step == "advise":
                _advise(learner, row, t)
            else:
                learner.update(row, label, 1.0)
            kept = same(row.values, given.values) and same(row.indices, given.indices)
            require(
                kept and list(row.names) == list(given.names),
                f"{step} changed the row that it was given.",
            )


def _rows_are_not_held_on_to(bench: Bench) -> None:
    if not bench.is_object:
        return
    kept, spoiled = bench.fresh(), bench.fresh()
    for t, (row, label) in enumerate(_numbers(bench.rounds)):
        one, two = _advise(kept, row, t), _advise(spoiled, copy.deepcopy(row), t)
        require(
            same(one, two),
            "its advice changed when a row that it had learned from was overwritten. Copy what "
            "you keep: row.values.copy().",
        )
        kept.update(copy.deepcopy(row), label, 1.0)
        lent = copy.deepcopy(row)
        spoiled.update(lent, label, 1.0)
        lent.values[:] = 1e9
        lent.indices[:] = 0


def _new_features_are_met(bench: Bench) -> None:
    if not bench.is_object:
        return
    learner = bench.fresh()
    names: list[str] = []
    for t in range(8):
        names = [*names, f"feature {t}"]
        row = Row(np.arange(t + 1), np.full(t + 1, 0.1), names)
        try:
            advice = _advise(learner, row, t)
            learner.update(row, 0.5, 1.0)
        except GroupwiseError:
            return  # refused, by name
        require(math.isfinite(advice), f"its advice on a row with a new feature is {advice}.")


def _copies_are_the_same(bench: Bench) -> None:
    if not bench.is_object:
        return
    learner = bench.fresh()
    rows = _numbers(bench.rounds)
    for row, label in rows:
        learner.update(row, label, 1.0)
    try:
        copies = {"deep copy": copy.deepcopy(learner), "pickle": _pickled(learner)}
    except Exception as error:
        raise CheckFailed(f"it cannot be copied or pickled: {error!r}.") from error
    for how, other in copies.items():
        for t, (row, _) in enumerate(rows):
            require(
                same(_advise(learner, row, t), _advise(other, row, t)),
                f"a {how} of it gives other advice. It must take along all that was learned.",
            )


def _fractional_groups_are_served_or_refused(bench: Bench) -> None:
    if not bench.is_object:
        return
    takes = bool(getattr(bench.learner, "takes_weights", True))
    learner = bench.fresh()
    for t, (row, label) in enumerate(_numbers(20)):
        if takes:
            learner.update(row, label, 0.25)
            advice = _advise(learner, row, t, weight=0.25)
            require(math.isfinite(advice), f"its advice with weight 0.25 is {advice}.")
    if not takes:
        model = Groupwise(declarations(True), learner=learner, features=FEATURES)
        try:
            model.predict({"kind": "plain", "u": 0.5, "v": 0.1, "one": 1.0, "share": 0.5})
        except ConfigurationError:
            return
        raise CheckFailed("it takes no weights, and a fractional group was not refused.")


OBJECT_CHECKS: tuple[Callable[[Bench], None], ...] = (
    _rows_stay_as_they_are,
    _rows_are_not_held_on_to,
    _new_features_are_met,
    _copies_are_the_same,
    _fractional_groups_are_served_or_refused,
)


def _numbers(rounds: int) -> list[tuple[Row, float]]:
    """Rows as a learner gets them."""
    generator = np.random.default_rng(6)
    names = ["x0", "x1", "x2"]
    return [
        (Row(np.arange(3), generator.normal(size=3), names), float(generator.random()))
        for _ in range(rounds)
    ]


def _advise(learner: Any, row: Row, number: int, weight: float = 1.0) -> float:
    if getattr(learner, "randomised", False):
        learner.draw((0, number, 0, 0))
    return float(learner.advise(row, weight))


def _pickled(learner: Any) -> Any:
    return pickle.loads(pickle.dumps(learner))
