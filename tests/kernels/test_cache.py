"""What is kept of compiled kernels, in processes of their own on a copy of a few files."""

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import groupwise
from groupwise import kernels
from groupwise.kernels.cache import _digest as digest

PACKAGE = Path(groupwise.__file__).parent

KERNEL = '''"""A kernel that takes its factor from another module."""

from groupwise.kernels.compiled import lean
from groupwise.states import FACTOR


@lean
def scaled(x):
    return FACTOR * x[0]
'''

LEARNER = '''"""A kernel outside the package."""

from groupwise.kernels.compiled import lean
from groupwise.kernels.small import scaled


@lean
def mine(x):
    return scaled(x) + 0.25
'''

RUN = """
import json
import numpy as np
from groupwise.kernels import compiling
from groupwise.kernels.small import scaled
import learner

with compiling():
    results = [scaled(np.ones(2)), learner.mine(np.ones(2))]
compiled = [f.py_func.__name__ for f in (scaled, learner.mine) if sum(f._cache_misses.values())]
print(json.dumps({"results": results, "compiled": compiled}))
"""


class Copy:
    """A package with the decorators, the cache, and one kernel."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kernels = folder / "groupwise" / "kernels"
        self.kernels.mkdir(parents=True)
        (folder / "groupwise" / "__init__.py").touch()
        for name in ("__init__.py", "addresses.py", "cache.py", "compiled.py"):
            shutil.copy(PACKAGE / "kernels" / name, self.kernels / name)
        (self.kernels / "small.py").write_text(KERNEL)
        (folder / "learner.py").write_text(LEARNER)
        self.factor(2.0)

    def factor(self, value: float) -> None:
        """Change the constant; the time and the size of its file stay as they are."""
        states = self.folder / "groupwise" / "states.py"
        states.write_text(f"FACTOR = {value}\n")
        os.utime(states, (1e9, 1e9))

    def start(self, **settings: str) -> subprocess.Popen[str]:
        """Start a process that calls both kernels."""
        quiet = {name: value for name, value in os.environ.items() if name[:5] not in ("NUMBA",)}
        return subprocess.Popen(
            [sys.executable, "-B", "-c", RUN],
            env={**quiet, "PYTHONPATH": str(self.folder), "HOME": "/nonexistent", **settings},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, **settings: str) -> tuple[list[float], list[str]]:
        """The results of both kernels, and the names of those that were compiled for them."""
        process = self.start(**settings)
        output, errors = process.communicate()
        assert process.returncode == 0, errors
        found = json.loads(output)
        return found["results"], found["compiled"]

    def files(self) -> list[Path]:
        """What is kept."""
        return sorted(self.folder.rglob("*.kernel"))


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path / "source")


BOTH = ["scaled", "mine"]


@pytest.mark.slow
def test_what_was_compiled_is_loaded(copy):
    assert copy.run() == ([2.0, 2.25], BOTH)
    assert [file.parent.parent for file in copy.files()] == [copy.kernels / "__pycache__"] * 2
    assert copy.run() == ([2.0, 2.25], [])


@pytest.mark.slow
def test_a_constant_in_another_module_counts(copy):
    copy.run()
    before = copy.files()
    copy.factor(3.0)
    assert copy.run() == ([3.0, 3.25], BOTH)
    assert len(copy.files()) == 2, "what was made from the earlier sources is deleted"
    assert not set(before) & set(copy.files())


@pytest.mark.slow
def test_the_file_of_a_kernel_outside_the_package_counts(copy):
    copy.run()
    (copy.folder / "learner.py").write_text(LEARNER.replace("0.25", "0.75"))
    assert copy.run() == ([2.0, 2.75], ["mine"])
    assert len(copy.files()) == 2


@pytest.mark.parametrize(
    "settings",
    [{"NUMBA_CPU_NAME": "generic"}, {"NUMBA_OPT": "1"}, {"GROUPWISE_VECTOR_WIDTH": "4"}],
)
@pytest.mark.slow
def test_the_machine_and_the_settings_count(copy, settings):
    copy.run()
    assert copy.run(**settings) == ([2.0, 2.25], BOTH)
    assert copy.run() == ([2.0, 2.25], []), "the other machine's are left alone"


@pytest.mark.slow
def test_a_folder_of_ones_own(copy, tmp_path):
    copy.run(NUMBA_CACHE_DIR=str(tmp_path / "own"))
    assert copy.files() == []
    assert len([*(tmp_path / "own").rglob("*.kernel")]) == 2
    copy.factor(4.0)
    assert copy.run(NUMBA_CACHE_DIR=str(tmp_path / "own")) == ([4.0, 4.25], BOTH)
    assert copy.run(NUMBA_CACHE_DIR=str(tmp_path / "own")) == ([4.0, 4.25], [])


def blocked(copy: Copy) -> None:
    """A file where the folder would be: that stops the superuser too."""
    (copy.kernels / "__pycache__").touch()


@pytest.mark.slow
def test_a_package_that_cannot_be_written_to(copy, tmp_path):
    blocked(copy)
    home = {"XDG_CACHE_HOME": str(tmp_path / "home"), "LOCALAPPDATA": str(tmp_path / "home")}
    copy.run(**home)
    assert copy.run(**home) == ([2.0, 2.25], [])


@pytest.mark.slow
@pytest.mark.parametrize("home", ["/dev/null", "~"])
def test_nowhere_to_write(copy, home):
    blocked(copy)
    for _ in range(2):
        assert copy.run(XDG_CACHE_HOME=f"{home}/.cache") == ([2.0, 2.25], BOTH)
    assert copy.files() == []
    assert not (copy.folder / "~").exists()


def test_a_cache_that_was_filled_before_it_was_locked(copy, tmp_path):
    copy.run()
    folder = copy.kernels / "__pycache__"
    folder.chmod(0o555)
    try:
        assert copy.run(XDG_CACHE_HOME="/dev/null") == ([2.0, 2.25], [])
    finally:
        folder.chmod(0o755)


def signed(kept: bytes, payload: bytes) -> bytes:
    """Another payload, with the checksum that fits."""
    made_from = kept.split(b"\n", 2)[1]
    return b"\n".join((digest(payload).encode(), made_from, payload))


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b"",
        lambda b: b[:-100],
        lambda b: b[:200] + b"x" * 9,
        lambda b: b"\x80\x04garbage\n\n\n",
        lambda b: signed(b, b"cos\nno_such_name\n."),
        lambda b: signed(b, b"\x80\x04K\x01."),
    ],
)
@pytest.mark.slow
def test_a_damaged_file_is_replaced(copy, damage):
    copy.run()
    for file in copy.files():
        file.write_bytes(damage(file.read_bytes()))
    assert copy.run() == ([2.0, 2.25], BOTH)
    assert copy.run() == ([2.0, 2.25], [])


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_file_that_may_be_anybodys_is_not_run(copy):
    """What is kept is code."""
    copy.run()
    changes: list[Any] = [lambda file: file.chmod(0o666)]
    if os.geteuid() == 0:
        changes.append(lambda file: os.chown(file, 12_345, 12_345))
    for change in changes:
        for file in copy.files():
            change(file)
        assert copy.run() == ([2.0, 2.25], BOTH)
        assert copy.run() == ([2.0, 2.25], [])


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_what_is_kept_is_trusted_whatever_the_umask(copy):
    before = os.umask(0)
    try:
        copy.run()
    finally:
        os.umask(before)
    assert copy.run() == ([2.0, 2.25], [])


def test_loading_is_not_compiling(monkeypatch):
    """Only what is spent between beginnings and ends brings the notice nearer."""
    clock, started, cancelled = [0.0], [], []

    class Timer:
        daemon = False

        def __init__(self, seconds, function):
            self.seconds = seconds

        def start(self):
            started.append(self.seconds)

        def cancel(self):
            cancelled.append(self.seconds)

    monkeypatch.setattr("groupwise.kernels.threading.Timer", Timer)
    monkeypatch.setattr("groupwise.kernels.time.monotonic", lambda: clock[0])
    for name, value in {"_open": 0, "_depth": 0, "_spent": 0.0, "_said": False}.items():
        monkeypatch.setattr(kernels.compiling, name, value)
    with kernels.compiling():
        kernels.compiling.begins(True)
        kernels.compiling.begins(True)  # one for the sake of the other
        clock[0] += 0.25
        kernels.compiling.ends()
        kernels.compiling.ends()
        clock[0] += 50.0  # loading
        kernels.compiling.begins(True)
        clock[0] += 0.5  # and that fails
    assert (started, cancelled) == ([1.0, 0.75], [1.0, 0.75])
    with kernels.compiling():
        kernels.compiling.begins(True)
        kernels.compiling.ends()
    assert started == [1.0, 0.75, 0.25]
    kernels.compiling.begins(True)  # outside, where nobody waits
    assert len(started) == 3


@pytest.mark.parametrize("terminal", [False, True])
def test_the_word_is_there_while_something_is_compiled_and_only_then(monkeypatch, terminal):
    """Once, or on a terminal a line with seconds that is wiped whenever compiling ends."""
    clock, waiting = [0.0], []

    class Timer:
        daemon = False

        def __init__(self, seconds, function):
            self.seconds, self.function = seconds, function

        def start(self):
            waiting.append(self)

        def cancel(self):
            waiting.clear()

    def passes(seconds):
        clock[0] += seconds
        while waiting and waiting[0].seconds <= seconds:
            waiting.pop(0).function()
            seconds = 0.0

    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr("groupwise.kernels.sys.stderr", out)
    monkeypatch.setattr("groupwise.kernels.threading.Timer", Timer)
    monkeypatch.setattr("groupwise.kernels.time.monotonic", lambda: clock[0])
    for name, value in {"_open": 0, "_depth": 0, "_spent": 0.0, "_said": False}.items():
        monkeypatch.setattr(kernels.compiling, name, value)
    for _ in range(2):  # a second model may have other kernels
        before = out.tell()
        with kernels.compiling():
            passes(9.0)  # something else
            assert out.tell() == before
            kernels.compiling.begins(True)
            passes(1.5)
            assert "compiling its kernels" in out.getvalue()[before:]
            assert len(out.getvalue()[before:].strip()) <= 75, (
                "it fits a line, which it is wiped off"
            )
            passes(1.0)
            kernels.compiling.ends()
            shown = out.getvalue()[before:]
            assert shown.endswith("\r") == terminal
            kernels.compiling.begins(True)
            passes(1.0)
            kernels.compiling.ends()
            assert (out.getvalue()[before:] == shown) != terminal
        lines = out.getvalue()[before:].split("\r")
        told = [line for line in lines if line.strip()]
        assert len(told) == (3 if terminal else 1)
        assert [line[-3:] for line in told] == (["2 s", "2 s", "4 s"] if terminal else ["l)\n"])
        assert lines[-1] == ("" if terminal else told[-1])
    assert not waiting


@pytest.mark.slow
def test_processes_that_compile_at_once(copy):
    processes = [copy.start() for _ in range(4)]
    for process in processes:
        output, errors = process.communicate()
        assert process.returncode == 0, errors
        assert json.loads(output)["results"] == [2.0, 2.25]
    assert copy.run() == ([2.0, 2.25], [])
    kept = [file.name for file in copy.files()[0].parent.iterdir()]
    assert len(kept) == 2, "nothing half-written is left"


@pytest.mark.slow
def test_folders_that_nobody_uses_are_deleted(copy):
    place = copy.kernels / "__pycache__"
    for name, age in (("groupwise-0-0", 1e9), ("groupwise-0-1", 4e9)):
        (place / name).mkdir(parents=True)
        os.utime(place / name, (age, age))
    copy.run()
    assert not (place / "groupwise-0-0").exists()
    assert (place / "groupwise-0-1").exists()


@pytest.mark.slow
def test_the_notice_comes_only_if_something_is_compiled(copy):
    package = copy.kernels / "__init__.py"
    text = package.read_text()
    assert "COMPILE_NOTICE_SECONDS = 1.0" in text
    package.write_text(text.replace("COMPILE_NOTICE_SECONDS = 1.0", "COMPILE_NOTICE_SECONDS = 0.0"))
    assert "(once for each kind of model)" in copy.start().communicate()[1]
    assert copy.start().communicate()[1] == ""
    shutil.rmtree(copy.kernels / "__pycache__")
    blocked(copy)
    assert "set NUMBA_CACHE_DIR" in copy.start(XDG_CACHE_HOME="/dev/null").communicate()[1]


@pytest.mark.slow
def test_a_table_of_axes_in_another_file_is_part_of_the_key(tmp_path):
    """A kernel outside the package, which reads its record by a table from elsewhere."""
    (tmp_path / "kernel.py").write_text(
        "from groupwise.kernels.compiled import Kernel, inlined\n"
        "from groupwise.kernels.layout import open_place\n"
        "from table import view\n"
        "@inlined\n"
        "def add(place, group):\n"
        "    view(place, group).first[0] += 1.0\n"
        "@Kernel\n"
        "def kernel(state, group):\n"
        "    add(open_place(state), group)\n"
        "    return 0\n"
    )
    (tmp_path / "run.py").write_text(
        "import ctypes, numpy, kernel, table\n"
        "from groupwise.kernels.layout import address\n"
        "from groupwise.store import Store\n"
        "store = Store(table.TABLE)\n"
        "store.reserve(numpy.arange(2), 0)\n"
        "kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)\n"
        "kind(kernel.kernel.pointer)(address(store.message), 1)\n"
        "print(store.of(1).first[0], store.of(1).second[0])\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *sys.path])
    for fields in (("first", "second"), ("second", "first")):
        record = "".join(f"    {name}: Vector\n" for name in fields)
        (tmp_path / "table.py").write_text(
            "from typing import NamedTuple\n"
            "from groupwise.arrays import Vector\n"
            "from groupwise.kernels.layout import ONE, Layout\n"
            f"class Record(NamedTuple):\n{record}"
            f"TABLE = Layout(Record, {dict.fromkeys(fields, (1,))!r})\n"
            "view = TABLE.view\n"
        )
        call = [sys.executable, "run.py"]
        run = subprocess.run(
            call, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        assert run.stdout.split() == ["1.0", "0.0"], fields
