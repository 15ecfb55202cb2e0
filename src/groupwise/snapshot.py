"""Reading snapshots, those of earlier versions too.

A file (``groupwise.archive``) holds a model's configuration and registries as JSON, its state as
arrays: a row per group, cut to the groups and features in use, so that the file depends on what was
learned and not on how much room there happened to be.
"""

import os
from typing import Any

import numpy as np

from groupwise import archive
from groupwise.errors import GroupwiseError, SnapshotError
from groupwise.kernels.ridge import HELD
from groupwise.model import Groupwise
from groupwise.partial_feedback import KINDS


def load(path: str | os.PathLike[str]) -> Any:
    """The model that its ``save`` wrote, wrappers included; it continues bit for bit.

    Learners and aggregators of your own must be registered first
    (``groupwise.register``).
    """
    header, arrays = archive.read(path)
    try:
        if header["schema"] == 1:
            arrays = _from_schema_1(arrays)
        _check_positions(arrays)
        model = Groupwise.restored(header, arrays)
        around = header.get("around")
        return model if around is None else KINDS[around["type"]].restored(model, around)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, GroupwiseError) as error:
        raise SnapshotError(
            f"{path} is damaged: its parts do not fit together ({error!r}). Restore it from a copy."
        ) from None


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


def _check_positions(arrays: archive.Arrays) -> None:
    """Numbers that the kernels take for positions must be ones."""
    for name, array in arrays.items():
        if name.endswith(".waiting") and ((array < 0) | (array >= HELD)).any():
            raise ValueError(f"{name} is not below {HELD}")
