"""Reading snapshots, those of earlier versions too.

A file (``groupwise.archive``) holds a model's configuration and registries as JSON, its state as
arrays: a row per group, cut to the groups and features in use, so that the file depends on what was
learned and not on how much room there happened to be.
"""

import os
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from groupwise import archive
from groupwise.arrays import LARGEST
from groupwise.errors import SnapshotError
from groupwise.kernels.hindsight import HELD
from groupwise.model import KEY_BYTES, Groupwise
from groupwise.partial_feedback import KINDS

MOST = 1 << 62
"""Counts of rounds and tickets beyond it are none: kernels take them as 64 bits."""


def load(path: str | os.PathLike[str]) -> Any:
    """The model that its ``save`` wrote, wrappers included; it continues bit for bit.

    Learners and aggregators of your own must be registered first
    (``groupwise.register``).
    """
    return restored(path, *archive.read(path))


def restored(path: str | os.PathLike[str], header: dict[str, Any], arrays: archive.Arrays) -> Any:
    """The model of a file that was read."""
    try:
        if header["schema"] == 1:
            arrays = _from_schema_1(arrays)
        _check_numbers(arrays)
        _check_tickets(header)
        model = Groupwise.restored(header, arrays)
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

    What a single model would have lost is NaN where there is none.
    """
    for name, array in arrays.items():
        wrong = np.isinf(array) if name == "ledger.baseline_loss" else ~np.isfinite(array)
        if wrong.any():
            raise ValueError(f"{name} holds a number that is not finite")
        if name.endswith(".strength") and (array < 1.0 / LARGEST).any():
            raise ValueError(f"{name} is not above 0")
        if name.endswith(".waiting") and ((array < 0) | (array >= HELD)).any():
            raise ValueError(f"{name} is not below {HELD}")
