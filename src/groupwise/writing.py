"""Files that are there whole or not at all: one, or several together; and one writer at a time.

What is written goes beside its place first, under a hidden name; it is then flushed to the disk and
put in place in one move. Whoever interrupts leaves the old file, or none. A lock beside the hidden
name, which ends with the process, says that it is in use: what a process that was killed has left
is cleared away by the next one that writes there.
"""

import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from groupwise.errors import GroupwiseError, OutputError

PREFIX, LOCK = ".groupwise-", ".lock"
BETWEEN = 0.1
"""Seconds between two looks at a lock that somebody else has."""
PART = re.compile(r"part-\d{12,}\.parquet")
"""What a file of predictions is called that is one of many."""
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")


@contextmanager
def replaced(path: Path, error: type[GroupwiseError] = OutputError) -> Iterator[Path]:
    """The name of a new file to write to, which then takes the place of ``path`` in one step.

    It has the permissions and the owner of the file that it replaces, or of any new file; where
    ``path`` is a symbolic link, what it points to is replaced. A device, a FIFO or a descriptor
    (``/dev/stdout``) stays what it is, and gets all that was written at the end. What cannot be
    written is an ``error``.
    """
    try:
        if is_stream(path):
            with tempfile.TemporaryDirectory(prefix="groupwise-") as spool:
                yield Path(spool) / "part"
                with _stream(path) as file, (Path(spool) / "part").open("rb") as part:
                    shutil.copyfileobj(part, file)
            return
        target = Path(os.path.realpath(path))
        old = _about(target)
        with _hidden(target.parent) as part:
            # Less the umask; what replaces a file is nobody else's business before that.
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if old else 0o666))
            yield part
            _sync(part)
            if old is not None:
                _like(part, old)
            os.replace(part, target)
    except OSError as problem:
        raise error(f"Cannot write {path}: {problem.strerror or problem}.") from problem


def _about(path: Path) -> os.stat_result | None:
    """What is known of a file; None where there is none."""
    with suppress(FileNotFoundError):
        return path.stat()
    return None


def is_stream(path: Path) -> bool:
    """Is it written into and not replaced: a device, a FIFO, a descriptor of this process?"""
    try:
        kind = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)) or _descriptor(path) is not None


def _stream(path: Path) -> IO[bytes]:
    """What to write into; a descriptor is shared, so that what else is written follows."""
    number = _descriptor(path)
    if number is None:
        return path.open("wb")
    sys.stdout.flush()
    return os.fdopen(os.dup(number), "wb")


def _descriptor(path: Path) -> int | None:
    """The number in /dev/fd/1 and whatever links to it, such as /dev/stdout."""
    for _ in range(40):  # as many links as Linux follows
        found = _DESCRIPTOR.fullmatch(os.path.abspath(path))
        if found:
            return int(found[1])
        if not path.is_symlink():
            break
        path = path.parent / os.readlink(path)
    return None


def _like(part: Path, old: os.stat_result) -> None:
    """Give a file the permissions of another and, where that is allowed, its owner."""
    if sys.platform != "win32":
        with suppress(OSError):
            os.chown(part, old.st_uid, old.st_gid)
    os.chmod(part, stat.S_IMODE(old.st_mode))


@contextmanager
def alone(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Work on a file while no other process does that asks for the same: from load to save, say.

    Where another one is at it, ``waiting`` is called once, and may raise; then this one waits. The
    lock is a hidden file beside, and ends with its process. What is no file to be replaced has
    none, nor have files where the system knows no locks.

    >>> with alone(Path("model.gw"), waiting=lambda: print("one moment")):
    ...     pass  # load it, learn, save it
    """
    target = Path(os.path.realpath(path))
    place = target.with_name(f".{target.name}{LOCK}")
    if is_stream(path):
        yield
        return
    try:
        file = _taken(place, waiting)
    except OSError as problem:
        raise OutputError(f"Cannot write beside {path}: {problem.strerror or problem}.") from None
    with file:
        try:
            yield
        finally:
            with suppress(OSError):  # on Windows nobody removes a file that is open
                place.unlink()


def _taken(place: Path, waiting: Callable[[], None]) -> IO[bytes]:
    """A locked file of this name, made if need be."""
    said = False
    while True:
        file = place.open("ab")
        try:
            free = _locked(file)
        except OSError:  # no locks here
            return file
        with suppress(FileNotFoundError):
            # The one before may have removed it: then this lock is nobody's.
            if free and os.path.samestat(os.fstat(file.fileno()), place.stat()):
                return file
        file.close()
        if not free:
            if not said:
                waiting()
            said = True
            time.sleep(BETWEEN)


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

    def publish(self, instead: Callable[[Path], None] | None = None) -> None:
        """Put all files in their place.

        Into a new folder they move together, in one step; into one that is there already one by
        one, each replacing an older one of its name. At last ``instead`` is called with the folder,
        to take away what these stand in the place of.
        """
        names = sorted(os.listdir(self.folder))
        for name in names:
            if self.path(name).is_dir() and (self.out / name).is_file():
                raise OutputError(f"{self.out / name} is a file. Move it, or give another --out.")
        for place in sorted(self.folder.rglob("*")):
            if place.is_file():
                _sync(place)
        if not self.out.exists():
            with suppress(OSError):  # somebody else made it meanwhile
                os.rename(self.folder, self.out)
                return
        for name in names:
            if self.path(name).is_dir():
                _put(self.path(name), Path(os.path.realpath(self.out / name)))
                continue
            with replaced(self.out / name) as part:
                shutil.move(self.path(name), part)
        if instead is not None:
            instead(self.out)


def _put(folder: Path, place: Path) -> None:
    """Put a folder in its place: in that of an older one, but for files that are others'."""
    fresh = {one.relative_to(folder) for one in _files(folder)}
    older = {one.relative_to(place) for one in _files(place)}
    if all(one in fresh or PART.fullmatch(one.name) for one in older):
        _remove(place)
        shutil.move(folder, place)  # a link may lead to another disk
        return
    for one in older - fresh:
        if PART.fullmatch(one.name):
            (place / one).unlink()
    for one in fresh:
        (place / one).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder / one, place / one)


def _files(folder: Path) -> list[Path]:
    return [one for one in folder.rglob("*") if one.is_symlink() or not one.is_dir()]


def without_parts(folder: Path) -> None:
    """Remove a folder of predictions; what else is there stays."""
    with suppress(OSError):
        for one in [*folder.iterdir()]:
            if PART.fullmatch(one.name):
                one.unlink()
        folder.rmdir()


def check_folder(out: Path) -> None:
    """Raise OutputError where files cannot go to this place, as it is a file."""
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out} is a file. Give --out a folder.")


@contextmanager
def outputs(out: Path) -> Iterator[Outputs]:
    """A place for files; ``publish`` at the end, or nothing is left of them."""
    check_folder(out)
    out = Path(os.path.realpath(out))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with _hidden(out if out.exists() else out.parent) as place:
            place.mkdir()
            yield Outputs(out, place)
    except OSError as error:
        raise OutputError(
            f"Cannot write to {out}: {error.strerror or error}. Give another --out."
        ) from error


@contextmanager
def _hidden(parent: Path) -> Iterator[Path]:
    """A name for a file or folder that is not there yet, and is not there afterwards."""
    _clear_away(parent)
    place = parent / f"{PREFIX}{secrets.token_hex(6)}"
    lock = place.with_suffix(LOCK)
    try:
        with lock.open("xb") as file:
            with suppress(OSError):  # no locks here
                if _locked(file):
                    file.write(b"held")
                    file.flush()
            try:
                yield place
            finally:
                _remove(place)
    finally:
        lock.unlink(missing_ok=True)


def _clear_away(parent: Path) -> None:
    """Remove what a process that was killed has left.

    A lock that is still empty is about to be taken, or its file system knows no locks.
    """
    for lock in parent.glob(f"{PREFIX}*{LOCK}"):
        with suppress(OSError):
            if lock.lstat().st_size == 0:
                continue
            with lock.open("rb+") as file:
                left = _locked(file)
            if left:
                _remove(lock.with_suffix(""))
                lock.unlink()


def _remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


def _locked(file: IO[bytes]) -> bool:
    """Lock a file until it is closed, by whatever end of the process; False where it is locked.

    OSError where that cannot be done at all.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
