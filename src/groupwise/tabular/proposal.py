"""Proposing groups and features from what the columns hold."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from groupwise.groups import Group, by, cut
from groupwise.groups.declarations import By, Cut, Leaf, Weight, Where
from groupwise.tabular.scan import Profile, Scan
from groupwise.tabular.text import amount, quoted, shown

Features = dict[str, tuple[float, float] | None]

FEW = 24
"""Whole numbers with so few values are proposed as groups: hours of the day still are."""
LEVELS = 50
"""A text column with more levels is neither proposed as groups nor a feature."""
MANY = 1_000
"""So many groups from one column deserve a warning."""
SUSPICIOUS = 0.95
"""A feature that correlates so with the label may be known only when the label is."""


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
            proposal.problems.append(one_value(profile))
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
            proposal.problems.append(missing(profile))
        elif profile.infinite:
            proposal.problems.append(infinite(profile))
        else:
            proposal.features[name] = None if name in named else scaling(profile)
    return proposal


def scaling(profile: Profile) -> tuple[float, float] | None:
    """The range that a column of numbers is scaled from; None for text."""
    return None if profile.kind == "text" else (profile.low, profile.high)


def one_value(profile: Profile) -> str:
    """A column that says nothing."""
    value = next(iter(profile.values or ()), None)
    holds = "no value at all" if value is None else f"one value only ({quoted(value)})"
    return f"Column {quoted(profile.name)} holds {holds}, so nothing can be learned from it."


def missing(profile: Profile) -> str:
    """A column with holes in it."""
    count = "a missing value" if profile.missing == 1 else f"{profile.missing:,} missing values"
    where = "in" if profile.missing == 1 else "the first in"
    return f"Column {quoted(profile.name)} has {count}, {where} row {profile.first_missing}."


def infinite(profile: Profile) -> str:
    """A column with infinity in it."""
    return f"Column {quoted(profile.name)} holds an infinite number in row {profile.infinite}."


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
