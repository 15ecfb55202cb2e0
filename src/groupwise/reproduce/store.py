"""Runs on disk, so that an interrupted reproduction goes on where it stopped."""

import hashlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np

from groupwise import __version__
from groupwise.datasets import Dataset
from groupwise.reproduce.experiments import Source
from groupwise.reproduce.run import POINTS, Run
from groupwise.reproduce.settings import Settings
from groupwise.writing import folder, write

FOLDER = ".cache"
SCHEMA = 1
"""Counts up when a run's arrays change their meaning."""


class Store:
    """The runs of one output folder, a file for each experiment, order, seed and settings."""

    def __init__(self, out: Path) -> None:
        self.folder = folder(out / FOLDER)

    def path(self, experiment: str, order: str, seed: int, key: str) -> Path:
        """Where a run is, or will be."""
        return self.folder / f"{experiment}-{order}-{seed}-{key}.npz"

    def load(self, path: Path) -> Run | None:
        """The run; None where there is none that can be read."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return Run(*(arrays[field] for field in Run._fields))
        except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
            return None

    def save(self, path: Path, run: Run) -> None:
        """Keep a run."""
        stream = io.BytesIO()
        np.savez(stream, **run._asdict())
        write(path, stream.getvalue())


def key_of(settings: Settings, source: Source) -> str:
    """What a run depends on besides experiment, order and seed, in twelve letters."""
    parts = {
        "schema": SCHEMA,
        "version": __version__,
        "points": POINTS,
        "settings": settings.to_dict(),
        "data": source if isinstance(source, str) else _fingerprint(source),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def _fingerprint(data: Dataset) -> str:
    digest = hashlib.sha256(repr((data.feature_names, data.group_names)).encode())
    for array in (data.features, data.label, data.membership, data.sort_key):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
