"""Where a result comes from: the command, the moment, the versions of what computed it."""

import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("groupwise", "numpy", "scipy", "numba", "llvmlite", "pyarrow", "matplotlib")
LONGEST = 2_000
"""Characters of a command that are kept."""


def command(arguments: list[str] | None = None) -> str:
    """The command line that this is run by; empty where it is not run by ``groupwise``.

    >>> command(["/usr/bin/groupwise", "run", "my file.csv"])
    "groupwise run 'my file.csv'"
    >>> command(["notebook"])
    ''
    """
    program, *rest = arguments or sys.argv or [""]
    name = Path(program)
    if name.stem == "__main__":
        name = name.parent  # python -m groupwise
    return shlex.join(["groupwise", *rest])[:LONGEST] if name.stem == "groupwise" else ""


def moment() -> str:
    """Now, in universal time; where ``SOURCE_DATE_EPOCH`` is set, then.

    It is the custom of builds that are to be the same every time.
    """
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdigit() else datetime.now(UTC)
    return now.strftime("%Y-%m-%d %H:%M:%S UTC")


def versions() -> dict[str, str]:
    """Names and versions of Python, the packages that compute and draw, and the machine."""
    found = {"Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return {**found, "platform": f"{platform.system()} {platform.machine()}"}
