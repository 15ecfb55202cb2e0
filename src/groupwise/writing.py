"""Files that are there whole or not at all: one, or several together.

What is written goes beside its place first, under a hidden name; it is then flushed to the disk and
put in place in one move. Whoever interrupts leaves the old file, or none.
"""

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from groupwise.errors import GroupwiseError, OutputError

PREFIX, LOCK = ".groupwise-", ".lock"


@contextmanager
def replaced(path: Path, error: type[GroupwiseError] = OutputError) -> Iterator[Path]:
    """The name of a new file to write to, which then takes the place of ``path`` in one step.

    It has the permissions of any new file. What cannot be written is an ``error``.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # less the umask
        try:
            yield part
            _sync(part)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as problem:
        raise error(f"Cannot write {path}: {problem.strerror or problem}.") from problem


def write(path: Path, content: str | bytes) -> Path:
    """Write a whole file."""
    with replaced(path) as part:
        part.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path


def folder(path: Path) -> Path:
    """The folder, made if need be; an error unless files can be written there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise OutputError(
            f"Cannot write to {path}: {error.strerror}. Choose another folder."
        ) from error
    return path


class Outputs(NamedTuple):
    """A hidden folder beside the files' place, where they are written first."""

    out: Path
    folder: Path

    def path(self, name: str) -> Path:
        """Where a file is written until all are."""
        return self.folder / name

    def publish(self) -> None:
        """Put all files in their place.

        Into a new folder they move together, in one step; into one that is there already one by
        one, each replacing an older one of its name.
        """
        names = sorted(os.listdir(self.folder))
        for name in names:
            _sync(self.path(name))
        if not self.out.exists():
            with suppress(OSError):  # somebody else made it meanwhile
                os.rename(self.folder, self.out)
                return
        for name in names:
            os.replace(self.path(name), self.out / name)


@contextmanager
def outputs(out: Path) -> Iterator[Outputs]:
    """A place for files; ``publish`` at the end, or nothing is left of them.

    A lock beside the hidden folder, which ends with the process, says that it is in use: what a
    process that was killed has left is cleared away by the next one.
    """
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out} is a file. Give --out a folder.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        parent = out if out.exists() else out.parent
        _clear_away(parent)
        place = parent / f"{PREFIX}{secrets.token_hex(6)}"
        with _in_use(place):
            place.mkdir()
            try:
                yield Outputs(out, place)
            finally:
                shutil.rmtree(place, ignore_errors=True)
    except OSError as error:
        raise OutputError(
            f"Cannot write to {out}: {error.strerror or error}. Give another --out."
        ) from error


@contextmanager
def _in_use(place: Path) -> Iterator[None]:
    lock = place.with_suffix(LOCK)
    try:
        with lock.open("xb") as file:
            if _locked(file):
                file.write(b"held")
                file.flush()
            yield
    finally:
        lock.unlink(missing_ok=True)


def _clear_away(parent: Path) -> None:
    """Remove what a run that was killed has left.

    A lock that is still empty is about to be taken, or its file system knows no locks.
    """
    for lock in parent.glob(f"{PREFIX}*{LOCK}"):
        with suppress(OSError):
            with lock.open("rb") as file:
                left = lock.stat().st_size > 0 and _locked(file)
            if left:
                shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                lock.unlink()


def _locked(file: IO[bytes]) -> bool:
    """Lock a file until it is closed, by whatever end of the process; False where it is locked."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
