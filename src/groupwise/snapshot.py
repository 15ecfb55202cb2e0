"""Reading snapshots, those of earlier versions too.

A file (``groupwise.archive``) holds a model's configuration and registries as JSON, its state as
arrays: a row per group, cut to the groups and features in use, so that the file depends on what was
learned and not on how much room there happened to be.
"""

import json
import os
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from groupwise import archive
from groupwise.arrays import LARGEST
from groupwise.configuration import check_function
from groupwise.errors import ConfigurationError, SnapshotError
from groupwise.kernels.gram import UNIT
from groupwise.kernels.hindsight import HELD, TOGETHER
from groupwise.kernels.prod import LOW
from groupwise.kernels.reference import LEAST_WEIGHT
from groupwise.kernels.sketch import MISSING
from groupwise.layers import parts_of
from groupwise.learners.divided import NUMBERS, by_roster
from groupwise.learners.ridge import FADED
from groupwise.losses import Square, Widened
from groupwise.model import KEY_BYTES, Groupwise
from groupwise.partial_feedback import KINDS

MANY = 1 << 20
"""Rows that are taken to be in sums of which it is not known."""
MOST = 1 << 62
"""Counts of rounds and tickets beyond it are none: kernels take them as 64 bits."""

NEVER_NEGATIVE = (
    *("aggregator.absolute", ".clock", "own.charge", "own.distance", "ledger.rounds"),
    *("calibration.rounds", "calibration.loss", "calibration.brier", "calibration.sums"),
)
"""Figures that are sums of what is at least 0."""

SCALED = (".factor", ".held", ".few", ".lengths")
"""Features times the root of a weight, and lengths of columns."""
FARTHEST = 1e40 * LARGEST**2
"""None of them is larger, nor are sums of products where they stand for a factor."""


def load(path: str | os.PathLike[str], learner: Any = None) -> Any:
    """The model that its ``save`` wrote, wrappers included; it continues bit for bit.

    Learners and aggregators of your own must be registered first
    (``groupwise.register``). Where the learners of groups came from a function, ``learner`` is that
    function: it is asked for groups that appear from now on, and without it they are an error.
    """
    return restored(path, *archive.read(path), learner)


def restored(
    path: str | os.PathLike[str],
    header: dict[str, Any],
    arrays: archive.Arrays,
    learner: Any = None,
) -> Any:
    """The model of a file that was read."""
    if learner is not None:
        check_function(header["model"], learner)
    try:
        if header["schema"] == 1:
            arrays = _from_schema_1(arrays)
        if header["schema"] < 4:
            arrays = from_sums(arrays)
        if header["schema"] < 5 and "ridge.strength" in arrays:
            arrays = {**arrays, f"ridge.{FADED}": np.ones(1)}
        arrays = {**_rests(arrays), **arrays}
        for part in parts_of(arrays):
            for own in by_roster(part):
                _check_numbers(own)
        _check_tickets(header)
        model = Groupwise.restored(header, arrays, learner)
        around = header.get("around")
        return model if around is None else KINDS[around["type"]].restored(model, around)
    except Exception as error:  # whatever does not fit, for whatever reason
        raise SnapshotError(
            f"{path} is damaged: its parts do not fit together ({archive.shortened(error)}). "
            "Restore it from a copy."
        ) from error


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


def from_sums(arrays: archive.Arrays) -> archive.Arrays:
    """The arrays of a file in which hindsight had sums of products, to 16 digits.

    They were of the scaled label; what is added to them will be too.
    """
    if "hindsight.gram" not in arrays:
        return arrays
    old = {k.removeprefix("hindsight."): a for k, a in arrays.items() if k.startswith("hindsight.")}
    groups, features = old["moment"].shape
    rows = np.where(old["rows"] < 0, MANY, old["rows"])
    place = np.where(rows > 0, np.cumsum(rows > 0) - 1, -1)
    gram = np.zeros((int((rows > 0).sum()), features, features))
    for group in np.flatnonzero(rows > 0).tolist():
        held = old["held"][group, : old["waiting"][group]]
        whole = held.T @ held
        if old["place"][group] >= 0:
            whole += old["gram"][old["place"][group]]
        gram[place[group]] = np.tril(whole) * UNIT**2
    none, counted = np.zeros((groups, features)), np.zeros(groups, dtype=np.int64)
    new = {
        "hindsight.waiting": counted,
        "hindsight.columns": counted,
        "hindsight.folds": counted,
        "hindsight.calm": counted,
        "hindsight.summed": counted,
        "hindsight.power": old["power"],
        "hindsight.rest": np.zeros(groups),
        "hindsight.labels": np.zeros((groups, TOGETHER)),
        "hindsight.right": none,
        "hindsight.firm": counted,
        "hindsight.factors": np.repeat(np.where(rows > 0, MISSING, 0)[:, None], 2, axis=1),
        "hindsight.sketch": np.zeros((groups, 2, features), dtype=np.int64),
        "hindsight.sample": none,
        "hindsight.lengths": none,
        "hindsight.few": np.zeros((groups, HELD, features)),
        "hindsight.held": np.zeros((0, TOGETHER, features)),
        "hindsight.factor": np.zeros((0, features, features)),
        "hindsight.place": np.full(groups, -1),
        "hindsight.placed": np.array([0]),
        "hindsight.offset": np.zeros(1),
        "products.columns": counted,
        "products.added": counted,
        "products.coarse": rows,
        "products.power": np.column_stack([old["power"], np.zeros(groups)]),
        "products.moment": old["moment"] * UNIT,
        "products.moment_low": none,
        "products.diagonal_low": none,
        "products.gram": gram,
        "products.place": place,
        "products.placed": np.array([len(gram)]),
    }
    return {k: a for k, a in arrays.items() if not k.startswith("hindsight.")} | new


def _rests(arrays: archive.Arrays) -> archive.Arrays:
    """What rounding left out of sums, which files did not always hold: nothing."""
    sums = ("ledger.loss", "ledger.delay", "ledger.expert_loss")
    return {f"{name}_rest": np.zeros_like(arrays[name]) for name in sums}


def _check_tickets(header: Mapping[str, Any]) -> None:
    """Ticket numbers are whole and below the next one; intervals of them are in order, apart."""
    if len(bytes.fromhex(header["key"])) != KEY_BYTES:
        raise ValueError("key is not one")
    ends = [end for first, last in header["settled"] for end in (first, last)]
    counts = header["version"], header["next"]
    if any(type(one) is not int or not 0 <= one <= MOST for one in (*ends, *counts)):
        raise ValueError("settled, version or next is no count")
    if any(one >= other for one, other in pairwise([*ends, header["next"] + 1])):
        raise ValueError("settled is not in order")


def _check_numbers(arrays: archive.Arrays) -> None:
    """Every number is finite, and those that the kernels take for positions are ones.

    What a single model would have lost is NaN where there is none. Where groups have different
    learners, a mass of 0 is that of none: the reduction knows of which.
    """
    divided = NUMBERS in arrays
    for name, array in arrays.items():
        wrong = np.isinf(array) if name == "ledger.baseline_loss" else ~np.isfinite(array)
        if wrong.any():
            raise ValueError(f"{name} holds a number that is not finite")
        if name.endswith(NEVER_NEGATIVE) and (array < 0.0).any():
            raise ValueError(f"{name} is below 0")
        if name == "aggregator.mass" and (array < 0.0 if divided else array <= 0.0).any():
            raise ValueError(f"{name} is not above 0")
        if name.endswith(".strength") and (array < 1.0 / LARGEST).any():
            raise ValueError(f"{name} is not above 0")
        if name in ("own.weight", "own.free") and (array < LEAST_WEIGHT * LOW).any():
            raise ValueError(f"{name} is not above 0")
        if name == "own.exponent" and (np.abs(array) >= MOST).any():
            raise ValueError(f"{name} is no power")
        if name.endswith(".waiting"):
            late = name.startswith("hindsight") & (arrays[name.replace("waiting", "place")] >= 0)
            if ((array < 0) | (array >= np.where(late, TOGETHER, HELD))).any():
                raise ValueError(f"{name} is more than there is room for")
        part = name.partition(".")[0].rstrip("0123456789")  # chains have several of each
        if part in ("hindsight", "products") and array.dtype.kind == "i":
            least = -1 if name.endswith((".factors", ".place")) else 0
            most = arrays.get("columns.count", 0) if name.endswith(".columns") else MOST
            if ((array < least) | (array > most)).any():
                raise ValueError(f"{name} is no count")
        if part == "hindsight" and name.endswith(SCALED) and (np.abs(array) > FARTHEST).any():
            raise ValueError(f"{name} is beyond what there is")


def widened(model: Groupwise, least: float, most: float) -> Groupwise:
    """The model as it is, for labels in [least, most], which holds the range they had.

    Losses stay in the units of that range, so nothing that was learned changes. Certificates of
    ``aggregators.Prod`` hold as before: its proof needs labels where advice is clipped to, whatever
    range that is at the time. Those of ``Specialists`` hold with a smaller η: Σ q_i exp(ηR_i) ≤ 1,
    and with η' ≤ η, Σ q_i exp(η'R_i) ≤ (Σ q_i exp(ηR_i))^(η'/η) ≤ 1. Those of ``AdaNormalHedge``
    need losses up to 1, and are void.
    """
    loss = model.loss
    if not isinstance(loss, Square):
        raise ConfigurationError(f"{loss} has no range to widen: that is for losses.Square.")
    header, arrays = model.contents()
    header["model"] |= {"loss": Widened(loss.low, loss.high, least, most).to_dict()}
    return Groupwise.restored(json.loads(json.dumps(header)), arrays)
