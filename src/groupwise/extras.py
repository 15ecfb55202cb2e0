"""The packages that only some uses need, and the extra of groupwise that brings each of them."""

from collections.abc import Iterator, Sequence
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


def missing_from(extras: Sequence[str], what: str) -> str | None:
    """What to install before ``what`` can be used; None where all of the first extra is there."""
    missing = {
        extra: [package for package in EXTRAS[extra] if find_spec(package) is None]
        for extra in extras
    }
    if not missing[extras[0]]:
        return None
    wanted = ",".join(extra for extra in extras if missing[extra])
    return _advice(what, [package for found in missing.values() for package in found], wanted)


def installing(extra: str) -> str:
    """The command that installs an extra, wherever groupwise came from.

    >>> installing("cli")
    "pip install 'groupwise[cli]', or '.[cli]' in the checkout"
    """
    return f"pip install 'groupwise[{extra}]', or '.[{extra}]' in the checkout"


def _advice(what: str, packages: list[str], extra: str) -> str:
    return f"{what} needs {', '.join(packages)}: {installing(extra)}."
