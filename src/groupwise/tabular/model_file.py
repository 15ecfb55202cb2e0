"""Snapshots that also say how their rows are read: the label's column, and what columns hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupwise import snapshot
from groupwise.errors import SnapshotError

if TYPE_CHECKING:
    from groupwise.model import Groupwise


@dataclass(frozen=True)
class Reading:
    """The label's column, and the kind of every column that is read; None where it is not known."""

    target: str | None = None
    kinds: Mapping[str, Any] | None = None


def save(model: "Groupwise", path: Path, reading: Reading) -> None:
    """Write a snapshot, which ``groupwise.load`` reads too."""
    table = {"target": reading.target, "kinds": dict(reading.kinds or {}) or None}
    snapshot.save(model, path, table=table)


def load(path: Path) -> "tuple[Groupwise, Reading]":
    """Read a snapshot; one written by ``model.save`` says nothing about columns."""
    from groupwise.model import load as load_model

    model = load_model(path)
    table = snapshot.read_table(path) or {}
    target, kinds = table.get("target"), table.get("kinds")
    if not isinstance(target, str | None) or not isinstance(kinds, dict | None):
        raise SnapshotError(f"{path} is damaged: what it says about columns is unreadable.")
    if kinds is not None and not set(kinds.values()) <= {"number", "text"}:
        raise SnapshotError(f"{path} is damaged: a column is neither number nor text.")
    return model, Reading(target, kinds)
