"""Streams to check learners on. The one who sets the label sees the prediction first."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from groupwise.groups import Group, by, weight, where

Answer: TypeAlias = Callable[[Any], Any]
"""Gives the label of a round, knowing what was predicted."""
Rounds: TypeAlias = Iterator[tuple[dict[str, Any], Answer]]
Source: TypeAlias = Callable[[int], Rounds]
"""Gives an endless stream for a seed."""

FEATURES = ["u", "v", "one"]
"""The features of the streams below."""
KINDS = ("plain", "striped", "dotted")
POOL = 40
"""How many different rows there are."""


def declarations(fractional: bool) -> list[Group]:
    """Groups that overlap; fractional ones where the learner takes them."""
    groups = [by("kind"), where("u", ">", 0.3)]
    return [*groups, weight("share")] if fractional else groups


def linear(seed: int) -> Rounds:
    """A linear rule for each kind, with noise."""
    generator = np.random.default_rng(seed)
    rules = {kind: generator.normal(size=2) / 3 for kind in KINDS}
    for row in _rows(generator):
        mean = 0.5 + rules[row["kind"]] @ [row["u"], row["v"]]
        label = float(np.clip(mean + generator.normal() / 10, 0.0, 1.0))
        yield row, _always(label)


def contrary(seed: int) -> Rounds:
    """The label at the far end from the prediction, always."""
    for row in _rows(np.random.default_rng(seed)):
        yield row, lambda prediction: 1.0 if prediction < 0.5 else 0.0


def switching(seed: int) -> Rounds:
    """A rule that turns round every 30 rounds, just when it has been learned."""
    for t, row in enumerate(_rows(np.random.default_rng(seed))):
        towards = (row["u"] > 0) == (t // 30 % 2 == 0)
        yield row, _always(float(towards))


def _always(label: float) -> Answer:
    return lambda prediction: label


def _rows(generator: np.random.Generator) -> Iterator[dict[str, Any]]:
    pool: list[Mapping[str, Any]] = [
        {
            "kind": KINDS[generator.integers(len(KINDS))],
            "u": float(generator.uniform(-1, 1)),
            "v": float(generator.uniform(-1, 1)),
            "one": 1.0,
            "share": float(generator.choice([0.0, 1.0, generator.random()])),
        }
        for _ in range(POOL)
    ]
    while True:
        for place in generator.permutation(POOL):
            yield dict(pool[place])


STREAMS: dict[str, Source] = {"linear": linear, "contrary": contrary, "switching": switching}
