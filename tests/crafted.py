"""Snapshots that somebody has changed, with checksums that fit; tickets too.

``opened`` reads a snapshot, ``mutated`` gives a changed copy with a word about what was changed,
``written`` makes a file of it that is whole as far as its format goes. ``outcome`` loads such a
file and tells what became of it: ``REFUSED``, or ``LOADED`` with a state of finite numbers;
anything else is an error of the reader's, and is raised. Everything follows from the generator.

>>> import random
>>> change = Change(["next"], "set to -1")
>>> str(change)
'next: set to -1'
"""

import copy
import io
import json
import math
import random
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import groupwise as gw
from groupwise import archive
from groupwise.errors import GroupwiseError, SnapshotError, TicketError

REFUSED, LOADED = "refused", "loaded"

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 7, 2**31, 2**62, 2**63, 10**30, -(2**63)),
    *(0.5, -0.0, 1e-320, 1e308, -1e308, math.nan, math.inf, -math.inf),
    *("", "a", "always_on", "Ridge", "number", "\x00", "x" * 5_000),
    *([], [0], [[0, 1]], [[[]]], {}, {"type": "Ridge"}, {"a": {"a": 1}}),
)
"""What is put into a page of JSON."""
NUMBERS = (0.0, -1.0, 1.0, 0.5, 1e-320, 1e16, 1e100, 1e308, -1e308, math.nan, math.inf, -math.inf)
WHOLE = (0, -1, 1, -2, 7, 8, 255, 2**31, 2**62, -(2**62), 2**63 - 1)
NONE_YET = "ledger.baseline_loss"
"""What is NaN where there is no single model to compare with."""


class Snapshot(NamedTuple):
    """What a file holds."""

    header: dict[str, Any]
    arrays: dict[str, Any]


class Change(NamedTuple):
    """Where something was changed, and how."""

    place: list[Any]
    what: str

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.place))}: {self.what}"


def opened(path: Path) -> Snapshot:
    """What a snapshot holds."""
    return Snapshot(*archive.read(path))


def written(path: Path, snapshot: Snapshot) -> Path:
    """A file that holds it; its list of arrays is what it says, and not what is there."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(archive.HEADER, json.dumps(snapshot.header))
        for key, array in snapshot.arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=True)
            file.writestr(f"{key}.npy", buffer.getvalue())
    return path


def mutated(snapshot: Snapshot, generator: random.Random) -> tuple[Snapshot, Change]:
    """A copy in which one thing is changed: in the page of JSON, or in an array."""
    header, arrays = copy.deepcopy(snapshot)
    if generator.random() < 0.5:
        return Snapshot(header, arrays), change_page(header, generator)
    return Snapshot(header, arrays), change_arrays(arrays, generator)


def change_page(page: Any, generator: random.Random) -> Change:
    """Change one value of JSON, or take it away, or have it twice."""
    place: list[Any] = []
    inside: Any = None
    node = page
    while isinstance(node, dict | list) and node and (inside is None or generator.random() < 0.85):
        inside, key = (
            node,
            generator.choice(list(node) if isinstance(node, dict) else range(len(node))),
        )
        place, node = [*place, key], node[key]
    kind = generator.choice(["set", "set", "set", "remove", "twice", "other"])
    if kind == "remove":
        del inside[key]
    elif kind == "twice" and isinstance(inside, list):
        inside.insert(key, copy.deepcopy(node))
    elif kind == "other" and isinstance(node, int | float):
        inside[key] = node * generator.choice([-1, 2, 1e9, 10**9]) + generator.choice([-1, 0, 1])
    else:
        inside[key] = copy.deepcopy(generator.choice(VALUES))
        kind = f"set to {inside[key]!r}"[:60]
    return Change(place, kind)


def change_arrays(arrays: dict[str, Any], generator: random.Random) -> Change:
    """Change one number of an array, or its shape or kind, or take it away."""
    key = generator.choice(sorted(arrays))
    array = arrays[key]
    kind = generator.choice(["number", "number", "number", "shape", "kind", "remove", "other"])
    if kind == "number" and array.size:
        value = generator.choice(NUMBERS if array.dtype.kind == "f" else WHOLE)
        array.flat[generator.randrange(array.size)] = value
        return Change([key], f"a number is {value}")
    if kind == "shape":
        shapes = (array[:-1], array[None], array.T, array.ravel(), np.repeat(array, 2, axis=0))
        arrays[key] = generator.choice([one for one in shapes if one is not None])
        return Change([key], f"shape {arrays[key].shape}")
    if kind == "kind":
        kinds = [np.float32, np.int32, np.int64, np.float64, np.complex128, np.bool_, "S8", object]
        with np.errstate(all="ignore"):
            arrays[key] = array.astype(generator.choice(kinds))
        return Change([key], f"kind {arrays[key].dtype}")
    if kind == "remove":
        del arrays[key]
        return Change([key], "removed")
    arrays[key] = arrays[generator.choice(sorted(arrays))].copy()
    return Change([key], "another's numbers")


def outcome(path: Path) -> str:
    """What becomes of a file; all but a refusal and a model of finite numbers is raised."""
    try:
        model = gw.load(path)
    except SnapshotError:
        return REFUSED
    for name, array in state(model).items():
        wrong = np.isinf(array) if name == NONE_YET else ~np.isfinite(array)
        assert not wrong.any(), name
    return LOADED


def state(model: Any) -> dict[str, Any]:
    """All numbers that a model has learned, by name."""
    inner = getattr(model, "model", model)
    groups, features = len(inner.group_names), len(inner.feature_names)
    found: dict[str, Any] = inner._reduction.save(groups, features)
    return found


def used(model: Any, rows: Any) -> None:
    """Predict, learn and report: it works, or is refused in words."""
    for row, label in rows:
        try:
            model.learn_one(row, label)
        except GroupwiseError:
            continue
    model.regret()


def mutated_ticket(text: str, generator: random.Random) -> tuple[str, Change]:
    """A ticket's text in which one thing is changed."""
    page = json.loads(text)
    change = change_page(page, generator)
    return json.dumps(page), change


def ticket_outcome(model: Any, text: str) -> str:
    """What becomes of a ticket's text; all but a refusal and a ticket of the model's is raised."""
    try:
        ticket = gw.Ticket.from_json(text)
        repr(ticket), ticket.groups, ticket.advice, ticket.weights, ticket.prediction
        model.check(ticket)
    except TicketError:
        return REFUSED
    return LOADED
