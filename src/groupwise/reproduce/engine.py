"""Where the runs are computed: threads of this machine, or a Ray cluster, through joblib."""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from groupwise.errors import ConfigurationError
from groupwise.reproduce.experiments import Source, dataset_of
from groupwise.reproduce.run import Run, run
from groupwise.reproduce.settings import Settings
from groupwise.stream import job_count

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


def run_tasks(
    tasks: Sequence[Task], engine: str = LOCAL, jobs: int | None = None
) -> Iterator[tuple[int, Run]]:
    """Each task's number and run, as they get ready."""
    import joblib

    calls = [joblib.delayed(_numbered)(*item) for item in enumerate(tasks)]
    yield from (_local if engine == LOCAL else _on_ray)(calls, engine, jobs)


def _numbered(number: int, task: Task) -> tuple[int, Run]:
    return number, run(dataset_of(task.source), task.order, task.seed, task.settings)


def _local(calls: list[Any], engine: str, jobs: int | None) -> Iterator[tuple[int, Run]]:
    """In threads: the kernels run outside the interpreter's lock, and no data are copied."""
    import joblib
    from threadpoolctl import threadpool_limits

    # Many small matrix products at a time: the linear algebra's own threads only get in the way.
    with threadpool_limits(1, user_api="blas"):
        parallel = joblib.Parallel(job_count(jobs), "threading", return_as="generator_unordered")
        yield from parallel(calls)


def _on_ray(calls: list[Any], engine: str, jobs: int | None) -> Iterator[tuple[int, Run]]:
    """On a cluster, some at a time: Ray's backend hands its results over all at once."""
    import joblib

    workers = jobs or -1
    with _ray(engine), joblib.parallel_config("ray"), joblib.Parallel(workers) as parallel:
        some = ROUNDS_OF_WORK * joblib.effective_n_jobs(workers)
        for start in range(0, len(calls), some):
            yield from parallel(calls[start : start + some])


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
