"""What a run will do: everything asked for, and the rest looked up or proposed from the columns."""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupwise.errors import ConfigurationError, DataError
from groupwise.features import hinges
from groupwise.features.calendar import Calendar
from groupwise.features.declared import Hashed, declared_to_json
from groupwise.features.encoding import Encoded
from groupwise.features.past import Past
from groupwise.files.asked import (
    asked_feature,
    asked_groups,
    check_width,
    label_range,
    parts_for,
)
from groupwise.files.labels import loss_for, task_for, task_warnings
from groupwise.files.logged import Logged, find_experts, find_logged
from groupwise.files.making import Dates, dates_in, part_names, proposed_past, with_needed
from groupwise.files.noticed import leaks, left_out, order_hint
from groupwise.files.ordering import check_order, order_warnings
from groupwise.files.profile import Kind, Profile
from groupwise.files.proposals import (
    BENT,
    LEVELS,
    Features,
    gaps,
    is_few_valued,
    is_text,
    number_fields,
    propose_features,
    proposed,
    remarks,
    spans_constant,
    word,
)
from groupwise.files.scan import Scan, scan
from groupwise.files.settings import ERROR, INDICATOR, NUMBER, Request, request_from
from groupwise.files.several import opened
from groupwise.files.task import Task
from groupwise.files.text import quoted, shown
from groupwise.groups import Group, Groups, dumps
from groupwise.groups.declarations import By
from groupwise.losses import Square

if TYPE_CHECKING:
    from groupwise.model import Groupwise


@dataclass(frozen=True)
class Plan:
    """A run, decided.

    ``kinds`` has the columns that are read, and what they hold; ``logged`` the predictions of other
    models, ``experts`` the columns of those that are an expert of every group; ``notes`` what was
    guessed or left out, for a proposal that is edited first; ``looked_ahead`` what was learned from
    the whole file before its first row was predicted.
    """

    target: str
    task: Task
    order: tuple[str, ...]
    groups: tuple[Group, ...]
    features: Features
    indicators: bool
    intercept: bool
    preset: str | None
    learner: str
    aggregator: str
    intersections: int | None
    parameters: dict[str, float]
    kinds: dict[str, Kind]
    experts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    logged: tuple[Logged, ...] = ()
    notes: tuple[str, ...] = ()
    looked_ahead: tuple[str, ...] = ()
    proposed: tuple[str, ...] = ()
    """Of groups and features, those that were not given."""
    past: tuple[Past, ...] = ()
    hinges: bool = False
    missing: str = INDICATOR
    interval: float | None = None
    windows: bool = False
    skip_bad: bool = False
    left_out: dict[str, str] = field(default_factory=dict)
    """Columns that are used for nothing, and why, in a clause."""

    @property
    def filled(self) -> list[str]:
        """The columns in which a missing value is one of a feature."""
        makers = Calendar, Encoded
        return [name for name, one in self.features.items() if not isinstance(one, makers)]

    def toml(self, notes: Sequence[str] = ()) -> str:
        """The TOML file that asks for this plan, notes as comments at the top."""
        import tomli_w

        settings = {
            "target": self.target,
            "task": self.task.name,
            **self.range_or_classes,
            **({"order": self.plain_order} if self.order else {}),
            **({} if self.preset is None else {"preset": self.preset}),
            "learner": self.learner,
            "aggregator": self.aggregator,
            **({} if self.intersections is None else {"intersections": self.intersections}),
            **self.parameters,
            **({} if self.interval is None else {"interval": self.interval}),
            **({"windows": True} if self.windows else {}),
            "indicators": self.indicators,
            "intercept": self.intercept,
            **({"experts": list(self.experts)} if self.experts else {}),
            "hinges": self.hinges,
            "missing": self.missing,
            "past": self.plain_past,
            "features": {name: word(bounds) for name, bounds in self.features.items()},
        }
        comments = "".join(f"# {shown(note, 1000)}\n" for note in notes)
        lists = r"\[\n((?: +[^\[\]{}\n]+,\n)+) *\]"  # which are to stand on one line
        text = re.sub(lists, lambda found: f"[{_joined(found[1])}]", tomli_w.dumps(settings))
        return f"{comments}{text}\n{dumps(self.groups)}"

    @property
    def range_or_classes(self) -> dict[str, Any]:
        """What settings say of the label besides its task."""
        loss = self.task.loss
        if not self.task.is_chance:
            return {"range": [loss.low, loss.high]}
        return {} if loss.classes is None else {"classes": list(loss.classes)}

    @property
    def plain_order(self) -> str | list[str] | None:
        """The column to sort by as settings have it, or several; None for the order of the file."""
        return [*self.order] if len(self.order) > 1 else next(iter(self.order), None)

    @property
    def plain_past(self) -> list[dict[str, Any]]:
        """The past as settings have it."""
        return [_plainly(maker) for maker in self.past]

    @property
    def told_past(self) -> list[str]:
        """The past in words."""
        said = []
        for one in self.past:
            by = " and ".join(one.by) or "the last ones"
            said.append(f"{by}, of each {' and '.join(one.of)}" if one.of else by)
        return said

    @property
    def plain_features(self) -> dict[str, Any]:
        """The features in values that JSON holds."""
        made = Encoded, Calendar
        return {
            name: word(one) if isinstance(one, made) else declared_to_json({name: one})[name]
            for name, one in self.features.items()
        }

    @property
    def declared(self) -> Any:
        """The features as a model takes them: those of columns, and makers."""
        plain, dates, texts = {}, [], []
        for name, one in self.features.items():
            if isinstance(one, Calendar):
                dates.append(one)
            elif isinstance(one, Encoded):
                texts.append(one)
            else:
                plain[name] = one
        makers = [*dates, *self.past, *texts, *([hinges()] if self.hinges else [])]
        return [plain, *makers] if makers else plain

    def model(self, every_field: bool = False) -> "Groupwise":
        """A model that has seen nothing yet; ``every_field`` for all fields as features."""
        from groupwise.model import Groupwise
        from groupwise.presets import paper
        from groupwise.validation import learners_called, part_called

        as_published: dict[str, Any] = {}
        if self.preset is not None:
            as_published = {key: paper()[key] for key in ("play", "clip", "max_levels")}
        return Groupwise(
            groups=self.groups,
            learner=learners_called(self.learner, self.task.loss, **self.parameters),
            aggregator=part_called("aggregator", self.aggregator),
            loss=self.task.loss,
            features=[*self.declared][1:] or None if every_field else self.declared,
            indicators=self.indicators,
            intercept=self.intercept,
            intersections=self.intersections,
            experts=self.experts,
            missing=INDICATOR if self.missing == INDICATOR else None,
            intervals=self.interval,
            windows=self.windows,
            **as_published,
        )


def guess_target(scan: Scan) -> str:
    """The last column of numbers."""
    for name, profile in reversed(scan.columns.items()):
        if profile.kind == "number" and profile.low < profile.high:
            return name
    raise DataError(
        f"{shown(scan.source.name)} has no column of numbers that could be the label. Name it with "
        "--target COLUMN."
    )


@contextmanager
def planned(
    data: str | Sequence[str],
    config: Path | None = None,
    predictions: Sequence[str] = (),
    strict: bool = True,
    table: str | None = None,
    **options: Any,
) -> Iterator[tuple[Scan, Plan]]:
    """A file, or several, looked through once, and the plan that settings and options ask for."""
    request = request_from(config, **options)
    with opened(data, table, request.skip_bad) as source:
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
    check_order(scan, request.order, request.skip_bad)
    task = _task(label, request)
    if request.preset is not None and task.is_chance:
        raise ConfigurationError(
            f"--preset {request.preset} predicts numbers, and {quoted(label.name)} is not one. "
            "Leave it out, or say --task number."
        )
    for option, asked in (("interval", request.interval), ("windows", request.windows)):
        if asked and task.is_chance:
            raise ConfigurationError(
                f"--{option} is for labels that are numbers, and {quoted(label.name)} is not one: "
                "its probability is predicted. Leave it out, or say --task number."
            )
    request = request.preset_read()
    for name in request.drop:
        if name not in scan.source.unread:
            scan.column(name, "to leave out")
    logged = find_logged(scan, task, label.name, predictions, request.skip_bad)
    experts = find_experts(scan, task, label.name, request.experts, request.skip_bad)
    theirs = (column for one in logged for column in one.columns)
    others = {label.name, *request.drop, *theirs, *experts}
    dates, parts = dates_in(scan, request.order, others)
    scan = replace(scan, columns={**scan.columns, **parts})
    request = request.read(list(scan.columns), scan.unknown)
    aside = others | part_names(dates, aside=True)
    unread = {name: why for name, why in scan.source.unread.items() if name not in aside}
    nothing = left_out(scan, aside, request.order) | unread
    if request.groups is None:
        groups, same = proposed(scan, aside | nothing.keys(), dates)
    else:
        groups, same = asked_groups(scan, request), {}
    indicators = request.indicators
    if indicators is None:  # not where a column has very many values
        columns = [scan.columns[one.column] for one in groups if isinstance(one, By)]
        indicators = all(column.distinct <= LEVELS for column in columns)
    warnings: list[str] = []
    if request.features is None:
        unused = others | parts.keys() | nothing.keys() | same.keys()
        fit = task.loss.nodes == 1, request.missing == ERROR
        features, warnings, problems = propose_features(
            scan, unused, groups, indicators, dates, *fit
        )
        left = [f"Column {quoted(name)} is left out: {why}." for name, why in nothing.items()]
        warnings = [*left, *warnings]
        if strict and problems and not request.skip_bad:
            raise DataError(
                f"{problems[0]} Leave the column out with --drop, or say which columns to use with "
                "--features and --groups (groupwise init proposes them)."
            )
        notes += [f"Left out: {problem}" for problem in problems]
    else:
        features = {
            name: asked_feature(scan, name, bounds, request, dates)
            for name, bounds in request.features.items()
        }
    bent = request.hinges
    if bent is None:
        bent = request.features is None and 0 < number_fields(features) <= BENT
    past = _past(scan, request, task, dates, others)
    needed = {c for one in groups for c in one.columns} | {c for one in past for c in one.by}
    features |= with_needed(features, dates, needed | {c for one in past for c in one.of})
    Groups(groups, always_on=True)  # refuses groups that would have the same name
    if not (features or past) and not (groups and (indicators or request.intercept)):
        raise DataError(
            f"{shown(scan.source.name)} has no column besides the label that could be a feature or "
            "a group."
        )
    check_width(scan, groups, features, indicators, bent)
    warnings = [*task_warnings(label, request, task), *warnings]
    warnings += [*same.values(), *remarks(scan, groups, features, label.name)]
    warnings += gaps(scan, features, request.missing or INDICATOR)
    warnings += order_warnings(scan, request.order, label.name)
    if request.features is None:
        warnings += order_hint(dates, request.order, label.name)
        if task.name == NUMBER:
            warnings += leaks(scan, label.name, others | nothing.keys() | parts.keys())
    if not (request.intercept or spans_constant(groups, features, indicators)):
        warnings.append(
            "No features always sum to 1, so the models have no intercept. "
            "Leave out --no-intercept (intercept = false) to give them one."
        )
    grouped = (column for one in groups for column in one.columns)
    read = dict.fromkeys([label.name, *features, *grouped, *experts])
    read |= dict.fromkeys(column for one in past for column in (*one.of, *one.by))
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
            name: _kind(scan.columns[name], features.get(name, ()), name == label.name)
            for name in read
            if name not in parts
        },
        experts=experts,
        warnings=tuple(warnings),
        logged=logged,
        notes=tuple(notes),
        looked_ahead=_looked_ahead(request, features, task, past),
        proposed=_not_given(request),
        past=past,
        hinges=bent,
        missing=request.missing or INDICATOR,
        interval=request.interval,
        windows=bool(request.windows),
        skip_bad=request.skip_bad,
        left_out=dict.fromkeys(request.drop, "asked for with --drop") | nothing,
    )


def _label(scan: Scan, request: Request) -> Profile:
    if request.target is None:
        raise ConfigurationError("Which column is to be predicted? Name it with --target COLUMN.")
    profile = scan.column(request.target, "for the label")
    profile.unmark(request.classes or ())
    if not profile.distinct:
        raise DataError(profile.sameness)
    return profile


def _task(label: Profile, request: Request) -> Task:
    """What the label is, and its range or its classes."""
    name, classes = task_for(label, request)
    return Task(
        Square(*label_range(label, request.range, request.skip_bad))
        if name == NUMBER
        else loss_for(classes)
    )


def _past(
    scan: Scan, request: Request, task: Task, dates: Dates, others: Collection[str]
) -> tuple[Past, ...]:
    """The past that was asked for; where rows have an order, and nothing was said, the best."""
    target = request.target or ""
    if request.past is not None:
        if request.past and task.loss.nodes > 1:
            raise ConfigurationError("The past of a label with several classes is no feature.")
        past = tuple(Past(**{**one, "label": target}) for one in request.past)
        for name in (name for one in past for name in (*one.of, *one.by)):
            scan.column(name, "for the past")
            if name in others:
                raise ConfigurationError(f"{quoted(name)} is not known when the past is needed.")
        return past
    if request.features is not None or not request.order or task.loss.nodes > 1:
        return ()
    few = [name for name, p in scan.columns.items() if name not in others and is_few_valued(p)]
    return proposed_past(scan, dates, target, request.order, few, others)


def _kind(profile: Profile, feature: object, label: bool) -> Kind:
    """How a column is read: values that are levels, or classes, by their names."""
    if profile.reading == "boolean":
        return "levels" if label or isinstance(feature, Hashed) else "boolean"
    return "levels" if is_text(feature) and profile.kind == "number" else profile.kind


def _plainly(maker: Past) -> dict[str, Any]:
    """What a file of settings says of the past."""
    usual = Past(maker.label).to_dict()
    always = ("lags", "mean")
    return {k: one for k, one in maker.to_dict().items() if k in always or one != usual[k]}


def _joined(lines: str) -> str:
    """The items of a list, one a line, on one line."""
    return " ".join(line.strip() for line in lines.splitlines()).removesuffix(",")


def _not_given(request: Request) -> tuple[str, ...]:
    return tuple(key for key in ("groups", "features") if getattr(request, key) is None)


def _looked_ahead(
    request: Request, features: Features, task: Task, past: Sequence[Past]
) -> tuple[str, ...]:
    given = request.features or {}
    ranges = [name for name, bounds in features.items() if isinstance(bounds, tuple)]
    looked_up = [name for name in ranges if not given.get(name)]
    scaled = f"the ranges that {len(looked_up)} features are scaled from"
    if len(looked_up) == 1:
        scaled = f"the range that {shown(looked_up[0])} is scaled from"
    proposed = _not_given(request)
    named = request.task is None or task.loss.classes is not None
    found = {
        "the range of the label": not task.is_chance and request.range is None,
        "the classes of the label": task.is_chance and request.classes is None and named,
        scaled: looked_up,
        f"which columns are {' and which are '.join(proposed)}": proposed,
        "the order of the rows": bool(request.order),
        "which of the label's past are features": past and request.past is None,
    }
    return tuple(text for text, is_so in found.items() if is_so)
