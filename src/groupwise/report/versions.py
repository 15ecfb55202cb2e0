"""What a result was made with."""

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("groupwise", "numpy", "scipy", "numba", "matplotlib")


def versions() -> dict[str, str]:
    """Names and versions of Python, the packages that compute and draw, and the machine."""
    found = {"Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return {**found, "platform": f"{platform.system()} {platform.machine()}"}
