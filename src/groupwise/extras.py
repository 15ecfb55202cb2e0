"""The packages that only some uses need, and the extra of groupwise that brings each of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from groupwise.errors import MissingPackageError

EXTRAS: dict[str, tuple[str, ...]] = {
    "cli": ("typer", "rich", "pyarrow", "tomli_w", "matplotlib", "jinja2"),
    "excel": ("fastexcel",),
    "paper": ("pooch", "joblib"),
    "river": ("river",),
    "sklearn": ("sklearn",),
    "ray": ("ray",),
    "urls": ("fsspec",),
    "frames": ("pandas", "polars"),
    "serve": (
        "starlette",
        "msgspec",
        "httptools",
        "uvicorn",
        "prometheus_client",
        "psycopg",
        "httpx",
    ),
}
"""What ``pip install 'groupwise[extra]'`` adds, by the names that are imported."""


@contextmanager
def needed_by(what: str) -> Iterator[None]:
    """Around imports: where a package of an extra is missing, the error says what to install.

    >>> with needed_by("A table of patients"):
    ...     import tomli_w
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        for extra, packages in EXTRAS.items():
            if package in packages:
                raise MissingPackageError(_advice(what, [package], extra), name=package) from error
        raise


def missing_from(extra: str, what: str) -> str | None:
    """What to install before ``what`` can be used; None where all of the extra is there."""
    missing = [package for package in EXTRAS[extra] if find_spec(package) is None]
    return _advice(what, missing, extra) if missing else None


def _advice(what: str, packages: list[str], extra: str) -> str:
    return f"{what} needs {', '.join(packages)}: pip install 'groupwise[{extra}]'."
