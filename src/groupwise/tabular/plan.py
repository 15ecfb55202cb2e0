"""What a run will do: everything asked for, and the rest looked up or proposed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupwise.errors import ConfigurationError, DataError
from groupwise.groups import Group, Groups
from groupwise.groups.text import Unknown, parse_features, parse_groups
from groupwise.tabular.cells import Kind
from groupwise.tabular.proposal import (
    Features,
    infinite,
    keep_indicators,
    leaves,
    missing,
    one_value,
    propose_features,
    propose_groups,
    reads_numbers,
    remarks,
    scaling,
    spans_constant,
)
from groupwise.tabular.scan import Profile, Scan, unknown_column
from groupwise.tabular.settings import (
    LEVELS_WORD,
    Request,
    aggregator_called,
    learner_called,
)
from groupwise.tabular.text import amount, quoted, shown

if TYPE_CHECKING:
    from groupwise.model import Groupwise


@dataclass(frozen=True)
class Plan:
    """A run, decided."""

    target: str
    range: tuple[float, float]
    order: str | None
    groups: tuple[Group, ...]
    features: Features
    indicators: bool
    learner: str
    aggregator: str
    penalty: float
    kinds: dict[str, Kind]
    """The columns that are read, and what they hold."""
    warnings: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """What would have stopped a run; for a proposal that is edited first."""
    looked_ahead: tuple[str, ...] = ()
    """What was learned from the whole file before its first row was predicted."""
    proposed: bool = False

    def model(self) -> "Groupwise":
        """A model that has seen nothing yet."""
        from groupwise.losses import Square
        from groupwise.model import Groupwise

        return Groupwise(
            groups=self.groups,
            learner=learner_called(self.learner, self.penalty),
            aggregator=aggregator_called(self.aggregator),
            loss=Square(*self.range),
            features=self.features,
            indicators=self.indicators,
        )


def guess_target(scan: Scan) -> str:
    """The last column of numbers."""
    for name, profile in reversed(scan.columns.items()):
        if profile.kind == "number" and not profile.missing and profile.low < profile.high:
            return name
    raise DataError(f"{shown(scan.source.name)} has no column of numbers that could be the label.")


def make_plan(
    scan: Scan, request: Request, strict: bool = True, reserved: Sequence[str] = ()
) -> Plan:
    """Decide everything. ``reserved`` columns are neither features nor groups.

    With ``strict``, a column that cannot be used as it is stops the run; else it is left out.
    """
    target = _target(scan, request)
    for name in request.drop:
        scan.column(name, "to leave out")
    others = {target, *request.drop, *reserved}
    groups = _groups(scan, request, others)
    indicators = request.indicators
    if indicators is None:
        indicators = keep_indicators(scan, groups)
    warnings: list[str] = []
    problems: list[str] = []
    asked = request.features
    if "features" in request.text:
        asked = parse_features(request.text["features"], list(scan.columns), _unknown(scan))
    if asked is None:
        proposal = propose_features(scan, others, groups, indicators)
        features, problems = proposal.features, proposal.problems
        warnings += proposal.warnings
        if strict and problems:
            raise DataError(
                f"{problems[0]} Leave the column out with --drop, or say which columns to use with "
                "--features and --groups (groupwise init proposes them)."
            )
    else:
        features = {name: _asked(scan, name, bounds, target) for name, bounds in asked.items()}
    if request.range is None:
        low, high = _label_range(scan.columns[target])
    else:
        low, high = _checked_range(scan.columns[target], request.range)
    Groups(groups, always_on=True)  # refuses groups that would have the same name
    if not features and not (groups and indicators):
        raise DataError(
            f"{shown(scan.source.name)} has no column besides the label that could be a feature or "
            "a group."
        )
    warnings += remarks(scan, groups, features, target)
    if not spans_constant(groups, features, indicators):
        warnings.append(
            "No features always sum to 1, so the models have no intercept. "
            "A group per value of some column (--groups) gives them one."
        )
    read = dict.fromkeys([target, *features, *(c for one in groups for c in one.columns)])
    return Plan(
        target=target,
        range=(low, high),
        order=request.order,
        groups=tuple(groups),
        features=features,
        indicators=indicators,
        learner=request.learner or "ridge",
        aggregator=request.aggregator or "adanormalhedge",
        penalty=request.penalty,
        kinds={
            name: "text" if features.get(name, ()) is None else scan.columns[name].kind
            for name in read
        },
        warnings=tuple(warnings),
        left_out=tuple(problems),
        looked_ahead=_looked_ahead(request, asked, features),
        proposed=asked is None or (request.groups is None and "groups" not in request.text),
    )


def _unknown(scan: Scan) -> Unknown:
    """What gives the error for a column that the file does not have."""
    return lambda name, what: unknown_column(name, list(scan.columns), scan.source.name, what)


def _target(scan: Scan, request: Request) -> str:
    if request.target is None:
        raise ConfigurationError("Which column is to be predicted? Name it with --target COLUMN.")
    profile = scan.column(request.target, "for the label")
    if profile.kind == "text":
        if not profile.values:
            raise DataError(one_value(profile))
        raise DataError(
            f"The label column {quoted(profile.name)} holds {quoted(profile.text)} in row "
            f"{profile.text_row}, which is no number. Labels are numbers."
        )
    if profile.missing:
        raise DataError(missing(profile) + " Every row needs its label: leave out those without.")
    if profile.infinite:
        raise DataError(infinite(profile))
    return profile.name


def _groups(scan: Scan, request: Request, others: set[str]) -> list[Group]:
    columns = list(scan.columns)
    if "groups" in request.text:
        groups = parse_groups(request.text["groups"], columns, _unknown(scan))
    elif request.groups is not None:
        groups = list(request.groups)
    else:
        return propose_groups(scan, others)
    for column in (column for one in groups for column in one.columns):
        scan.column(column, "for a group")
        if column == request.target:
            raise ConfigurationError(
                f"{quoted(column)} is the label, which is not known when groups are needed."
            )
    for leaf in (leaf for one in groups for leaf in leaves(one)):
        profile = scan.columns[leaf.column]
        if reads_numbers(leaf) and profile.kind == "text":
            raise DataError(
                f"Column {quoted(leaf.column)} holds {quoted(profile.text)} in row "
                f"{profile.text_row}, which is no number, and its groups compare numbers. "
                f"Without them, {quoted(leaf.column)} alone is a group per value."
            )
    return groups


def _asked(scan: Scan, name: str, bounds: object, target: str) -> tuple[float, float] | None:
    """A feature that was asked for, its range looked up if need be."""
    profile = scan.column(name, "for a feature")
    if name == target:
        raise ConfigurationError(f"{quoted(name)} is the label, which no feature may hold.")
    if profile.distinct < 2 and bounds is None:
        raise DataError(f"{one_value(profile)} Take it off the features.")
    if profile.missing:
        raise DataError(f"{missing(profile)} Fill in, or take it off the features.")
    if profile.infinite:
        raise DataError(infinite(profile))
    if bounds == LEVELS_WORD or (bounds is None and profile.kind == "text"):
        return None
    if profile.kind == "text":
        raise DataError(
            f"Column {quoted(name)} has a range but holds {quoted(profile.text)} in row "
            f"{profile.text_row}, which is no number."
        )
    return bounds if isinstance(bounds, tuple) else scaling(profile)


def _label_range(profile: Profile) -> tuple[float, float]:
    if profile.low == profile.high:
        raise DataError(
            f"The label column {quoted(profile.name)} holds one value only "
            f"({amount(profile.low)}), so there is nothing to predict. If others are to come, "
            "give --range LOW,HIGH."
        )
    return profile.low, profile.high


def _checked_range(profile: Profile, bounds: tuple[float, float]) -> tuple[float, float]:
    low, high = bounds
    if not low < high:
        raise ConfigurationError(f"The range {low:g},{high:g} is not one: LOW is below HIGH.")
    for value in (profile.low, profile.high):
        if not low <= value <= high:
            raise DataError(
                f"The label column {quoted(profile.name)} holds {value:g}, which is outside the "
                f"range {low:g},{high:g}. Give a range that holds every label."
            )
    return low, high


def _looked_ahead(request: Request, asked: object, features: Features) -> tuple[str, ...]:
    found = []
    if request.range is None:
        found.append("the range of the label")
    given = asked if isinstance(asked, dict) else {}
    looked_up = [name for name, bounds in features.items() if bounds and not given.get(name)]
    if looked_up:
        one = len(looked_up) == 1
        what = f"{shown(looked_up[0])} is" if one else f"{len(looked_up)} features are"
        found.append(f"the range{'' if one else 's'} that {what} scaled from")
    proposed = ["groups"] if request.groups is None and "groups" not in request.text else []
    proposed += ["features"] if asked is None else []
    if proposed:
        found.append(f"which columns are {' and which are '.join(proposed)}")
    if request.order is not None:
        found.append("the order of the rows")
    return tuple(found)
