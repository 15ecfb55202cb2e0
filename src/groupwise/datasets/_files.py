"""Where a data set's file is: given, in a folder, in the user's cache, or to be downloaded."""

import os
from pathlib import Path
from typing import NamedTuple

from groupwise.errors import DatasetError
from groupwise.extras import needed_by

ENVIRONMENT = "GROUPWISE_DATA"

PathLike = str | os.PathLike[str]


class DataFile(NamedTuple):
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
    """The first of: ``path``, ``data_dir``, the folder in $GROUPWISE_DATA, the cache, a download.

    Only a download is compared with the checksum: a file that somebody put in place may be an
    older edition, and its reader checks columns and number of rows.
    """
    if path is not None:
        if not Path(path).is_file():
            raise DatasetError(f"There is no file {Path(path)}. {file.name} is at {file.address}.")
        return Path(path)
    given = {
        what: Path(folder)
        for what, folder in (
            ("The data folder", data_dir),
            (f"The folder in {ENVIRONMENT},", os.environ.get(ENVIRONMENT) or None),
        )
        if folder is not None
    }
    for what, folder in given.items():
        if not folder.is_dir():  # a slip of the pen, which downloading instead would hide
            raise DatasetError(f"{what} {folder} is not a folder.")
    for folder in given.values():
        if (folder / file.name).is_file():
            return folder / file.name
    kept = cache() / file.name
    return kept if kept.is_file() else _download(file, [*given.values(), kept.parent])


def _download(file: DataFile, looked_in: list[Path]) -> Path:
    import pooch

    try:
        return Path(pooch.retrieve(file.address, f"sha256:{file.sha256}", file.name, looked_in[-1]))
    except (OSError, ValueError) as error:  # no network; another checksum
        raise DatasetError(
            f"{file.name} is not in {', '.join(map(str, looked_in))}, and downloading it failed.\n"
            f"Fetch it from {file.address}\n"
            f"and put it into {looked_in[-1]}, or into a folder that {ENVIRONMENT} names, "
            f"or give its path.\n"
            f"The download said: {error}"
        ) from error
