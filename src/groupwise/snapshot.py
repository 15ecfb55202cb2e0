"""What a snapshot of a model holds: its configuration and registries as JSON, its state as arrays.

Arrays are cut to the groups and features in use, so the file depends on what was learned and not on
how much room there happened to be.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from groupwise import archive
from groupwise.actions import ActionReduction
from groupwise.configuration import part_from_dict, part_to_dict
from groupwise.errors import GroupwiseError, SnapshotError
from groupwise.features import Encoder
from groupwise.groups import from_dict
from groupwise.learners.objects import name_of
from groupwise.learners.ridge import RidgeBank
from groupwise.losses import loss_from_dict
from groupwise.arrays import HELD
from groupwise.ticket import Settled

if TYPE_CHECKING:
    from groupwise.model import Groupwise


def save(
    model: "Groupwise",
    path: str | os.PathLike[str],
    around: Mapping[str, Any] | None = None,
    table: Mapping[str, Any] | None = None,
) -> None:
    """Write a model to ``path``.

    Parameters
    ----------
    around : what is around the model where feedback is partial.
    table : how the table that its rows came from is read; plain values, for ``read_table``.
    """
    kept = {"around": around} if table is None else {"around": around, "table": table}
    archive.write(path, {**_header(model), **kept}, _arrays(model))


def read_table(path: str | os.PathLike[str]) -> Any:
    """What ``save`` was told about a table; None where nothing."""
    return archive.read(path)[0].get("table")


def load(path: str | os.PathLike[str], kind: "type[Groupwise]") -> Any:
    """Read a model of class ``kind``, and what is around it, from ``path``."""
    header, arrays = archive.read(path)
    try:
        if header["schema"] == 1:
            arrays = _from_schema_1(arrays)
        model = _restore(header, arrays, kind)
        return _wrapped(model, header.get("around"))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, GroupwiseError) as error:
        raise SnapshotError(
            f"{path} is damaged: its parts do not fit together ({error!r}). Restore it from a copy."
        ) from None


def _wrapped(model: "Groupwise", around: dict[str, Any] | None) -> Any:
    if around is None:
        return model
    from groupwise import partial_feedback  # it imports this module

    return partial_feedback.restore(model, around)


def _header(model: "Groupwise") -> dict[str, Any]:
    learners = [_named(learner) for learner in model.learners]
    features = model.features
    return {
        "model": {
            "groups": [declaration.to_dict() for declaration in model.declarations],
            "learner": learners,
            "aggregator": _named(model.aggregator),
            "loss": model.loss.to_dict(),
            "features": dict(features) if isinstance(features, Mapping) else features,
            "indicators": model.indicators,
            "play": model.play,
            "clip": model.clip,
            "always_on": model.groups.always_on,
            "seed": model.seed,
            "prior": model.prior,
            "intersections": model.intersections,
        },
        **model._registry.to_dict(),
        "encoder": model._encoder.to_dict(),
        "key": model._key.hex(),
        "next": model._next,
        "settled": model._settled.intervals,
        "version": model._version,
    }


def _named(part: object) -> dict[str, Any]:
    fields = part_to_dict(part)
    if fields is None:
        raise SnapshotError(
            f"{name_of(part)} cannot be saved in a snapshot: only groupwise's own learners and "
            "aggregators can. Keep the stream and replay it, or use learners.Ridge."
        )
    return fields


def _states(model: "Groupwise") -> dict[str, Any]:
    """Every state by name; learners of actions keep their own (``_action_arrays``)."""
    banks = [bank for bank, _ in model._reduction.banks]
    ridge = {"ridge": banks[0].state} if banks and isinstance(banks[0], RidgeBank) else {}
    return {
        **ridge,
        "aggregator": model._reduction.state,
        "ledger": model._ledger.state,
        "hindsight": model._ledger.sums,
    }


FEATURE_AXES = {"theta": 1, "inverse": 2, "held": 1, "gram": 2, "moment": 1}
MATRICES = {"ridge": "inverse", "hindsight": "gram"}
"""The states that keep matrices by place; in a file the places are in the order of the groups."""


def _in_order(state: Any, matrix: str, groups: int) -> Any:
    """A state whose matrices are in the order of their groups, none left over."""
    place = state.place[:groups]
    taken = place >= 0
    order = np.where(taken, np.cumsum(taken) - 1, -1)
    matrices = getattr(state, matrix)[place[taken]]
    return state._replace(place=order, placed=np.array([taken.sum()]), **{matrix: matrices})


def _used(name: str, array: Any, groups: int, features: int) -> Any:
    """The part of a state's array that belongs to known groups and features."""
    if name in ("largest", "placed"):
        return array
    axes = FEATURE_AXES.get(name, 0)
    middle = (slice(None),) * (array.ndim - 1 - axes)
    return array[(slice(groups), *middle, *(slice(features),) * axes)]


def _arrays(model: "Groupwise") -> archive.Arrays:
    groups, features = len(model._registry), len(model._encoder.names)
    states = _states(model)
    for key in MATRICES.keys() & states.keys():
        states[key] = _in_order(states[key], MATRICES[key], groups)
    return {
        f"{key}.{name}": _used(name, array, groups, features)
        for key, state in states.items()
        for name, array in state._asdict().items()
    } | _action_arrays(model)


def _action_arrays(model: "Groupwise") -> archive.Arrays:
    if not isinstance(model._reduction, ActionReduction):
        return {}
    return {
        f"learner{k}.{name}": array
        for k, bank in enumerate(model._reduction.action_banks)
        for name, array in bank.arrays(len(model._registry)).items()
    }


def _from_schema_1(arrays: archive.Arrays) -> archive.Arrays:
    """The arrays of a file in which other numbers of rows were held back: none are, here."""
    arrays = dict(arrays)
    for key, matrix, sign in (("ridge", "inverse", -1.0), ("hindsight", "gram", 1.0)):
        if f"{key}.held" not in arrays:
            continue
        held, waiting = arrays[f"{key}.held"], arrays[f"{key}.waiting"]
        whole = arrays[f"{key}.{matrix}"].copy()
        for group, count in enumerate(waiting.tolist()):
            rows = held[group, ..., :count, :]
            whole[group] += sign * (rows.swapaxes(-1, -2) @ rows)
        arrays[f"{key}.{matrix}"] = whole
        arrays[f"{key}.held"] = np.zeros((*held.shape[:-2], HELD, held.shape[-1]))
        arrays[f"{key}.waiting"] = np.zeros_like(waiting)
        arrays[f"{key}.place"] = np.arange(waiting.size)
        arrays[f"{key}.placed"] = np.array([waiting.size])
    return arrays


def _check_places(arrays: archive.Arrays, key: str) -> None:
    """Numbers that the kernels take for positions must be ones."""
    place, waiting = arrays[f"{key}.place"], arrays[f"{key}.waiting"]
    count = len(arrays[f"{key}.{MATRICES[key]}"])
    in_order = np.array_equal(place[place >= 0], np.arange(count)) and (place >= -1).all()
    if not in_order or arrays[f"{key}.placed"].tolist() != [count]:
        raise ValueError(f"{key}.place does not fit {key}.{MATRICES[key]}")
    if ((waiting < 0) | (waiting >= HELD)).any():
        raise ValueError(f"{key}.waiting is not below {HELD}")


def _restore_actions(model: "Groupwise", arrays: archive.Arrays) -> None:
    if isinstance(model._reduction, ActionReduction):
        for k, bank in enumerate(model._reduction.action_banks):
            prefix = f"learner{k}."
            own = {key.removeprefix(prefix): a for key, a in arrays.items() if prefix in key}
            bank.restore(own, len(model._registry))


def _restore(
    header: dict[str, Any], arrays: archive.Arrays, kind: "type[Groupwise]"
) -> "Groupwise":
    settings = dict(header["model"])
    settings["groups"] = [from_dict(fields) for fields in settings["groups"]]
    settings["learner"] = [part_from_dict(fields) for fields in settings["learner"]]
    settings["aggregator"] = part_from_dict(settings["aggregator"])
    settings["loss"] = loss_from_dict(settings["loss"])
    if isinstance(settings["features"], dict):
        settings["features"] = {k: v and (v[0], v[1]) for k, v in settings["features"].items()}
    model = kind(**settings)
    model._encoder = Encoder.from_dict(header["encoder"], model.groups)
    model._registry.restore(header)
    model._key = bytes.fromhex(header["key"])
    model._next = int(header["next"])
    model._settled = Settled(header["settled"])
    model._version = int(header["version"])
    groups, features = len(model._registry), len(model._encoder.names)
    model._rounds.reserve(groups, features)
    for key, state in _states(model).items():
        for name, array in state._asdict().items():
            saved = arrays[f"{key}.{name}"]
            by_place = name == MATRICES.get(key)
            target = _used(name, array, len(saved) if by_place else groups, features)
            if saved.shape != target.shape or saved.dtype != target.dtype:
                raise ValueError(f"{key}.{name} has shape {saved.shape}, not {target.shape}")
            target[...] = saved
        if key in MATRICES:
            _check_places(arrays, key)
    for bank, _ in model._reduction.banks:
        if isinstance(bank, RidgeBank):
            bank.open_columns(features)
    _restore_actions(model, arrays)
    model._rounds.refresh()
    return model
