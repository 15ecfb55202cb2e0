"""What the label is, found out from its column: a number, yes or no, or one of several classes.

Nobody has to say so. A column of 0 and 1, or of two texts, is yes or no, and what is predicted is
the probability of yes; a column of more texts, up to ``FEW``, is one of so many classes; all other
numbers are numbers. Of two values the *positive* one, whose probability it is, comes second in
order: 1 after 0, true after false, yes after no, ">50K" after "<=50K".
"""

from collections.abc import Sequence
from typing import Any

from groupwise.class_names import MOST, ClassName
from groupwise.errors import ConfigurationError, DataError
from groupwise.files.profile import MISSING, Profile, is_number
from groupwise.files.settings import CLASSES, NUMBER, PROBABILITY, Request
from groupwise.files.task import TEXT, Task
from groupwise.files.text import listed, quoted, shown, spellings
from groupwise.groups.values import value_name
from groupwise.losses import Log

FEW = 20
"""So many texts are taken for classes without being told so."""
PAIRS = (("no", "yes"), ("false", "true"), ("n", "y"), ("f", "t"))
"""Where a column holds one of two, the other is known."""


def task_for(label: Profile, request: Request) -> tuple[str, tuple[ClassName, ...] | None]:
    """The name of the task, and the classes; None for numbers, and for 0, 1 and between."""
    if label.infinite:
        raise DataError(label.infinity)
    asked = request.task or _implied(request)
    texts = label.kind == TEXT
    if asked is None:
        asked = CLASSES if texts else _guess(label)
        if texts and request.classes is None:
            _check_texts(label)
    if asked == NUMBER:
        _refuse_options(request)
        label.check_numbers("label")
        return NUMBER, None
    if request.range is not None:
        raise ConfigurationError(f"--range is for numbers, and --task {asked} has none.")
    classes = _declared(label, request) or _found(label, asked)
    if request.positive is not None:
        classes = _second(classes or (), _text(label, request.positive))
    if classes is None:
        return PROBABILITY, None
    if asked == PROBABILITY and len(classes) > 2:
        raise _not_two(label, classes)
    name = PROBABILITY if len(classes) == 2 else CLASSES
    return name, None if classes == (0, 1) and not texts else classes


def _implied(request: Request) -> str | None:
    """The task that other options are about."""
    if request.range is not None:
        return NUMBER
    if request.positive is not None:
        return PROBABILITY
    return None if request.classes is None else CLASSES


def _refuse_options(request: Request) -> None:
    for option in ("classes", "positive"):
        if getattr(request, option) is not None:
            why = "--task number" if request.task == NUMBER else "--range"
            raise ConfigurationError(f"--{option} is for classes, and {why} says numbers.")


def _guess(label: Profile) -> str:
    """What a column of numbers is: 0 and 1 are yes and no."""
    numbers = numbers_of(label)
    return PROBABILITY if numbers is not None and {*numbers} <= {0, 1} else NUMBER


def numbers_of(label: Profile) -> list[ClassName] | None:
    """The different numbers of a column in order; None where they are too many for classes."""
    if label.values is None:
        return None
    found = sorted({float(value) for value in label.values if value.strip() not in MISSING})
    return None if len(found) > MOST else [_number(one) for one in found]


def _check_texts(label: Profile) -> None:
    """Refuse texts that may be anything but classes."""
    values = label.values or ()
    numbers = next((value for value in values if is_number(value)), None)
    if numbers is not None:
        raise DataError(
            f"The label column {quoted(label.name)} holds {quoted(label.text)} in row "
            f"{label.text_row}, which is no number, and numbers elsewhere. Mend it, or say --task "
            "classes if each value is a class."
        )
    if label.distinct > FEW:
        raise DataError(
            f"The label column {quoted(label.name)} holds {label.count} different texts, such as "
            f"{quoted(label.text)} in row {label.text_row}, which is no number. Up to {FEW} are "
            "taken for classes; --task classes says that more are. Rare ones are better put "
            "together; numbers are written without signs and units."
        )


def _declared(label: Profile, request: Request) -> tuple[ClassName, ...] | None:
    """The classes that were declared, if the column holds no other."""
    if request.classes is None:
        return None
    classes = request.classes
    if label.kind == "number":
        if not all(map(is_number, map(str, classes))):
            raise ConfigurationError(
                f"Column {quoted(label.name)} holds numbers, and --classes has other names."
            )
        classes = tuple(_number(one) for one in classes)
    else:
        classes = tuple(_text(label, value_name(one, "classes")) for one in classes)
    if len({*classes}) < max(len(classes), 2):
        raise ConfigurationError("--classes names two classes or more, each of them once.")
    if label.values is None:
        raise _too_many(label)
    for value in sorted(label.values):
        if (_number(value) if label.kind == "number" else value) not in classes:
            raise DataError(
                f"The label column {quoted(label.name)} holds {quoted(value)}"
                f"{_where(label, value)}, which is none of the classes "
                f"{listed(map(str, classes))}. Name every class that comes."
            )
    return classes


def _text(label: Profile, name: str) -> str:
    """A class as the column has it: true and false in small letters."""
    return name.lower() if label.reading == "boolean" else name


def _where(label: Profile, value: str) -> str:
    """In which row a value comes first, if that is known."""
    row = (label.seen or {}).get(value, (0, 0))[1]
    return f" in row {row}" if row else ""


def _number(value: Any) -> float | int:
    number = float(value)
    return int(number) if number.is_integer() else number


def _found(label: Profile, asked: str) -> tuple[ClassName, ...] | None:
    """The classes that the column holds; None where it holds probabilities themselves."""
    if label.kind == "number":
        numbers = numbers_of(label)
        if numbers is not None and {*numbers} <= {0, 1}:
            return 0, 1
        if asked == PROBABILITY and label.low >= 0.0 and label.high <= 1.0:
            return None
        if numbers is None:
            raise _too_many(label)
        if len(numbers) == 1:
            raise _single(label)
        return tuple(numbers)
    texts = sorted(label.values or (), key=lambda text: (text.casefold(), text))
    if not 0 < len(texts) <= MOST:
        raise _too_many(label)
    return tuple(texts) if len(texts) > 1 else _with_other(label, texts[0])


def _with_other(label: Profile, text: str) -> tuple[ClassName, ...]:
    """One of two texts that usually go together, and the other."""
    for pair in PAIRS:
        if text.lower() in pair:
            for way in (str.lower, str.upper, str.title):
                if way(text) == text:
                    return way(pair[0]), way(pair[1])
    raise _single(label)


def _single(label: Profile) -> DataError:
    value = next(iter(label.values or ()), "")
    return DataError(
        f"The label column {quoted(label.name)} holds one value only ({quoted(value)}). Name the "
        f"classes that can come besides: --classes {quoted(f'{value}, other')}."
    )


def _too_many(label: Profile) -> DataError:
    return DataError(
        f"The label column {quoted(label.name)} holds {label.count} different values, and classes "
        f"are at most {MOST:,}. Put rare ones together, or predict a number with --task number."
    )


def _not_two(label: Profile, classes: Sequence[ClassName]) -> DataError:
    return DataError(
        f"The label column {quoted(label.name)} holds {len(classes):,} different values "
        f"({listed(map(str, classes), 5)}), and --task probability is for two, or for numbers from "
        "0 to 1. Say --task classes for a probability of each."
    )


def _second(classes: Sequence[ClassName], positive: str) -> tuple[ClassName, ...]:
    """The classes with the one of this name second."""
    names = [value_name(one, "classes") for one in classes]
    wanted = value_name(_number(positive), "positive") if is_number(positive) else positive
    found = [place for place, name in enumerate(names) if name in (positive, wanted)]
    if len(classes) != 2 or not found:
        raise ConfigurationError(
            f"--positive {shown(positive)} is to be one of two classes, and the label has "
            f"{listed(names) or 'any number from 0 to 1'}."
        )
    return classes[1 - found[0]], classes[found[0]]


def task_warnings(label: Profile, request: Request, task: Task) -> list[str]:
    """What to know about the classes of the label."""
    if not task.is_chance:
        two = request.task is None and request.range is None and label.distinct == 2
        numbers = numbers_of(label) or []
        if not two or len(numbers) != 2:
            return []
        return [
            f"The label {quoted(label.name)} holds two numbers only, {numbers[0]} and "
            f"{numbers[1]}, and is predicted as a number. If it is yes or no, say "
            "--task probability."
        ]
    seen = label.seen or {}
    said = [
        f"{quoted(mark)} among the labels stands for a missing one. Where it is a class, name it "
        "among all others in --classes."
        for mark in label.marks
    ]
    once = {value: row for value, (count, row) in seen.items() if count == 1}
    if len(seen) > 1 and (task.loss.classes is not None or len(seen) == 2):
        said += [
            f"The label is {quoted(value)} in row {row} alone. If that is a slip, mend it."
            for value, row in [*once.items()][:3]
        ]
    if len(seen) == 1:
        (value,) = seen
        said.append(
            f"Every label is {quoted(value)}: what the rows of another class look like cannot be "
            "learned from this file."
        )
    if task.kind == TEXT:
        said += [
            f"The classes {quoted(one)} and {quoted(other)} differ in capitals, spaces or full "
            "stops alone. If they are one, mend them."
            for one, other in spellings(task.names)
        ]
    return said


def loss_for(classes: tuple[ClassName, ...] | None) -> Log:
    """The loss of probabilities, of classes where there are some."""
    return Log() if classes is None else Log(classes=classes)


def described(task: Task, label: Profile) -> str:
    """What is predicted, in a sentence."""
    if not task.is_chance:
        return ""
    names, seen = task.names, label.seen or {}
    if task.name == CLASSES:
        return f"Predicted is the probability of each of {len(names)} classes: {listed(names)}."
    if task.loss.classes is None and len(seen) > 2:
        return "Labels are probabilities themselves, and such are predicted."
    return (
        f"Predicted is the probability that {shown(label.name)} is {quoted(names[1])}, not "
        f"{quoted(names[0])}. --positive says which, --task number that it is a number."
    )
