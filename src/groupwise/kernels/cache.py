"""Where compiled kernels are kept, and how it is known that they are still the right ones.

numba's own cache looks at the file of a function, not at those it calls into or takes constants
from, and two processes that compile at once can make its index point to the wrong code. Here a
folder belongs to one state of the package's sources on one kind of machine, and a file in it to one
function with one signature. It is written under another name first and says what it was made from,
so that whatever is found is whole and right, or is compiled anew.

What is kept is code, and is run: a file that belongs to somebody else, or that everybody may write
to, is taken for missing. Whoever may write to a folder as this user or as the owner of the package
is trusted with it, as with the package itself.
"""

import contextlib
import hashlib
import inspect
import os
import pickle
import re
import shutil
import stat
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, NullCache
from numba.core.registry import cpu_target
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from groupwise.kernels import compiling

PACKAGE = Path(__file__).parent.parent
KERNELS = Path(__file__).parent
PREFIX = "groupwise-"
UNUSED_DAYS = 30
"""A folder of other sources or another machine that nobody used for so long is deleted."""

_SETTINGS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")
_IMPORT = re.compile(rb"^\s*from (groupwise[\w.]*) import ([^\n(]*|\([^)]*\))", re.MULTILINE)


def _digest(*parts: bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()


def _imported(source: bytes) -> Iterator[Path]:
    """The files of the package that a source takes names from."""
    for module, names in _IMPORT.findall(source):
        parts = module.decode().split(".")[1:]
        for name in ("", *re.findall(r"\w+", names.decode())):
            place = PACKAGE.joinpath(*parts, name)
            for file in (place.with_suffix(".py"), place / "__init__.py"):
                if file != PACKAGE / "__init__.py" and file.is_file():
                    yield file


@cache
def sources() -> dict[Path, bytes]:
    """The files of the kernels and of all modules that they import from, with their contents."""
    found: dict[Path, bytes] = {}
    waiting = sorted(KERNELS.glob("*.py"))
    while waiting:
        file = waiting.pop()
        if file not in found:
            found[file] = file.read_bytes()
            waiting += _imported(found[file])
    return found


sources()  # what is compiled is what was imported, whatever happens to the files until then


@cache
def _folder_name() -> str:
    """It starts with what the machine is and ends with what the sources are."""
    machine = (
        numba.__version__,
        llvmlite.__version__,
        numpy.__version__,
        sys.implementation.cache_tag,
        getattr(sys, "abiflags", ""),
        cpu_target.target_context.codegen().magic_tuple(),
        [getattr(config, name, None) for name in _SETTINGS],
        os.environ.get("GROUPWISE_VECTOR_WIDTH"),
    )
    files = sorted(sources().items())
    contents = [part for file, text in files for part in (os.fsencode(file.name), text)]
    return f"{PREFIX}{_digest(repr(machine).encode())[:10]}-{_digest(*contents)[:16]}"


def arithmetic() -> str:
    """Names the arithmetic: where it is the same, so are the bits of whatever is computed."""
    return _folder_name().removeprefix(PREFIX)


@cache
def folders() -> tuple[Path, ...]:
    """Where to look, and where to write if it can be written to, in this order."""
    if not sources():  # in an archive, say
        return ()
    if config.CACHE_DIR:
        places = [Path(config.CACHE_DIR)]
    else:
        places = [KERNELS / "__pycache__", Path(AppDirs("groupwise", False).user_cache_dir)]
    # Without a home a path starts with ~, and would be made wherever the process happens to be.
    return tuple(place.absolute() / _folder_name() for place in places if place.parts[0] != "~")


@cache
def _writable() -> Path | None:
    """The first of the folders that can be written to, made if it is missing."""
    for folder in folders():
        with contextlib.suppress(OSError):
            new = not folder.is_dir()
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            if new:
                _clean(folder)
            return folder
    return None


def _clean(folder: Path) -> None:
    """Delete what no process needs any more beside a folder that was just made.

    A process that still needs it compiles anew. In the package's own folder, other sources on the
    same machine are earlier ones; elsewhere they can be those of another environment.
    """
    machine = folder.name.rpartition("-")[0]
    for other in folder.parent.glob(f"{PREFIX}*"):
        earlier = other.name.startswith(machine) and folder.parent == KERNELS / "__pycache__"
        with contextlib.suppress(OSError):
            unused = time.time() - other.stat().st_mtime > UNUSED_DAYS * 86_400
            if other != folder and (earlier or unused):
                shutil.rmtree(other, ignore_errors=True)


@cache
def _note_use(folder: Path) -> None:
    """Once a process: this folder is in use."""
    with contextlib.suppress(OSError):
        os.utime(folder)


def _described(kind: Any) -> str:
    """A type in words, with the order of a named tuple's fields."""
    if isinstance(kind, tuple):
        return f"({', '.join(map(_described, kind))})"
    inner = kind.types if isinstance(kind, numba.types.BaseTuple) and hasattr(kind, "types") else ()
    return f"{kind}{getattr(kind, 'fields', '')}{[_described(part) for part in inner]}"


def _constants(function: Any) -> bytes:
    """What a function takes from its module and from functions around it: plain values, tables of
    axes, and other functions that are outside the package, with all that these take."""
    plain = int | float | complex | str | bytes | tuple | numpy.generic | numpy.ndarray
    found: list[Any] = [tuple(cell.cell_contents for cell in function.__closure__ or ())]
    for word in function.__code__.co_names:
        value = function.__globals__.get(word)
        other = getattr(value, "py_func", None)
        if isinstance(value, plain):
            found.append((word, value))
        elif hasattr(value, "described"):
            found.append((word, value.described))
        elif other is not None and Path(inspect.getfile(other)).absolute() not in sources():
            found.append((word, other.__code__.co_code, _constants(other)))
    return bytes(dumps(found))


def _read(path: Path) -> bytes:
    """What is kept in a file, if it is to be trusted."""
    with path.open("rb") as file:
        if sys.platform != "win32":
            about = os.fstat(file.fileno())
            trusted = about.st_uid in (0, os.geteuid(), PACKAGE.stat().st_uid)
            if not trusted or about.st_mode & stat.S_IWOTH:
                raise PermissionError(f"{path} may be anybody's")
        return file.read()


def _for_the_owner(path: str, flags: int) -> int:
    """Open a file that nobody else may write to, whatever the umask."""
    return os.open(path, flags, 0o644)


class _Form(CompileResultCacheImpl):
    """What numba makes of a compiled function to write it down, and back."""

    def __init__(self) -> None:
        pass  # and nothing of where it is kept


class KernelCache(NullCache):
    """The compiled forms of one function, on disk.

    Of a function outside the package (a learner of one's own) the contents of its own file count as
    well as those of the package. What has no file, or depends on what cannot be written down, is
    compiled in every process.
    """

    def __init__(self, function: Any, options: Any) -> None:
        self._function = function
        self._options = repr(sorted(options.items())).encode()
        self._file = Path(inspect.getfile(function)).absolute()
        self._kept = True
        self._source = sources().get(self._file, b"")
        if not self._source:
            try:
                self._source = self._file.read_bytes()
            except OSError:
                self._kept = False

    @property
    def cache_path(self) -> str | None:
        """Where the function is kept, for numba's statistics."""
        return str(folders()[0]) if self._kept and folders() else None

    def _place(self, signature: Any) -> tuple[str, bytes]:
        """The name of the file for a signature, and what the file must say it was made from."""
        function, kinds = self._function, _described(signature).encode()
        inside = self._file in sources()
        path = self._file.name if inside else str(self._file)
        line = str(function.__code__.co_firstlineno).encode()
        where = _digest(os.fsencode(path), line, self._options, kinds)
        name = re.sub(r"[^\w.]", "", f"{self._file.stem}.{function.__qualname__}")
        made_from = _digest(
            _folder_name().encode(),
            self._options,
            kinds,
            b"" if inside else self._source,
            function.__code__.co_code,
            _constants(function),
        )
        return f"{name}-{where[:16]}.kernel", made_from.encode()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled before; None if it must be compiled."""
        target_context.refresh()
        # What cannot be read or made sense of, for whatever reason, is compiled anew.
        with contextlib.suppress(Exception):
            name, made_from = self._place(sig)
            for folder in folders() if self._kept else ():
                with contextlib.suppress(Exception):
                    check, said, payload = _read(folder / name).split(b"\n", 2)
                    if said == made_from and check == _digest(payload).encode():
                        found = _Form().rebuild(target_context, pickle.loads(payload))
                        _note_use(folder)
                        return found
        compiling.begins(self._kept and _writable() is not None)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, if there is a place for it."""
        compiling.ends()
        folder = _writable() if self._kept else None
        if folder is None or data.lifted or data.library.has_dynamic_globals:
            return
        # A full disk, or a value that cannot be written down: then the next process compiles too.
        with contextlib.suppress(Exception):
            name, made_from = self._place(sig)
            payload = dumps(_Form().reduce(data))
            folder.mkdir(parents=True, exist_ok=True)
            temporary = folder / f"{name}.{uuid.uuid4().hex[:16]}"
            try:
                with open(temporary, "xb", opener=_for_the_owner) as file:
                    file.write(b"\n".join((_digest(payload).encode(), made_from, payload)))
                temporary.replace(folder / name)
            finally:
                temporary.unlink(missing_ok=True)
