"""The files of a run, which appear whole or not at all."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from groupwise.errors import OutputError

PREFIX = ".groupwise-"


class Outputs:
    """A hidden folder beside the files' place, where they are written first."""

    def __init__(self, out: Path, folder: Path) -> None:
        self.out = out
        self.folder = folder

    def path(self, name: str) -> Path:
        """Where a file is written until all are."""
        return self.folder / name

    def write(self, name: str, text: str) -> None:
        """Write a whole file."""
        self.path(name).write_text(text, encoding="utf-8")

    def publish(self) -> None:
        """Put all files in their place.

        Into a new folder they move together, in one step; into one that is there already one by
        one, each replacing an older one of its name.
        """
        names = sorted(os.listdir(self.folder))
        for name in names:
            _sync(self.path(name))
        if not self.out.exists():
            with contextlib.suppress(OSError):  # somebody else made it meanwhile
                os.chmod(self.folder, 0o777 & ~_umask())
                os.rename(self.folder, self.out)
                return
        for name in names:
            os.replace(self.path(name), self.out / name)


@contextmanager
def outputs(out: Path) -> Iterator[Outputs]:
    """A place for files; ``publish`` at the end, or nothing is left of them."""
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out} is a file. Give --out a folder.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        parent = out if out.exists() else out.parent
        _clear_away(parent)
        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent))
    except OSError as error:
        raise OutputError(f"Cannot write to {out}: {error.strerror}. Give another --out.") from None
    try:
        yield Outputs(out, folder)
    except OSError as error:
        raise OutputError(f"Cannot write to {out}: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A name to write to; the file then takes the place of ``path`` in one step."""
    part = path.with_name(f"{PREFIX}{os.getpid()}-{path.name}")
    try:
        yield part
        _sync(part)
        os.replace(part, path)
    except OSError as error:
        raise OutputError(f"Cannot write {path}: {error.strerror or error}.") from None
    finally:
        part.unlink(missing_ok=True)


def _clear_away(parent: Path) -> None:
    """Remove what a run that was killed has left."""
    for folder in parent.glob(f"{PREFIX}*-*"):
        owner = folder.name.removeprefix(PREFIX).split("-")[0]
        if folder.is_dir() and owner.isdigit() and not _is_running(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
