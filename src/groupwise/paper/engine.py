"""Where work is done: on this machine or a Ray cluster, through joblib. Runs are kept on disk."""

import hashlib
import io
import json
import logging
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from groupwise import __version__
from groupwise.datasets import Dataset
from groupwise.errors import ConfigurationError
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
LOCAL, RAY = "local", "ray"
ROUNDS_OF_WORK = 4
"""How many tasks a worker of a cluster gets before results are handed over and kept."""


class Task(NamedTuple):
    """One independent run."""

    source: Source
    order: str
    seed: int
    settings: Settings


def checked_engine(engine: str) -> str:
    """The engine, if it is one: "local", "ray", or the ray:// address of a cluster."""
    if engine in (LOCAL, RAY) or engine.startswith("ray://"):
        return engine
    raise ConfigurationError(
        f"There is no engine {engine!r}. Choose local, ray, or the ray:// address of a cluster."
    )


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
    """Each task's number and run, as they get ready."""
    calls = [joblib.delayed(_numbered)(*item) for item in enumerate(tasks)]
    if engine == LOCAL:
        # In threads: the kernels run outside the interpreter's lock, and no data are copied. Many
        # small matrix products at a time: the linear algebra's own threads only get in the way.
        with threadpool_limits(1, user_api="blas"):
            yield from joblib.Parallel(
                job_count(jobs), "threading", return_as="generator_unordered"
            )(calls)
        return
    workers = jobs or -1
    with _ray(engine), joblib.parallel_config("ray"), joblib.Parallel(workers) as parallel:
        # Some at a time: Ray's backend hands its results over all at once.
        some = ROUNDS_OF_WORK * joblib.effective_n_jobs(workers)
        for start in range(0, len(calls), some):
            yield from parallel(calls[start : start + some])


def _numbered(number: int, task: Task) -> tuple[int, Run]:
    return number, run(dataset_of(task.source), task.order, task.seed, task.settings)


@contextmanager
def _ray(engine: str) -> Iterator[None]:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise ConfigurationError(
            "The engine ray needs Ray: pip install 'groupwise[ray]'."
        ) from error
    started = not ray.is_initialized()
    if started:
        address = engine if engine != RAY else os.environ.get("RAY_ADDRESS")
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:  # whatever Ray's client raises when nobody answers
            raise ConfigurationError(f"No Ray cluster at {address}: {error}") from error
    register_ray()  # type: ignore[no-untyped-call,unused-ignore]
    try:
        yield
    finally:
        if started:
            ray.shutdown()


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
