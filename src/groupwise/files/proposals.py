"""Groups and features that are proposed from what the columns of a file hold."""

from collections.abc import Collection, Sequence
from typing import Any

from groupwise.features import encoded
from groupwise.features.calendar import LEVELS as PARTS
from groupwise.features.calendar import Calendar
from groupwise.features.declared import Hashed
from groupwise.features.encoding import Encoded
from groupwise.files.making import Dates
from groupwise.files.noticed import age_bands, alike, is_identifier
from groupwise.files.profile import Profile
from groupwise.files.scan import Scan
from groupwise.files.settings import DROP, LEVELS_WORD
from groupwise.files.text import argument, listed, quoted, shown, spellings
from groupwise.groups import Group, by, cut
from groupwise.groups.algebra import Leaf
from groupwise.groups.declarations import By, Cut
from groupwise.groups.text import ENCODED_WORD, HASHED_WORD

Feature = tuple[float, float] | Hashed | Encoded | Calendar | None
"""What is made of a column: a range to scale from, levels, or what a maker makes."""
Features = dict[str, Feature]

FEW = 24
"""Whole numbers with so few values are proposed as groups: hours of the day still are."""
LEVELS = 50
"""A text column with more levels is not proposed as groups, nor are its levels features."""
GROUPED = 64
"""So many columns are proposed as groups at most, those that come first."""
WIDE = 256
"""So many columns are proposed as features at most, besides dates and encoded text."""
MANY = 1_000
"""So many groups from one column deserve a warning."""
BENT = 64
"""So many number columns have hinges, each five; where there are more, none unless asked for."""
SUSPICIOUS = 0.95
"""A feature that correlates so with the label may be known only when the label is."""


def propose_groups(scan: Scan, others: Collection[str]) -> list[Group]:
    """Text and few-valued columns, and bands of age; without any, halves of the first numbers.

    ``others`` are columns with a role of their own: the label, what is left out.
    """
    profiles = [p for name, p in scan.columns.items() if name not in others]
    bands = {p.name: age_bands(p) for p in profiles if not is_few_valued(p)}
    every = [by(p.name) if is_few_valued(p) else bands[p.name] for p in profiles]
    found = [one for one in every if one is not None][:GROUPED]
    usable = [p for p in profiles if p.kind == "number" and p.low < p.high and not p.infinite]
    return found or [cut(p.name, [(p.low + p.high) / 2]) for p in usable[:3]]


def proposed(
    scan: Scan, others: Collection[str], dates: Dates
) -> tuple[list[Group], dict[str, str]]:
    """The groups that are proposed, those that are the same once; and what to say of the others."""
    groups = propose_groups(scan, others)
    twice = alike(scan, [one.column for one in groups if isinstance(one, By)], dates)
    said = {
        name: f"Columns {quoted(first)} and {quoted(name)} make the same groups: those of "
        f"{quoted(first)} are proposed."
        for name, first in twice.items()
    }
    return [one for one in groups if not (isinstance(one, By) and one.column in twice)], said


def gaps(scan: Scan, features: Features, missing: str) -> list[str]:
    """Says which features have missing values, and what becomes of them."""
    kept = (tuple, Hashed, type(None))
    names = [n for n, one in features.items() if scan.columns[n].missing and isinstance(one, kept)]
    if not names:
        return []
    first = scan.columns[names[0]]
    where = first.gaps if len(names) == 1 else f"Columns {listed(names, 5)} have missing values."
    if missing == DROP:
        return [f"{where} Rows with one are left out."]
    return [
        f"{where} They count as 0, with a feature such as {quoted(f'{names[0]} missing')} beside "
        "them; --missing error or drop says otherwise."
    ]


def is_few_valued(profile: Profile) -> bool:
    """Whether a column's values make groups; where one is missing, a row is in none of them."""
    numbers = FEW if profile.whole else 0
    most = LEVELS if profile.kind == "text" else numbers
    present = profile.rows - profile.missing
    return 2 <= profile.distinct <= most and 2 * profile.distinct <= max(present, 4)


def propose_features(
    scan: Scan,
    others: Collection[str],
    groups: Sequence[Group],
    indicators: bool,
    dates: Dates,
    labelled: bool = True,
    strict: bool = False,
) -> tuple[Features, list[str], list[str]]:
    """Every usable column that is not a feature already, as the indicators of its groups.

    A column whose every value is a group holds names, whatever they look like: it is never read as
    a number. Dates are features by their parts, and text with very many values by its mean label,
    where labels are numbers (``labelled``). Beside the features: what to know about columns, and
    what should stop a run: infinite numbers, and where that is ``strict``, missing values.
    """
    features: Features = {}
    warnings: list[str] = []
    problems: list[str] = []
    named = {one.column for one in groups if isinstance(one, By)}
    covered = named if indicators else {n for n in named if scan.columns[n].distinct > LEVELS}
    weights = {column for one in groups for column in one.weight_columns}
    grouped = {column for one in groups for column in one.columns}
    for name, profile in scan.columns.items():
        text, many = profile.kind == "text", profile.distinct
        repeated = profile.values is not None and 2 * many <= profile.rows
        fit = labelled and not {*encoded(name).fields} & scan.columns.keys()
        if name in others or name in weights:
            continue
        if name in dates:
            features[name] = dates[name]
        elif fit and text and many > LEVELS and repeated and not (indicators and name in named):
            features[name] = encoded(name)
        elif name in covered:
            continue
        elif not text and is_identifier(profile) and many > FEW:
            if fit and repeated:
                features[name] = encoded(name)
            else:
                warnings.append(
                    f"Column {quoted(name)} is left out: its numbers are names, too many for a "
                    "feature each."
                )
        elif text and (many > LEVELS or 2 * many > max(profile.rows, 4)):
            if name not in grouped:
                warnings.append(
                    f"Column {quoted(name)} is left out: it has {profile.count} different "
                    f"texts in {profile.rows:,} rows, too many for a feature. (For groups it can "
                    f"be named in --groups, and as {shown(name)}:{HASHED_WORD} in --features.)"
                )
        elif profile.missing and (name in named or (text and name in grouped)):
            pass  # groups may be missing
        elif (profile.missing and strict) or profile.infinite:
            problems.append(profile.infinity if profile.infinite else profile.gaps)
        else:
            features[name] = None if name in named else profile.scale
    features, said = narrowed(scan, features)
    return features, [*warnings, *said], problems


def narrowed(scan: Scan, features: Features) -> tuple[Features, list[str]]:
    """Of very many columns those that go best with the label, and a word about it.

    The model of a group takes time and room for every two features: with these, a run over a wide
    file takes time in proportion to its cells.
    """
    numbers = [name for name, one in features.items() if not isinstance(one, (Encoded, Calendar))]
    if len(numbers) <= WIDE:
        return features, []
    best = sorted(numbers, key=lambda name: -abs(scan.columns[name].correlation))[:WIDE]
    gone = {*numbers} - {*best}
    kept = {name: one for name, one in features.items() if name not in gone}
    return kept, [
        f"Of {len(numbers):,} columns the {WIDE} that go best with the label are features; "
        "--features names others."
    ]


def remarks(scan: Scan, groups: Sequence[Group], features: Features, target: str) -> list[str]:
    """What to tell about the groups and features that will be used."""
    every = [leaf for one in groups for leaf in leaves(one) if isinstance(leaf, By)]
    named = [scan.columns[name] for name in dict.fromkeys(leaf.column for leaf in every)]
    large = [
        f"Column {quoted(profile.name)} has {profile.count} values and each is a group of its own: "
        "memory, time and the report grow with them, and groups of few rows learn little."
        for profile in named
        if profile.distinct > MANY
    ]
    for profile in named:
        texts = sorted(profile.values or ()) if profile.kind == "text" else ()
        for one, other in spellings(texts)[:1]:
            large.append(
                f"The values {quoted(one)} and {quoted(other)} of {quoted(profile.name)} differ in "
                "capitals, spaces or full stops alone, and are two groups. If they are one, mend "
                "them."
            )
    suspicious = [
        f"Feature {quoted(name)} correlates with the label {quoted(target)} at "
        f"{scan.columns[name].correlation:.2f}. If it becomes known only with the label, "
        f"leave it out: --drop {argument(name)}."
        for name in features
        if abs(scan.columns[name].correlation) >= SUSPICIOUS
    ]
    return large + suspicious


def spans_constant(groups: Sequence[Group], features: Features, indicators: bool) -> bool:
    """Whether the features can express an intercept: some of them always sum to 1."""
    partition = any(isinstance(one, (By, Cut)) for one in groups)
    return (indicators and partition) or any(map(is_text, features.values()))


def leaves(group: Group) -> list[Leaf]:
    """The parts of a declaration that read a column."""
    if isinstance(group, Leaf):
        return [group]
    return [leaf for member in group.members for leaf in leaves(member)]


def word(bounds: Feature) -> Any:
    """What a file of settings says of a feature."""
    if isinstance(bounds, Calendar):
        said = {"date": list(bounds.parts), "aside": list(bounds.aside), "format": bounds.format}
        return {key: one for key, one in said.items() if one or key == "date"}
    words = {Hashed: HASHED_WORD, Encoded: ENCODED_WORD, type(None): LEVELS_WORD}
    return list(bounds) if isinstance(bounds, tuple) else words[type(bounds)]


def is_text(bounds: object) -> bool:
    """Whether a feature so declared has a level for each value."""
    return bounds is None or isinstance(bounds, Hashed)


def width_of(feature: object) -> int:
    """How many numbers a feature makes, without hinges; of levels of text one."""
    if isinstance(feature, Calendar):
        return sum(len(PARTS.get(part, "1")) for part in feature.parts)
    return feature.columns if isinstance(feature, Hashed) else 1


def number_fields(features: Features) -> int:
    """How many features are numbers, which may have hinges."""
    return sum(isinstance(one, tuple) for one in features.values())
