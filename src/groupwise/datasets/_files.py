"""Where a data set's file is: given, in a folder, in the user's cache, or to be downloaded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ..errors import DatasetError
from ..extras import needed_by

ENVIRONMENT = "GROUPWISE_DATA"

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class DataFile:
    """A public file: its name, where it is published, and the SHA-256 it has there."""

    name: str
    address: str
    sha256: str


def cache() -> Path:
    """The folder of downloaded files, the user's own."""
    with needed_by("A data set whose file is not given"):
        import pooch  # here, since it brings a whole HTTP client

    return Path(pooch.os_cache("groupwise"))


def locate(file: DataFile, path: PathLike | None = None, data_dir: PathLike | None = None) -> Path:
    """The first of: `path`, `data_dir`, the folder in $GROUPWISE_DATA, the cache, a download.

    Only a download is compared with the checksum: a file that somebody put in place may be an
    older edition, and its reader checks columns and number of rows.
    """
    if path is not None:
        if not Path(path).is_file():
            raise DatasetError(f"There is no file {Path(path)}. {file.name} is at {file.address}.")
        return Path(path)

    folders = []
    if data_dir is not None:
        folders.append(_folder(data_dir, "The data folder"))
    if os.environ.get(ENVIRONMENT):
        folders.append(_folder(os.environ[ENVIRONMENT], f"The folder in {ENVIRONMENT},"))
    for folder in folders:
        if (folder / file.name).is_file():
            return folder / file.name
    kept = cache() / file.name
    return kept if kept.is_file() else _download(file, [*folders, kept.parent])


def _folder(given: PathLike, what: str) -> Path:
    # A folder that is not there is a slip of the pen: downloading instead would hide it.
    if not Path(given).is_dir():
        raise DatasetError(f"{what} {Path(given)} is not a folder.")
    return Path(given)


def _download(file: DataFile, looked_in: list[Path]) -> Path:
    import pooch

    try:
        found = pooch.retrieve(
            file.address, known_hash=f"sha256:{file.sha256}", fname=file.name, path=looked_in[-1]
        )
    except (OSError, ValueError) as error:  # no network; another checksum
        folders = ", ".join(map(str, looked_in))
        raise DatasetError(
            f"{file.name} is not in {folders}, and downloading it failed.\n"
            f"Fetch it from {file.address}\n"
            f"and put it into {looked_in[-1]}, or into a folder that {ENVIRONMENT} names, "
            f"or give its path.\n"
            f"The download said: {error}"
        ) from error
    return Path(found)
