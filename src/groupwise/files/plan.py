"""What a run will do: everything asked for, and the rest looked up or proposed from the columns."""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupwise.errors import ConfigurationError, DataError
from groupwise.features import COLUMNS, hashed
from groupwise.features.declared import Hashed
from groupwise.files.labels import loss_for, task_for, task_warnings
from groupwise.files.logged import Logged, find_logged
from groupwise.files.scan import Kind, Profile, Scan, scan
from groupwise.files.settings import LEVELS_WORD, NUMBER, PROBABILITY, Request, request_from
from groupwise.files.source import opened
from groupwise.files.task import Task
from groupwise.files.text import amount, quoted, shown
from groupwise.groups import Group, Groups, by, cut, dumps
from groupwise.groups.algebra import Leaf
from groupwise.groups.declarations import By, Cut, Weight, Where
from groupwise.groups.text import HASHED_WORD
from groupwise.losses import Square

if TYPE_CHECKING:
    from groupwise.model import Groupwise

Features = dict[str, tuple[float, float] | Hashed | None]

FEW = 24
"""Whole numbers with so few values are proposed as groups: hours of the day still are."""
PENALTIES = {False: 1.0, True: 0.1}
"""For numbers, and for probabilities: columns are scaled to [0, 1], and odds are of any size."""
LEVELS = 50
"""A text column with more levels is neither proposed as groups nor a feature."""
MANY = 1_000
"""So many groups from one column deserve a warning."""
FEATURES = 8_192
"""So many features, of which every two have a number in a group's matrix: half a gigabyte."""
NARROWEST, WIDEST = 1e-100, 1e100
"""Ranges of labels whose squares, and sums of these, are numbers."""
NUMERIC = ("ridge", "forward")
"""Learners that predict numbers."""
SUSPICIOUS = 0.95
"""A feature that correlates so with the label may be known only when the label is."""


@dataclass(frozen=True)
class Plan:
    """A run, decided.

    ``kinds`` has the columns that are read, and what they hold; ``logged`` the predictions of other
    models; ``notes`` what was guessed or left out, for a proposal that is edited first;
    ``looked_ahead`` what was learned from the whole file before its first row was predicted.
    """

    target: str
    task: Task
    order: str | None
    groups: tuple[Group, ...]
    features: Features
    indicators: bool
    intercept: bool
    learner: str
    aggregator: str
    parameters: dict[str, float]
    kinds: dict[str, Kind]
    warnings: tuple[str, ...] = ()
    logged: tuple[Logged, ...] = ()
    notes: tuple[str, ...] = ()
    looked_ahead: tuple[str, ...] = ()
    proposed: bool = False

    def toml(self, notes: Sequence[str] = ()) -> str:
        """The TOML file that asks for this plan, notes as comments at the top."""
        import tomli_w

        settings = {
            "target": self.target,
            "task": self.task.name,
            **self.range_or_classes,
            **({} if self.order is None else {"order": self.order}),
            "learner": self.learner,
            "aggregator": self.aggregator,
            **self.parameters,
            "indicators": self.indicators,
            "intercept": self.intercept,
            "features": {
                name: list(bounds) if isinstance(bounds, tuple) else word(bounds)
                for name, bounds in self.features.items()
            },
        }
        comments = "".join(f"# {shown(note, 1000)}\n" for note in notes)
        pair = r"\[\n\s+([^\n]+),\n\s+([^\n]+),\n\]"  # which is to stand on one line
        text = re.sub(pair, r"[\1, \2]", tomli_w.dumps(settings))
        return f"{comments}{text}\n{dumps(self.groups)}"

    @property
    def range_or_classes(self) -> dict[str, Any]:
        """What settings say of the label besides its task."""
        loss = self.task.loss
        if not self.task.is_chance:
            return {"range": [loss.low, loss.high]}
        return {} if loss.classes is None else {"classes": list(loss.classes)}

    def model(self) -> "Groupwise":
        """A model that has seen nothing yet."""
        from groupwise.model import Groupwise
        from groupwise.validation import part_called

        return Groupwise(
            groups=self.groups,
            learner=part_called("learner", self.learner, **self.parameters),
            aggregator=part_called("aggregator", self.aggregator),
            loss=self.task.loss,
            features=self.features,
            indicators=self.indicators,
            intercept=self.intercept,
        )


def guess_target(scan: Scan) -> str:
    """The last column of numbers."""
    for name, profile in reversed(scan.columns.items()):
        if profile.kind == "number" and not profile.missing and profile.low < profile.high:
            return name
    raise DataError(f"{shown(scan.source.name)} has no column of numbers that could be the label.")


@contextmanager
def planned(
    data: str,
    config: Path | None = None,
    predictions: Sequence[str] = (),
    strict: bool = True,
    **options: str | bool | None,
) -> Iterator[tuple[Scan, Plan]]:
    """A file, looked through once, and the plan that a TOML file and options ask for."""
    request = request_from(config, **options)
    with opened(data) as source:
        found = scan(source, request.target, request.order, progress=True)
        yield found, make_plan(found, request, strict, predictions)


def make_plan(
    scan: Scan, request: Request, strict: bool = True, predictions: Sequence[str] = ()
) -> Plan:
    """Decide everything. The ``predictions`` of other models are neither features nor groups.

    With ``strict``, a column that cannot be used as it is stops the run; else it is left out, and
    a label that is not named is guessed.
    """
    notes = []
    if request.target is None and not strict:
        request = replace(request, target=guess_target(scan))
        notes.append("The label is guessed: the last column of numbers.")
    label = _label(scan, request)
    task = _task(label, request)
    for name in request.drop:
        scan.column(name, "to leave out")
    request = request.read(list(scan.columns), scan.unknown)
    logged = find_logged(scan, task, label.name, predictions)
    others = {label.name, *request.drop, *(column for one in logged for column in one.columns)}
    groups = propose_groups(scan, others) if request.groups is None else _groups(scan, request)
    indicators = request.indicators
    if indicators is None:  # not where a column has very many values
        columns = [scan.columns[one.column] for one in groups if isinstance(one, By)]
        indicators = all(column.distinct <= LEVELS for column in columns)
    warnings: list[str] = []
    if request.features is None:
        features, warnings, problems = propose_features(scan, others, groups, indicators)
        if strict and problems:
            raise DataError(
                f"{problems[0]} Leave the column out with --drop, or say which columns to use with "
                "--features and --groups (groupwise init proposes them)."
            )
        notes += [f"Left out: {problem}" for problem in problems]
    else:
        features = {
            name: _asked(scan, name, bounds, label.name)
            for name, bounds in request.features.items()
        }
    Groups(groups, always_on=True)  # refuses groups that would have the same name
    if not features and not (groups and (indicators or request.intercept)):
        raise DataError(
            f"{shown(scan.source.name)} has no column besides the label that could be a feature or "
            "a group."
        )
    _check_width(scan, groups, features, indicators)
    warnings = [*task_warnings(label, request, task), *warnings]
    warnings += remarks(scan, groups, features, label.name)
    if not (request.intercept or spans_constant(groups, features, indicators)):
        warnings.append(
            "No features always sum to 1, so the models have no intercept. "
            "Leave out --no-intercept (intercept = false) to give them one."
        )
    read = dict.fromkeys([label.name, *features, *(c for one in groups for c in one.columns)])
    return Plan(
        target=label.name,
        task=task,
        order=request.order,
        groups=tuple(groups),
        features=features,
        indicators=indicators,
        intercept=request.intercept,
        **parts_for(request, task),
        kinds={
            name: "text" if is_text(features.get(name, ())) else scan.columns[name].kind
            for name in read
        },
        warnings=tuple(warnings),
        logged=logged,
        notes=tuple(notes),
        looked_ahead=_looked_ahead(request, features, task),
        proposed=request.features is None or request.groups is None,
    )


def _label(scan: Scan, request: Request) -> Profile:
    if request.target is None:
        raise ConfigurationError("Which column is to be predicted? Name it with --target COLUMN.")
    profile = scan.column(request.target, "for the label")
    if not profile.distinct:
        raise DataError(profile.sameness)
    return profile


def _task(label: Profile, request: Request) -> Task:
    """What the label is, and its range or its classes."""
    name, classes = task_for(label, request)
    return Task(Square(*_range(label, request.range)) if name == NUMBER else loss_for(classes))


def parts_for(request: Request, task: Task) -> dict[str, Any]:
    """Learner and aggregator: those asked for, if they are for such a label, or the best known."""
    chance = task.is_chance
    learner = request.learner or ("logistic" if chance else "ridge")
    aggregator = request.aggregator or ("specialists" if chance else "adanormalhedge")
    if chance and learner in NUMERIC:
        raise ConfigurationError(
            f"--learner {learner} predicts numbers, and {quoted(request.target or '')} is "
            f"{'yes or no' if task.name == PROBABILITY else 'one of several classes'}. Leave it "
            "out, or say --task number."
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
    if request.bound is not None and learner != "logistic":
        raise ConfigurationError(f"bound is for --learner logistic, not for {learner}.")
    bound = {} if request.bound is None else {"bound": request.bound}
    penalty = PENALTIES[chance] if request.penalty is None else request.penalty
    parameters = {"penalty": penalty, **bound}
    return {"learner": learner, "aggregator": aggregator, "parameters": parameters}


def _groups(scan: Scan, request: Request) -> list[Group]:
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


def word(bounds: Hashed | None) -> str:
    """What a file of settings says of a feature that is text."""
    return LEVELS_WORD if bounds is None else HASHED_WORD


def is_text(bounds: object) -> bool:
    """Whether a feature so declared has a level for each value."""
    return bounds is None or isinstance(bounds, Hashed)


def _asked(
    scan: Scan, name: str, bounds: object, target: str
) -> tuple[float, float] | Hashed | None:
    """A feature that was asked for, its range looked up if need be."""
    profile = scan.column(name, "for a feature")
    if name == target:
        raise ConfigurationError(f"{quoted(name)} is the label, which no feature may hold.")
    if profile.distinct < 2 and bounds is None:
        raise DataError(f"{profile.sameness} Take it off the features.")
    profile.check_complete("Fill in, or take it off the features.")
    if profile.kind == "text" and isinstance(bounds, tuple):
        raise DataError(
            f"Column {quoted(name)} has a range but holds {quoted(profile.text)} in row "
            f"{profile.text_row}, which is no number."
        )
    if isinstance(bounds, tuple):
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


def _range(label: Profile, given: tuple[float, float] | None) -> tuple[float, float]:
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
    for value in (label.low, label.high):
        if not low <= value <= high:
            raise DataError(
                f"The label column {quoted(label.name)} holds {value:g}, which is outside the "
                f"range {low:g},{high:g}. Give a range that holds every label."
            )
    return low, high


def _check_width(scan: Scan, groups: Sequence[Group], features: Features, indicators: bool) -> None:
    """Refuse more features than the matrices of a group have room for."""
    own = [one.columns if isinstance(one, Hashed) else 1 for one in features.values()]
    texts = [scan.columns[name].distinct - 1 for name, one in features.items() if one is None]
    named = [scan.columns[one.column].distinct for one in groups if isinstance(one, By)]
    width = sum(own) + sum(texts) + indicators * sum(min(many, 2 * COLUMNS) for many in named)
    if width > FEATURES:
        raise DataError(
            f"{shown(scan.source.name)} would make {width:,} features, and the model of a group "
            f"holds a number for every two of them: {8e-9 * width**2:,.0f} GB. Name at most "
            f"{FEATURES:,} with --features, or leave columns out with --drop."
        )


def _looked_ahead(request: Request, features: Features, task: Task) -> tuple[str, ...]:
    given = request.features or {}
    looked_up = [name for name, bounds in features.items() if bounds and not given.get(name)]
    scaled = f"the ranges that {len(looked_up)} features are scaled from"
    if len(looked_up) == 1:
        scaled = f"the range that {shown(looked_up[0])} is scaled from"
    proposed = [key for key in ("groups", "features") if getattr(request, key) is None]
    named = request.task is None or task.loss.classes is not None
    found = {
        "the range of the label": not task.is_chance and request.range is None,
        "the classes of the label": task.is_chance and request.classes is None and named,
        scaled: looked_up,
        f"which columns are {' and which are '.join(proposed)}": proposed,
        "the order of the rows": request.order is not None,
    }
    return tuple(text for text, is_so in found.items() if is_so)


def propose_groups(scan: Scan, others: Collection[str]) -> list[Group]:
    """Text and few-valued columns; where there is none, the halves of the first numbers.

    ``others`` are columns with a role of their own: the label, what is left out.
    """
    profiles = [p for name, p in scan.columns.items() if name not in others]
    found: list[Group] = [by(p.name) for p in profiles if is_few_valued(p)]
    usable = [p for p in profiles if p.kind == "number" and p.low < p.high and not p.infinite]
    return found or [cut(p.name, [(p.low + p.high) / 2]) for p in usable[:3]]


def is_few_valued(profile: Profile) -> bool:
    """Whether a column's values make groups; numbers that are missing here and there do not."""
    numbers = FEW if profile.whole and not profile.missing else 0
    most = LEVELS if profile.kind == "text" else numbers
    present = profile.rows - profile.missing
    return 2 <= profile.distinct <= most and 2 * profile.distinct <= max(present, 4)


def propose_features(
    scan: Scan, others: Collection[str], groups: Sequence[Group], indicators: bool
) -> tuple[Features, list[str], list[str]]:
    """Every usable column that is not a feature already, as the indicators of its groups.

    A column whose every value is a group holds names, whatever they look like: it is never read as
    a number. Beside the features: what to know about columns, and what should stop a run.
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
        if name in others or name in covered or name in weights:
            continue
        if many < 2:
            problems.append(profile.sameness)
        elif text and (many > LEVELS or 2 * many > max(profile.rows, 4)):
            if name not in grouped:
                warnings.append(
                    f"Column {quoted(name)} is left out: it has {profile.count} different "
                    f"texts in {profile.rows:,} rows, too many for a feature. (For groups it can "
                    f"be named in --groups, and as {shown(name)}:{HASHED_WORD} in --features.)"
                )
        elif profile.missing and (name in named or (text and name in grouped)):
            pass  # groups may be missing, features may not
        elif profile.missing or profile.infinite:
            problems.append(profile.gaps if profile.missing else profile.infinity)
        else:
            features[name] = None if name in named else profile.scale
    return features, warnings, problems


def remarks(scan: Scan, groups: Sequence[Group], features: Features, target: str) -> list[str]:
    """What to tell about the groups and features that will be used."""
    every = [leaf for one in groups for leaf in leaves(one)]
    large = [
        f"Column {quoted(name)} has {scan.columns[name].count} values and each is a group of its "
        "own: memory, time and the report grow with them, and groups of few rows learn little."
        for name in dict.fromkeys(leaf.column for leaf in every if isinstance(leaf, By))
        if scan.columns[name].distinct > MANY
    ]
    suspicious = [
        f"Feature {quoted(name)} correlates with the label {quoted(target)} at "
        f"{scan.columns[name].correlation:.2f}. If it becomes known only with the label, "
        f"leave it out: --drop {shown(name)}."
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
