"""Files that lie elsewhere, by their URL: whatever fsspec has a package for (s3, gs, http …)."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import has_magic
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from groupwise.errors import DataError
from groupwise.extras import needed_by
from groupwise.files.text import shown

CHANGING = (
    *("size", "mtime", "modified", "last_modified", "LastModified", "Last-Modified", "updated"),
    *("created", "ETag", "etag", "md5", "md5Hash", "content_md5", "checksum", "crc32c"),
    *("generation", "version_id", "VersionId"),
)
"""What file systems tell of a file, of those that fsspec has packages for."""


def is_url(name: str) -> bool:
    """Is it a URL, and no path?"""
    return "://" in name


def local(name: str) -> str | None:
    """The path that a file:// URL names; None for other names."""
    parts = urlsplit(name) if name.startswith("file://") else None
    return None if parts is None else url2pathname(parts.path)


def open(name: str) -> Any:
    """The bytes of a file, to be read in parts."""
    with _found(name) as (system, path):
        return system.open(path, "rb")


def size(name: str) -> int:
    """How many bytes it has."""
    with _found(name) as (system, path):
        return int(system.size(path))


def stamp(name: str) -> tuple[str, ...]:
    """What its file system tells of a file that is another once the file is changed."""
    with _found(name) as (system, path):
        system.invalidate_cache(path)
        about = system.info(path)
        told = {key: about[key] for key in CHANGING if about.get(key) is not None}
        with suppress(NotImplementedError, KeyError):
            told["modified at"] = system.modified(path)
    return tuple(f"{key}: {value}" for key, value in told.items())


def begins(name: str, sign: bytes) -> bool:
    """Does it begin with these bytes?"""
    with open(name) as file:
        return bool(file.read(len(sign)) == sign)


def fetch(name: str, place: Path) -> None:
    """Copy a file to this machine."""
    with open(name) as file, place.open("wb") as copy:
        shutil.copyfileobj(file, copy)


def matching(pattern: str) -> list[str]:
    """The URLs that a pattern stands for, in the order of their names; itself if it is none."""
    if not has_magic(pattern.partition("://")[2]):
        return [pattern]
    with _found(pattern) as (system, path):
        return sorted(map(system.unstrip_protocol, system.glob(path)))


@contextmanager
def _found(name: str) -> Iterator[tuple[Any, str]]:
    """The file system of a URL, and what it is called there."""
    with needed_by(f"Reading {shown(name)}"):
        from fsspec.core import url_to_fs
    try:
        yield url_to_fs(name)
    except FileNotFoundError:
        raise DataError(f"Cannot read {shown(name)}: there is no such file.") from None
    except (OSError, ValueError, ImportError) as error:
        raise DataError(f"Cannot read {shown(name)}: {shown(str(error)).rstrip('.')}.") from None
