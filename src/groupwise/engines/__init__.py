"""Where tasks run: in threads of this machine, or on a Ray cluster. The numbers are the same."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from groupwise.engines.local import LocalEngine
from groupwise.errors import ConfigurationError
from groupwise.protocols import Engine
from groupwise.regret.threads import one_thread
from groupwise.stream import job_count

__all__ = ["LOCAL", "RAY", "LocalEngine", "checked_engine", "each", "opened"]

LOCAL, RAY = "local", "ray"
AHEAD = 2
"""Tasks a worker has waiting, so that it never waits for who hands them out."""


def checked_engine(engine: str) -> str:
    """The engine, if it is one: "local", "ray", or the ray:// address of a cluster."""
    if isinstance(engine, str) and (engine in (LOCAL, RAY) or engine.startswith("ray://")):
        return engine
    raise ConfigurationError(
        f"There is no engine {engine!r}. Choose local, ray, or the ray:// address of a cluster."
    )


@contextmanager
def opened(engine: str | Engine | None, jobs: int | None = None) -> Iterator[Engine]:
    """The engine of this name while it is used; one that is given stays open.

    ``local``, or none, has ``jobs`` threads, one per core by default. ``ray`` is the cluster that
    this process is connected to, or the one that RAY_ADDRESS names, or one on this machine that
    lasts as long as it is used, of ``jobs`` processes.
    """
    if engine is None or engine == LOCAL:
        # Many small problems at a time: the linear algebra's own threads only get in the way.
        with one_thread(), LocalEngine(job_count(jobs)) as local:
            yield local
    elif not isinstance(engine, str):
        yield engine
    else:
        checked_engine(engine)
        from groupwise.engines.ray import connected

        with connected(engine, jobs) as cluster:
            yield cluster


def each(
    engine: Engine, function: Callable[..., Any], items: Sequence[tuple[Any, ...]]
) -> Iterator[Any]:
    """What a function gives of every item, in their order; a plain map.

    Few tasks more than there are workers are under way at a time, so that what waits to be taken
    does not grow with their number.
    """
    rest = iter(items)
    under_way = [engine.submit(function, *item) for item in islice(rest, AHEAD * engine.workers)]
    while under_way:
        yield engine.get(under_way.pop(0))
        under_way += [engine.submit(function, *item) for item in islice(rest, 1)]
