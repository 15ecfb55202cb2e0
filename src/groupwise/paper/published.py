"""What the paper ran: its experiments by name, its settings, and what one may change in them."""

import difflib
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from threading import Lock
from typing import Any

from groupwise.aggregators import Prod, Specialists
from groupwise.datasets import Dataset, adult, medical, synthetic
from groupwise.datasets._files import DataFile
from groupwise.datasets.adult import FILE as ADULT_FILE
from groupwise.datasets.medical import FILE as MEDICAL_FILE
from groupwise.errors import ConfigurationError
from groupwise.learners import Ridge, portfolio
from groupwise.losses import Square
from groupwise.presets import paper
from groupwise.protocols import AnyAggregator

PAPER = paper()
ORDERS = ("shuffled", "sorted")
EVERY = "all"

LEARNERS = {
    "ridge": [PAPER["learner"]],
    "forward": [Ridge(1.0, forward=True)],
    "recommended": portfolio(Square()),
    "portfolio": [Ridge(1.0), Ridge(0.01), Ridge(100.0), Ridge(1.0, forward=True)],
}
"""By name: the learners that every group has. The first of them, alone, is the baseline.

The paper's is a ridge with a penalty of 1.
"""
AGGREGATORS: dict[str, AnyAggregator] = {
    "adanormalhedge": PAPER["aggregator"],
    "specialists": Specialists(),
    "prod": Prod(),
}
PRESETS = {"paper": ("ridge", "adanormalhedge"), "recommended": ("recommended", "prod")}
"""Learner and aggregator by name: as published, and what models have by default."""

Families = tuple[tuple[str, tuple[str, ...]], ...]

_AGES = ("young", "middle", "old")
_EVERYBODY = ("Everybody", ("always_on",))


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper.

    ``tolerance`` is how far a figure may be from the printed one; None where nobody has been able
    to compare yet. ``families`` are the groups that the paper draws together, against the fraction
    of the group seen; ``headline`` those of its Figure 1.
    """

    name: str
    title: str
    sorted_by: str
    tolerance: float | None
    file: DataFile | None = None
    families: Families = ()
    headline: Families = ()


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        *(
            Experiment(f"synthetic-{label}", f"Synthetic data, {meaning}", "colour", 0.01)
            for label, meaning in (
                ("mean", "mean of two labels"),
                ("min", "minimum of two labels"),
                ("max", "maximum of two labels"),
                ("permutation", "label of the first group"),
            )
        ),
        Experiment(
            "medical",
            "Medical costs",
            "age",
            0.05,
            MEDICAL_FILE,
            families=(
                ("Age", _AGES),
                ("Sex", ("male", "female")),
                ("Smoking", ("smoker", "non-smoker")),
                ("Body mass", ("underweight", "healthyweight", "overweight", "obese")),
                _EVERYBODY,
            ),
            headline=(
                ("Age and sex", (*_AGES, "male", "female")),
                ("Smoking", ("smoker", "non-smoker")),
            ),
        ),
        Experiment(
            "adult",
            "Adult income",
            "age",
            None,
            ADULT_FILE,
            families=(
                ("Age", _AGES),
                ("Education", ("HighSchool&less", "College&more")),
                ("Sex", ("Male", "Female")),
                (
                    "Race",
                    ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
                ),
                _EVERYBODY,
            ),
        ),
    )
}

Source = str | Dataset
"""Data for a task: a synthetic set's name, to be made where the task runs, or the data."""


def refuse_unknown(names: Iterable[str], further: Iterable[str] = ()) -> None:
    """Raise ConfigurationError for a name that is not of an experiment, nor a ``further`` one."""
    known = [*further, *EXPERIMENTS]
    for name in names:
        if name in (EVERY, *known):
            continue
        near = difflib.get_close_matches(name, [EVERY, *known], n=2, cutoff=0.5)
        hint = f"There are {', '.join(known)} and {EVERY}."
        hint = f"Did you mean {' or '.join(near)}?" if near else hint
        raise ConfigurationError(f"There is no experiment {name!r}. {hint}")


def chosen(names: Iterable[str]) -> list[Experiment]:
    """The experiments of these names, each once, in the order of the paper; "all" is all."""
    wanted = set(names)
    refuse_unknown(wanted)
    everything = not wanted or EVERY in wanted
    return [each for name, each in EXPERIMENTS.items() if everything or name in wanted]


def source_of(experiment: Experiment, data: str | os.PathLike[str] | None) -> Source:
    """The experiment's data; its file is read and checked here and now."""
    reader = {"medical": medical, "adult": adult}.get(experiment.name)
    return experiment.name if reader is None else reader(data_dir=data)


def dataset_of(source: Source) -> Dataset:
    """The data themselves; those that are made are made once in every process."""
    if isinstance(source, Dataset):
        return source
    with _making:
        return _made(source)


_making = Lock()


@lru_cache(maxsize=2)
def _made(name: str) -> Dataset:
    return synthetic(name.removeprefix("synthetic-"))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Settings:
    """Parts by name, and the choices that the ablations vary. The defaults are the paper's.

    ``play`` is None where the aggregator has a play of its own.
    """

    learner: str = "ridge"
    aggregator: str = "adanormalhedge"
    play: str | None = PAPER["play"]
    clip: bool = PAPER["clip"]
    always_on: bool = True
    intersections: int = 1
    """2 adds an expert for every intersection of two groups that occurs."""

    def __post_init__(self) -> None:
        if self.intersections not in (1, 2):
            raise ConfigurationError(f"Intersections of 1 or 2 groups, not {self.intersections}.")
        for what, name, known in (
            ("learner", self.learner, LEARNERS),
            ("aggregator", self.aggregator, AGGREGATORS),
        ):
            if name not in known:
                raise ConfigurationError(
                    f"There is no {what} {name!r}. Choose one of {', '.join(known)}."
                )

    @property
    def is_paper(self) -> bool:
        """Are these the settings that the published tables were made with?"""
        return self == Settings()

    @property
    def changes(self) -> dict[str, Any]:
        """What differs from the paper's settings."""
        paper = Settings().to_dict()
        return {name: value for name, value in self.to_dict().items() if value != paper[name]}

    def parts(self) -> dict[str, Any]:
        """The keyword arguments of ``groupwise.replay``."""
        return {
            "learner": LEARNERS[self.learner],
            "aggregator": AGGREGATORS[self.aggregator],
            "play": self.play,
            "clip": self.clip,
        }

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        return asdict(self)


def chosen_settings(
    *,
    preset: str,
    learner: str | None,
    aggregator: str | None,
    forward: bool,
    play: str | None,
    clip: bool,
    always_on: bool,
    intersections: int,
) -> Settings:
    """Settings from what somebody chose; what they left open is the paper's, where that is sound.

    Specialists and Prod have plays of their own, and a guarantee only for advice within the label's
    range.
    """
    if preset not in PRESETS:
        raise ConfigurationError(
            f"There is no preset {preset!r}. Choose one of {', '.join(PRESETS)}."
        )
    learner, aggregator = learner or PRESETS[preset][0], aggregator or PRESETS[preset][1]
    own_play = aggregator in ("specialists", "prod")
    if forward and learner not in ("ridge", "forward"):
        raise ConfigurationError(f"--forward is for ridge; the learner {learner} has its own.")
    if own_play and play is not None:
        name = type(AGGREGATORS[aggregator]).__name__
        raise ConfigurationError(f"{name} has its own play: leave out --play {play}.")
    return Settings(
        "forward" if forward else learner,
        aggregator,
        None if own_play else play or Settings.play,
        clip or own_play,
        always_on,
        intersections,
    )
