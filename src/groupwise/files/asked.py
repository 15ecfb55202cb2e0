"""What was asked for, checked against what the columns of a file hold."""

from collections.abc import Sequence
from typing import Any

from groupwise.errors import ConfigurationError, DataError
from groupwise.features import COLUMNS, encoded, hashed
from groupwise.features.calendar import Calendar
from groupwise.features.shapes import KNOTS, MOST_COLUMNS
from groupwise.files.making import Dates
from groupwise.files.profile import Profile
from groupwise.files.proposals import Feature, Features, leaves, number_fields, width_of
from groupwise.files.scan import Scan
from groupwise.files.settings import ERROR, LEVELS_WORD, PROBABILITY, Request
from groupwise.files.task import Task
from groupwise.files.text import amount, quoted, shown
from groupwise.groups import Group
from groupwise.groups.declarations import By, Cut, Weight, Where
from groupwise.groups.text import DATE_WORD, ENCODED_WORD, HASHED_WORD

PENALTY = 0.1
"""Of one logistic model: columns are scaled to [0, 1], and odds are of any size."""
FEATURES = 8_192
"""So many features, of which every two have a number in a group's matrix: half a gigabyte."""
NARROWEST, WIDEST = 1e-100, 1e100
"""Ranges of labels whose squares, and sums of these, are numbers."""
NUMERIC = ("ridge", "forward")
"""Learners that predict numbers."""
CLIPPED = ("prod", "specialists")
"""Aggregators that need advice within the range of the label."""


def parts_for(request: Request, task: Task) -> dict[str, Any]:
    """Learner and aggregator: those asked for, if they are for such a label, or the best known."""
    chance = task.is_chance
    learner = request.learner or "portfolio"
    aggregator = request.aggregator or ("specialists" if chance else "prod")
    if chance and learner in NUMERIC:
        raise ConfigurationError(
            f"--learner {learner} predicts numbers, and {quoted(request.target or '')} is "
            f"{'yes or no' if task.name == PROBABILITY else 'one of several classes'}. Leave it "
            "out, or say --task number."
        )
    if not chance and learner == "logistic":
        raise ConfigurationError(
            f"--learner logistic predicts probabilities, and {quoted(request.target or '')} is a "
            "number. Leave it out, or say --task probability."
        )
    if request.preset is not None and aggregator in CLIPPED:
        raise ConfigurationError(
            f"--preset {request.preset} takes advice as it comes, and --aggregator {aggregator} "
            "needs it within the label's range. Leave one of them out."
        )
    averaged = [name for name, one in (request.features or {}).items() if one == ENCODED_WORD]
    if averaged and task.loss.nodes > 1:
        raise ConfigurationError(
            f"{shown(averaged[0])}:{ENCODED_WORD} stands for the mean label of a value, and "
            f"{quoted(request.target or '')} has several classes. Name {shown(averaged[0])} alone, "
            f"or as {shown(averaged[0])}:{HASHED_WORD}."
        )
    if chance and aggregator == "adanormalhedge":
        raise ConfigurationError(
            "--aggregator adanormalhedge needs a loss that has a bound, and the log loss of "
            "probabilities has none. Leave it out, or say --task number."
        )
    if chance and aggregator == "prod":
        raise ConfigurationError(
            "--aggregator prod is for square loss, and probabilities have log loss. Leave it out, "
            "or say --task number."
        )
    if request.bound is not None and not chance:
        raise ConfigurationError(
            f"bound is for probabilities, and {quoted(request.target or '')} is a number. Leave it "
            "out, or say --task probability."
        )
    asked = {"penalty": request.penalty, "bound": request.bound}
    usual = {"penalty": PENALTY} if learner == "logistic" else {}
    parameters = usual | {name: value for name, value in asked.items() if value is not None}
    asked_for = {"preset": request.preset, "intersections": request.intersections}
    return {"learner": learner, "aggregator": aggregator, "parameters": parameters, **asked_for}


def asked_groups(scan: Scan, request: Request) -> list[Group]:
    """The groups that were asked for, if the columns are fit for them."""
    groups = list(request.groups or ())
    for column in (column for one in groups for column in one.columns):
        scan.column(column, "for a group")
        if column == request.target:
            raise ConfigurationError(
                f"{quoted(column)} is the label, which is not known when groups are needed."
            )
    for leaf in (leaf for one in groups for leaf in leaves(one)):
        profile = scan.columns[leaf.column]
        numbers = isinstance(leaf, (Cut, Weight)) or (isinstance(leaf, Where) and leaf.is_ordered)
        if numbers and profile.kind == "text":
            raise DataError(
                f"Column {quoted(leaf.column)} holds {quoted(profile.text)} in row "
                f"{profile.text_row}, which is no number, and its groups compare numbers. "
                f"Without them, {quoted(leaf.column)} alone is a group per value."
            )
    return groups


def asked_feature(scan: Scan, name: str, bounds: Any, request: Request, dates: Dates) -> Feature:
    """A feature that was asked for, its range looked up if need be."""
    profile = scan.column(name, "for a feature")
    if name == request.target:
        raise ConfigurationError(f"{quoted(name)} is the label, which no feature may hold.")
    if bounds == ENCODED_WORD:
        return encoded(name)
    if bounds == DATE_WORD or isinstance(bounds, dict):
        return _date(name, profile, bounds, dates)
    if profile.distinct < 2 and bounds is None:
        raise DataError(f"{profile.sameness} Take it off the features.")
    if request.missing == ERROR or profile.infinite:
        profile.check_complete("Fill in, or take it off the features.")
    if profile.kind == "text" and isinstance(bounds, tuple):
        raise DataError(
            f"Column {quoted(name)} has a range but holds {quoted(profile.text)} in row "
            f"{profile.text_row}, which is no number."
        )
    if isinstance(bounds, tuple):
        if not bounds[0] < bounds[1] or abs(bounds[0]) + abs(bounds[1]) == float("inf"):
            raise ConfigurationError(
                f"The range of the feature {quoted(name)} is {bounds[0]:g} to {bounds[1]:g}. Give "
                "two numbers, the lower one first."
            )
        return bounds
    if bounds == HASHED_WORD:
        return hashed()
    found = None if bounds == LEVELS_WORD else profile.scale
    if found is None and profile.distinct > COLUMNS:
        raise DataError(
            f"Column {quoted(name)} has {profile.count} different values, and at most {COLUMNS} "
            f"have a feature each. Let them share {COLUMNS}: {shown(name)}:{HASHED_WORD}."
        )
    return found


def _date(name: str, profile: Profile, said: Any, dates: Dates) -> Calendar:
    """A date by its parts: those worth something, or those that were said."""
    form = said.get("format") if isinstance(said, dict) else None
    if name not in dates and form is None:
        holds = quoted(profile.text) if profile.kind == "text" else "numbers"
        raise DataError(
            f"Column {quoted(name)} is no date that can be read: it holds {holds}. "
            "Give its format in a file of settings, such as "
            f'{shown(name)} = {{date = ["month"], format = "%d/%m/%Y"}}.'
        )
    if not isinstance(said, dict):
        return dates[name]
    if set(said) - {"date", "aside", "format"} or "date" not in said:
        raise ConfigurationError(f"features.{shown(name)} has the keys date, aside and format.")
    form = form or dates[name].format
    return Calendar(name, said["date"], said.get("aside", ()), form)


def label_range(
    label: Profile, given: tuple[float, float] | None, skip: bool = False
) -> tuple[float, float]:
    """The range of the label, looked up where it is not given."""
    low, high = given or (label.low, label.high)
    if given is None and low == high:
        raise DataError(
            f"The label column {quoted(label.name)} holds one value only ({amount(low)}), so there "
            "is nothing to predict. If others are to come, give --range LOW,HIGH."
        )
    if not low < high:
        raise ConfigurationError(f"The range {low:g},{high:g} is not one: LOW is below HIGH.")
    if not NARROWEST <= high - low <= WIDEST:
        raise ConfigurationError(
            f"The label's range {low:g},{high:g} is {high - low:g} wide, and losses are the square "
            f"of that, which is beyond what can be computed with. Multiply {quoted(label.name)} by "
            "a constant."
        )
    for value, row in ((label.low, label.low_row), (label.high, label.high_row)):
        if not low <= value <= high and not skip:
            raise DataError(
                f"The label column {quoted(label.name)} holds {value:g} in row {row}, which is "
                f"outside the range {low:g},{high:g}. Give a range that holds every label; "
                "--skip-bad leaves such rows out."
            )
    return low, high


def check_width(
    scan: Scan, groups: Sequence[Group], features: Features, indicators: bool, bent: bool
) -> None:
    """Refuse more features than the matrices of a group have room for."""
    own = [width_of(one) for one in features.values()]
    if bent:
        knots = sum(len(quantiles) for _, quantiles in KNOTS)
        own.append(knots * min(number_fields(features), MOST_COLUMNS))
    texts = [scan.columns[name].distinct - 1 for name, one in features.items() if one is None]
    named = [scan.columns[one.column].distinct for one in groups if isinstance(one, By)]
    width = sum(own) + sum(texts) + indicators * sum(min(many, 2 * COLUMNS) for many in named)
    if width > FEATURES:
        raise DataError(
            f"{shown(scan.source.name)} would make {width:,} features, and the model of a group "
            f"holds a number for every two of them: {8e-9 * width**2:,.0f} GB. Name at most "
            f"{FEATURES:,} with --features, or leave columns out with --drop."
        )
