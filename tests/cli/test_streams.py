"""Pipes and devices where files are expected, a full disk, an interrupt: what is said, and done."""

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import groupwise as gw
from groupwise.files import source
from tests.cli.commands import people_file, refused, succeed
from tests.few import few

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="Windows has no such files"),
    pytest.mark.usefixtures("two_panels"),
]
OPTIONS = ("--target", "pay", "--range=-100,100", "--groups", "city")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows, and a model that has learned them."""
    folder = tmp_path_factory.mktemp("streams")
    people_file(folder / "people.csv", 60)
    succeed("run", folder / "people.csv", *OPTIONS, "--out", folder / "out")
    return folder


def start(*arguments, **settings):
    """A process of its own."""
    command = [sys.executable, "-m", "groupwise", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **{**pipes, **settings})


def said_by(process):
    """Its exit code, and the lines on standard error."""
    errors = process.communicate()[1].splitlines()
    return process.returncode, [line for line in errors if "compiling its kernels" not in line]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "words",
    few(
        [
            ("predict", "out/model.gw", "people.csv"),
            ("regret", "out/model.gw", "--json"),
            ("init", "people.csv"),
            ("--help",),
        ],
        1,
    ),
)
def test_a_full_disk_at_standard_output(folder, words):
    places = [folder / word if "." in word else word for word in words]
    with open("/dev/full", "w") as full:
        code, lines = said_by(start(*places, stdout=full))
    assert code == 2
    assert lines == ["groupwise: Cannot write to standard output: No space left on device."]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_devices_as_places_for_results(folder):
    model, rows = folder / "out" / "model.gw", folder / "people.csv"
    for words in (("predict", model, rows), ("learn", model, rows), ("init", rows)):
        assert "No space left" in refused(*words, "--out", "/dev/full")
        succeed(*words, "--out", "/dev/null")
    assert "is a file" in refused("run", rows, *OPTIONS, "--out", "/dev/null")
    for name in ("/dev/null", "/dev/full"):
        assert stat.S_ISCHR(os.stat(name).st_mode)
    assert gw.load(model).regret().settled == 60


@pytest.mark.slow
def test_a_model_through_standard_output(folder, tmp_path):
    words = ("learn", folder / "out" / "model.gw", folder / "people.csv", "--out", "/dev/stdout")
    with (tmp_path / "model.gw").open("wb") as out:
        code, lines = said_by(start(*words, stdout=out))
    assert (code, len(lines)) == (0, 1)
    assert "60 rows learned, 120 in all" in lines[0]
    assert gw.load(tmp_path / "model.gw").regret().settled == 120


@pytest.mark.parametrize("name", ["rows.csv", "rows"])
def test_rows_and_a_model_from_pipes(folder, tmp_path, name):
    contents = {name: folder / "people.csv", "model.gw": folder / "out" / "model.gw"}
    for pipe, content in contents.items():
        os.mkfifo(tmp_path / pipe)
        data = content.read_bytes()
        threading.Thread(target=(tmp_path / pipe).write_bytes, args=(data,), daemon=True).start()
    found = succeed("predict", tmp_path / "model.gw", tmp_path / name).stdout
    usual = succeed("predict", folder / "out" / "model.gw", folder / "people.csv").stdout
    assert found == usual


def test_who_waits_for_a_pipe_says_so(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("groupwise.progress.PATIENCE", 0.0)
    os.mkfifo(tmp_path / "rows")
    content = (folder / "people.csv").read_bytes()
    heard = threading.Event()

    class Heard:
        def write(self, text):
            if "reading" in text:
                heard.set()

        def flush(self):
            pass

    def write():
        assert heard.wait(60)
        (tmp_path / "rows").write_bytes(content)

    monkeypatch.setattr(sys, "stderr", Heard())
    threading.Thread(target=write, daemon=True).start()
    with source.opened(str(tmp_path / "rows")) as found:
        assert found.path.read_bytes() == content
    assert heard.is_set()


@pytest.mark.parametrize("package", ["typer", "pyarrow", "numba"])
def test_an_interrupt_while_packages_are_imported(folder, tmp_path, package):
    (tmp_path / f"{package}.py").write_text("raise KeyboardInterrupt")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    words = ("predict", folder / "out" / "model.gw", folder / "people.csv")
    process = start(*words, env={**os.environ, "PYTHONPATH": path})
    assert said_by(process) == (130, ["groupwise: interrupted."])


@pytest.mark.slow
def test_an_interrupt_while_waiting_for_rows(folder):
    words = ("predict", folder / "out" / "model.gw", "-")
    process = start(*words, stdin=subprocess.PIPE)
    assert process.stderr is not None
    assert "reading standard input" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert said_by(process) == (130, ["groupwise: interrupted."])


@pytest.mark.slow
def test_whoever_reads_may_stop(folder):
    process = start("predict", folder / "out" / "model.gw", folder / "people.csv")
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    code, lines = said_by(process)
    assert code != 0
    assert lines == []
