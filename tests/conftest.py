"""Fixtures that several folders of tests share."""

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data files, which lies beside the repository and is no part of it."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no folder of data files at {folder}")
    return folder


@pytest.fixture(scope="session")
def insurance(shared_data: Path) -> Path:
    """The file of medical costs."""
    path = shared_data / "insurance.csv"
    if not path.is_file():
        pytest.skip(f"no file {path}")
    return path
