"""What an experiment is run with: the paper's settings, and everything one may change in them."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from groupwise.errors import ConfigurationError

if TYPE_CHECKING:
    from groupwise.learners import Ridge
    from groupwise.protocols import Aggregator

PENALTY = 1.0  # the paper's


def _ridge() -> "list[Ridge]":
    from groupwise.learners import Ridge

    return [Ridge(PENALTY)]


def _forward() -> "list[Ridge]":
    from groupwise.learners import Ridge

    return [Ridge(PENALTY, forward=True)]


def _portfolio() -> "list[Ridge]":
    from groupwise.learners import Ridge

    return [Ridge(PENALTY), Ridge(0.01), Ridge(100.0), Ridge(PENALTY, forward=True)]


def _adanormalhedge() -> "Aggregator":
    from groupwise.aggregators import AdaNormalHedge

    return AdaNormalHedge()


def _specialists() -> "Aggregator":
    from groupwise.aggregators import Specialists

    return Specialists()


LEARNERS: "dict[str, Callable[[], list[Ridge]]]" = {
    "ridge": _ridge,
    "forward": _forward,
    "portfolio": _portfolio,
}
"""By name: the learners that every group has. The first of them, alone, is the baseline."""

AGGREGATORS: "dict[str, Callable[[], Aggregator]]" = {
    "adanormalhedge": _adanormalhedge,
    "specialists": _specialists,
}


@dataclass(frozen=True)
class Settings:
    """Parts by name, and the choices that the ablations vary. The defaults are the paper's.

    ``play`` is None where the aggregator has a play of its own.
    """

    learner: str = "ridge"
    aggregator: str = "adanormalhedge"
    play: str | None = "sample"
    clip: bool = False
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
        paper = Settings()
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != getattr(paper, field.name)
        }

    def parts(self) -> dict[str, Any]:
        """The keyword arguments of ``groupwise.replay``."""
        return {
            "learner": LEARNERS[self.learner](),
            "aggregator": AGGREGATORS[self.aggregator](),
            "play": self.play,
            "clip": self.clip,
        }

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        return asdict(self)


def chosen_settings(
    *,
    learner: str,
    aggregator: str,
    forward: bool,
    play: str | None,
    clip: bool,
    always_on: bool,
    intersections: int,
) -> Settings:
    """Settings from what somebody chose; what they left open is the paper's, where that is sound.

    Specialists has a play of its own, and a guarantee only for advice within the label's range.
    """
    if forward:
        if learner not in ("ridge", "forward"):
            raise ConfigurationError(f"--forward is for ridge; the learner {learner} has its own.")
        learner = "forward"
    if aggregator == "specialists":
        if play is not None:
            raise ConfigurationError(f"Specialists has its own play: leave out --play {play}.")
        clip = True
    elif play is None:
        play = Settings.play
    return Settings(learner, aggregator, play, clip, always_on, intersections)
