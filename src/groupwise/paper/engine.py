"""Where work is done: on this machine or a Ray cluster. Runs are kept on disk."""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import joblib
import numpy as np

from groupwise import __version__
from groupwise.datasets import Dataset
from groupwise.engines import LOCAL, each, opened
from groupwise.paper.published import Settings, Source, dataset_of
from groupwise.paper.run import POINTS, Run, run
from groupwise.progress import progress_bar
from groupwise.stream import job_count
from groupwise.writing import folder, write

Found = TypeVar("Found")

STORE = ".cache"
"""The folder of the runs that are done, so that an interrupted reproduction goes on from there."""
SCHEMA = 1
"""Counts up when a run's arrays change their meaning."""


class Task(NamedTuple):
    """One independent run."""

    source: Source
    order: str
    seed: int
    settings: Settings


def in_processes(
    calls: Sequence[Callable[[], Found]], jobs: int | None, what: str = "", unit: str = "runs"
) -> Iterator[Found]:
    """What each call gives, in order, in as many processes of this machine as there are jobs.

    With ``what``, a bar says how many are done.
    """
    with progress_bar(len(calls), what, bool(what), unit, steady=True) as advance:
        advance(0)
        for found in _each(calls, job_count(jobs)):
            advance(1)
            yield found


def _each(calls: Sequence[Callable[[], Found]], jobs: int) -> Iterator[Found]:
    if jobs == 1:
        yield from (call() for call in calls)
    else:
        parallel = joblib.Parallel(jobs, "loky", return_as="generator")
        yield from parallel(joblib.delayed(call)() for call in calls)


def run_tasks(
    tasks: Sequence[Task], engine: str = LOCAL, jobs: int | None = None
) -> Iterator[tuple[int, Run]]:
    """Each task's number and run, in their order."""
    with opened(engine, jobs) as workers:
        yield from each(workers, _numbered, list(enumerate(tasks)))


def _numbered(number: int, task: Task) -> tuple[int, Run]:
    return number, run(dataset_of(task.source), task.order, task.seed, task.settings)


class Store:
    """The runs of one output folder, a file for each experiment, order, seed and settings."""

    def __init__(self, out: Path) -> None:
        self.folder = folder(out / STORE)

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
    data = source
    if isinstance(source, Dataset):
        names = repr((source.feature_names, source.group_names)).encode()
        arrays = (source.features, source.label, source.membership, source.sort_key)
        data = hashlib.sha256(b"".join([names, *(array.tobytes() for array in arrays)])).hexdigest()
    parts = {
        "schema": SCHEMA,
        "version": __version__,
        "points": POINTS,
        "settings": settings.to_dict(),
        "data": data,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]
