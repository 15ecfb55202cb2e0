"""Derived features: the makers of a model, one after another, and what they remember."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from groupwise.errors import ConfigurationError, FeatureError
from groupwise.features.calendar import Calendar
from groupwise.features.declared import (
    Declared,
    Floats,
    declared_from_json,
    declared_to_json,
    read_declared,
)
from groupwise.features.encoding import Encoded
from groupwise.features.makers import Arrays, Maker, Memory, Setting
from groupwise.features.past import Past
from groupwise.features.shapes import Hinges
from groupwise.groups import Groups
from groupwise.groups.columns import Table
from groupwise.losses import LARGEST_LABEL, Loss

KINDS = (Past, Hinges, Encoded, Calendar)
NAMED: dict[str, Any] = {kind.kind: kind for kind in KINDS}
"""The makers by the names that files have for them."""
PREFIX = "derived."
"""Of arrays in a file."""

AnyFeatures: TypeAlias = Declared | Sequence[Any]
"""The ``features`` of a model: makers may stand beside names, and beside mappings from names."""


def split(features: Any) -> tuple[Any, tuple[Maker, ...]]:
    """Tell the makers from the fields that are features; makers alone mean every field.

    >>> split(["age", Hinges(), {"bmi": (15, 55)}])[0]
    {'age': None, 'bmi': (15, 55)}
    """
    if not isinstance(features, (list, tuple)):
        if isinstance(features, KINDS):
            raise FeatureError(f"features={features!r} is a maker alone: give a list, [maker].")
        return features, ()
    makers = tuple(one for one in features if isinstance(one, KINDS))
    others = [one for one in features if not isinstance(one, KINDS)]
    if makers and not others:
        return None, makers
    if not any(isinstance(one, Mapping) for one in others):
        return others if makers else features, makers
    declared: dict[Any, Any] = {}
    for one in others:
        fields = one if isinstance(one, Mapping) else {one: None}
        twice = [field for field in fields if field in declared]
        if twice:
            raise FeatureError(f"Field {twice[0]!r} occurs twice in features. Name each once.")
        declared.update(fields)
    return declared, makers


def columns_of(features: Any) -> set[str] | None:
    """The fields of rows that features are made of; None for all."""
    declared, makers = split(features)
    if declared is None:
        return None
    made = {name for maker in makers for name in maker.fields}
    return {*declared, *(name for maker in makers for name in maker.reads)} - made


class Derived:
    """The makers of a model with their memories: what they make of rows, in their order.

    Parameters
    ----------
    makers : each may read what those before it make.
    declared : the fields that are features as they are, None for all.
    groups : the groups of the model.
    loss : whose labels are learned from.
    apart : further fields that are no features.
    """

    def __init__(
        self,
        makers: Sequence[Maker],
        declared: Any,
        groups: Groups,
        loss: Loss,
        apart: Sequence[str] = (),
    ) -> None:
        self.makers = tuple(makers)
        for maker in self.makers:
            if maker.labelled and (loss.vector or loss.nodes > 1):
                raise ConfigurationError(
                    f"gw.{maker.kind} makes features of labels that are numbers, not of several "
                    "classes or vectors. Leave it out."
                )
        self.takes = tuple(dict.fromkeys(field for maker in makers for field in maker.takes))
        self.forbids = tuple(dict.fromkeys(name for maker in makers for name in maker.forbids))
        self._check_names(() if declared is None else tuple(declared))
        _, ranges, hashed = read_declared(declared)
        most = 1.0 if loss.ranged else LARGEST_LABEL
        setting = Setting(
            declared=None if declared is None else tuple(declared),
            apart=frozenset([*groups.weight_columns, *self.takes, *hashed, *apart]),
            ranges=ranges,
            middle=0.5 if loss.ranged else 0.0,
            largest=max(map(abs, loss.advice_range)) if loss.widened else most,
        )
        self.memories: list[Memory] = [maker.start(setting) for maker in self.makers]

    def _check_names(self, declared: Sequence[Any]) -> None:
        """Refuse fields that would be made twice, or be there already."""
        names = [*declared, *(name for maker in self.makers for name in maker.fields)]
        twice = [name for place, name in enumerate(names) if name in names[:place]]
        if twice:
            raise FeatureError(f"The field {twice[0]!r} would exist twice. Drop one of its makers.")
        for name in self.forbids:
            if name in names:
                raise FeatureError(
                    f"{name!r} is the label of gw.past, and is not known when a row is predicted. "
                    "Take it off the features."
                )
        for place, maker in enumerate(self.makers):
            for later in self.makers[place:]:
                for name in set(maker.reads) & set(later.fields):
                    raise FeatureError(
                        f"gw.{maker.kind} reads {name!r}, which gw.{later.kind} makes only after "
                        f"it. Put gw.{later.kind} before it in features."
                    )
        bent = [one.columns for one in self.makers if isinstance(one, Hinges)]
        columns = [name for one in bent for name in one or ()]
        if len(bent) > 1 and (None in bent or len(set(columns)) < len(columns)):
            raise FeatureError("Two gw.hinges bend the same columns. Give different columns.")

    def make(self, row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """A row with what is made of it, and what is made of it alone. Changes nothing."""
        if not isinstance(row, Mapping):
            raise FeatureError(
                f"A row is a mapping from field to value, not {type(row).__name__}. "
                "Give a dict such as {'age': 41, 'sex': 'male'}."
            )
        whole = dict(row)
        derived: dict[str, Any] = {}
        for memory in self.memories:
            made = memory.make(whole)
            derived.update(made)
            whole.update(made)
        if len(whole) < len(row) + len(derived):
            raise self._taken(row, derived)
        for name in self.forbids:
            if name in row:
                raise _known_label(name)
        return whole, derived

    def settle(self, row: Mapping[str, Any], derived: Mapping[str, Any], label: float) -> None:
        """Take note of the scaled label of a row, with what was made of the row."""
        whole = {**row, **derived}
        for memory in self.memories:
            memory.settle(whole, derived, label)

    def of_frame(self, table: Table, labels: Floats) -> "Derived":
        """Add what is made of every row to a table; the makers after its labels, a new one."""
        for name in self.forbids:
            if name in table.names:
                raise _known_label(name)
        after = self._twin()
        for maker, memory in zip(self.makers, self.memories, strict=True):
            for name in maker.fields:
                if name in table.names:
                    raise self._taken(table.names, maker.fields)
            after.memories.append(memory.of_frame(table, labels))
        for name in table.made:
            if name in table.names:
                raise self._taken(table.names, table.made)
        return after

    @staticmethod
    def _taken(row: Any, made: Any) -> FeatureError:
        name = next(name for name in made if name in row)
        return FeatureError(
            f"There is a field {name!r} already, which would be made of the row. Rename it."
        )

    def _twin(self) -> "Derived":
        twin = object.__new__(Derived)
        twin.__dict__.update(self.__dict__)
        twin.memories = []
        return twin

    def __deepcopy__(self, memo: Any) -> "Derived":
        twin = self._twin()
        twin.memories = [memory.copy() for memory in self.memories]
        return twin

    def save(self) -> tuple[list[Any], Arrays]:
        """All that is remembered: values that JSON holds, and arrays by name."""
        fields, arrays = [], {}
        for number, memory in enumerate(self.memories):
            own, found = memory.save()
            fields.append(own)
            arrays.update({f"{PREFIX}{number}.{name}": one for name, one in found.items()})
        return fields, arrays

    def load(self, fields: Any, arrays: Mapping[str, Any]) -> None:
        """Take over what ``save`` gave, checked."""
        if len(fields) != len(self.memories):
            raise FeatureError("The saved makers are not those of the model.")
        for number, (memory, own) in enumerate(zip(self.memories, fields, strict=True)):
            start = f"{PREFIX}{number}."
            found = {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}
            memory.load(own, found)


def _known_label(name: str) -> FeatureError:
    return FeatureError(
        f"There is a field {name!r}, and gw.past({name!r}) is of the label of that name, which is "
        "not known when a row is predicted. Leave the field out, or give gw.past another name."
    )


def features_to_json(features: Any) -> Any:
    """The ``features`` argument in values that JSON can hold."""
    if isinstance(features, (list, tuple)):
        return [
            {"maker": one.kind, **one.to_dict()}
            if isinstance(one, KINDS)
            else {"fields": declared_to_json(one)}
            if isinstance(one, Mapping)
            else one
            for one in features
        ]
    return declared_to_json(features)


def features_from_json(found: Any) -> Any:
    """The ``features`` argument that ``features_to_json`` wrote."""
    if not isinstance(found, list):
        return declared_from_json(found)
    return [_from_json(one) if isinstance(one, dict) else one for one in found]


def _from_json(found: dict[str, Any]) -> Any:
    if "fields" in found:
        return declared_from_json(found["fields"])
    return maker_from({key: one for key, one in found.items() if key != "maker"}, found["maker"])


def maker_from(parameters: Mapping[str, Any], kind: Any) -> Maker:
    """The maker that files call so, with its parameters."""
    if not isinstance(kind, str) or kind not in NAMED:
        raise ConfigurationError(f"There is no maker {kind!r}. Choose one of {', '.join(NAMED)}.")
    made: Maker = NAMED[kind](**parameters)
    return made
