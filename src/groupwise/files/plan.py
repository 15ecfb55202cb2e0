"""What a run will do: everything asked for, and the rest looked up or proposed from the columns."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from groupwise.errors import ConfigurationError, DataError
from groupwise.files.scan import Kind, Profile, Scan, unknown_column
from groupwise.files.settings import LEVELS_WORD, Request
from groupwise.files.text import amount, quoted, shown
from groupwise.groups import Group, Groups, by, cut
from groupwise.groups.declarations import By, Cut, Leaf, Weight, Where
from groupwise.groups.text import Unknown, parse_features, parse_groups

if TYPE_CHECKING:
    from groupwise.model import Groupwise

Features = dict[str, tuple[float, float] | None]

FEW = 24
"""Whole numbers with so few values are proposed as groups: hours of the day still are."""
LEVELS = 50
"""A text column with more levels is neither proposed as groups nor a feature."""
MANY = 1_000
"""So many groups from one column deserve a warning."""
SUSPICIOUS = 0.95
"""A feature that correlates so with the label may be known only when the label is."""


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
        from groupwise.validation import part_called

        return Groupwise(
            groups=self.groups,
            learner=part_called("learner", self.learner, penalty=self.penalty),
            aggregator=part_called("aggregator", self.aggregator),
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
    if not profile.distinct:
        raise DataError(profile.sameness)
    profile.check_numbers("label", "Every row needs its label: leave out those without.")
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
        raise DataError(f"{profile.sameness} Take it off the features.")
    profile.check_complete("Fill in, or take it off the features.")
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


@dataclass
class Proposal:
    """Features, and what to say about columns: things to know, and things that stop a run."""

    features: Features = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def propose_groups(scan: Scan, others: Collection[str]) -> list[Group]:
    """Text and few-valued columns; where there is none, the halves of the first numbers.

    ``others`` are columns with a role of their own: the label, what is left out.
    """
    profiles = [p for name, p in scan.columns.items() if name not in others]
    found: list[Group] = [by(p.name) for p in profiles if is_few_valued(p)]
    if not found:
        usable = [p for p in profiles if p.kind == "number" and p.low < p.high and not p.infinite]
        found = [cut(p.name, [(p.low + p.high) / 2]) for p in usable[:3]]
    return found


def is_few_valued(profile: Profile) -> bool:
    """Whether a column's values make groups; numbers that are missing here and there do not."""
    most = LEVELS
    if profile.kind == "number":
        most = FEW if profile.whole and not profile.missing else 0
    present = profile.rows - profile.missing
    return 2 <= profile.distinct <= most and 2 * profile.distinct <= max(present, 4)


def keep_indicators(scan: Scan, groups: Sequence[Group]) -> bool:
    """Whether the groups may be features too: not where a column has very many values."""
    return all(scan.columns[one.column].distinct <= LEVELS for one in groups if isinstance(one, By))


def propose_features(
    scan: Scan, others: Collection[str], groups: Sequence[Group], indicators: bool
) -> Proposal:
    """Every usable column that is not a feature already, as the indicators of its groups.

    A column whose every value is a group holds names, whatever they look like: it is never read as
    a number.
    """
    proposal = Proposal()
    named = {one.column for one in groups if isinstance(one, By)}
    covered = named if indicators else {n for n in named if scan.columns[n].distinct > LEVELS}
    weights = {column for one in groups for column in one.weight_columns}
    grouped = {column for one in groups for column in one.columns}
    for name, profile in scan.columns.items():
        if name in others or name in covered or name in weights:
            continue
        if profile.distinct < 2:
            proposal.problems.append(profile.sameness)
        elif profile.kind == "text" and _too_many(profile):
            if name not in grouped:
                proposal.warnings.append(
                    f"Column {quoted(name)} is left out: it has {_count(profile)} different "
                    f"texts in {profile.rows:,} rows, too many for a feature. (For groups it can "
                    "be named in --groups.)"
                )
        elif profile.missing and (name in named or (profile.kind == "text" and name in grouped)):
            pass  # groups may be missing, features may not
        elif profile.missing:
            proposal.problems.append(profile.gaps)
        elif profile.infinite:
            proposal.problems.append(profile.infinity)
        else:
            proposal.features[name] = None if name in named else scaling(profile)
    return proposal


def scaling(profile: Profile) -> tuple[float, float] | None:
    """The range that a column of numbers is scaled from; None for text."""
    return None if profile.kind == "text" else (profile.low, profile.high)


def remarks(scan: Scan, groups: Sequence[Group], features: Features, target: str) -> list[str]:
    """What to tell about the groups and features that will be used."""
    found = []
    found_leaves = [leaf for one in groups for leaf in leaves(one)]
    for column in dict.fromkeys(leaf.column for leaf in found_leaves if isinstance(leaf, By)):
        profile = scan.columns[column]
        if profile.distinct > MANY:
            found.append(
                f"Column {quoted(column)} has {_count(profile)} values and each is a group of its "
                "own: memory, time and the report grow with them, and groups of few rows learn "
                "little."
            )
    for name in features:
        if abs(scan.columns[name].correlation) >= SUSPICIOUS:
            found.append(
                f"Feature {quoted(name)} correlates with the label {quoted(target)} at "
                f"{scan.columns[name].correlation:.2f}. If it becomes known only with the label, "
                f"leave it out: --drop {shown(name)}."
            )
    return found


def spans_constant(groups: Sequence[Group], features: Features, indicators: bool) -> bool:
    """Whether the features can express an intercept: some of them always sum to 1."""
    partition = any(isinstance(one, (By, Cut)) for one in groups)
    return (indicators and partition) or any(bounds is None for bounds in features.values())


def _too_many(profile: Profile) -> bool:
    return profile.distinct > LEVELS or 2 * profile.distinct > max(profile.rows, 4)


def _count(profile: Profile) -> str:
    return f"over {profile.distinct - 1:,}" if profile.values is None else amount(profile.distinct)


def leaves(group: Group) -> list[Leaf]:
    """The parts of a declaration that read a column."""
    if isinstance(group, Leaf):
        return [group]
    return [leaf for member in group.members for leaf in leaves(member)]


def reads_numbers(leaf: Leaf) -> bool:
    """Whether the groups of a leaf compare numbers."""
    return isinstance(leaf, (Cut, Weight)) or (isinstance(leaf, Where) and leaf.is_ordered)
